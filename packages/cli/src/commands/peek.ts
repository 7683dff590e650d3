/** `peek`: what is left of the limits of an entity. It consumes nothing. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { leaf } from "../frame/command.ts";
import { CALL_LIMITS_OPTION, callLimits, TARGET_ARGUMENTS } from "../store/consume.ts";
import { bars, STATUS_SHAPE, statusJson } from "../terminal/bars.ts";
import { stateText } from "../terminal/level-text.ts";

export const peek = leaf<{ limit: readonly string[] }>({
  name: "peek",
  summary: "shows what is left, and consumes nothing",
  details: "The limits that apply to the entity, then those of the parents it cascades to.",
  arguments: TARGET_ARGUMENTS,
  options: [CALL_LIMITS_OPTION],
  store: "read",
  examples: ["peek key-1 gpt-4"],
  json: {
    entity_id: "text",
    resource: "text",
    state: "text",
    level: "text | null",
    limits: [STATUS_SHAPE],
  },
  run: async ({ args: [entityId = "", resource = ""], options, open, terminal }) => {
    const overrides = callLimits(options);
    const repo = await open();
    const { state, level = null } = await repo.limits.state({ entityId, resource });
    const limiter = new RateLimiter(repo);
    // A resource that is switched off has balances that cannot be used.
    const statuses =
      state === "disabled" ? [] : await limiter.status({ entityId, resource, ...overrides });
    return {
      json: () => ({
        entity_id: entityId,
        resource,
        state,
        level,
        limits: statuses.map(statusJson),
      }),
      text: () => {
        const lines = level === null ? [] : [`${resource} is ${stateText(state)} (by ${level})`];
        return [...lines, ...(statuses.length === 0 ? [] : [bars(statuses, terminal)])].join("\n");
      },
    };
  },
});
