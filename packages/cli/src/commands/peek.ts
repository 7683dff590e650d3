/** `peek`: what is left of the limits of an entity. It consumes nothing. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { systemClock } from "@zae-limiter/limiter/base/time.ts";
import { leaf } from "../frame/command.ts";
import { CALL_LIMITS_OPTION, callLimits, TARGET_ARGUMENTS } from "../store/consume.ts";
import { bars, STATUS_SHAPE, statusJson } from "../terminal/bars.ts";
import { forecastLines } from "../terminal/forecast.ts";
import { stateText } from "../terminal/level-text.ts";

export const peek = leaf<{ limit: readonly string[] }>({
  name: "peek",
  summary: "shows what is left, and consumes nothing",
  details:
    "The limits that apply to the entity, then those of the parents it cascades to. Limits over " +
    "all resources are named @all/rpm. Where a quota is empty before its reset if it is used as " +
    "fast as in its period until now, a line says when.",
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
    const limiter = new RateLimiter(repo, { totals: true });
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
        const drawn = statuses.length === 0 ? [] : [bars(statuses, terminal)];
        const forecasts = forecastLines(statuses, (terminal.clock ?? systemClock)());
        return [...lines, ...drawn, ...forecasts].join("\n");
      },
    };
  },
});
