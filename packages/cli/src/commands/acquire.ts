/** `acquire`: consumes from the limits of an entity, or says when it would work. */

import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { leaf, type Result } from "../frame/command.ts";
import { EXIT } from "../frame/exit-codes.ts";
import {
  amountsText,
  CONSUME_OPTIONS,
  type ConsumeOptions,
  decide,
  type Refused,
  refused,
  TARGET_ARGUMENTS,
} from "../store/consume.ts";
import { STATUS_SHAPE, shownName, statusJson } from "../terminal/bars.ts";
import { interruptible } from "../terminal/interruption.ts";
import { finiteOrNull } from "../terminal/json.ts";
import { shownAmount } from "../terminal/numbers.ts";
import { fields } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";

export const acquire = leaf<ConsumeOptions>({
  name: "acquire",
  summary: "consumes from the limits of an entity",
  details:
    "Consumes from all limits or from none, of the entity and of the parents it cascades to. " +
    "When a limit has too little, nothing is consumed and the exit code is 3. Slots come back as " +
    "soon as it ends: run holds them as long as its command runs.",
  arguments: TARGET_ARGUMENTS,
  options: CONSUME_OPTIONS,
  store: "change",
  examples: ["acquire key-1 gpt-4 -c rpm=1 -c tpm=500", "acquire key-1 gpt-4 -c rpm=1 --wait 5"],
  json: {
    granted: "boolean",
    entity_id: "text",
    resource: "text",
    consumed: "object",
    degraded: "boolean",
    retry_after_seconds: "number | null",
    limits: [STATUS_SHAPE],
  },
  run: async (call) =>
    interruptible(call.terminal, async (signal) => {
      const { args, options, terminal } = call;
      const decision = await decide(call, signal);
      const [entityId = "", resource = ""] = args;
      const target = { entity_id: entityId, resource };
      if (!decision.granted) return refusedResult(refused(decision), target, terminal);
      const { lease } = decision;
      const { statuses, degraded, consumed } = lease;
      await lease.commit();
      return {
        json: () => ({
          granted: true,
          ...target,
          consumed,
          degraded,
          retry_after_seconds: 0,
          limits: statuses.map(statusJson),
        }),
        text: () => grantedText(options, statuses, degraded, terminal),
      };
    }),
});

function refusedResult(
  { line, retryAfterSeconds, statuses }: Refused,
  target: { entity_id: string; resource: string },
  { palette }: Terminal,
): Result {
  return {
    code: EXIT.limitExceeded,
    json: () => ({
      granted: false,
      ...target,
      consumed: {},
      degraded: false,
      retry_after_seconds: finiteOrNull(retryAfterSeconds),
      limits: statuses.map(statusJson),
    }),
    text: () => `${palette.bad("Refused")}: ${line}`,
  };
}

function leftText({ limitName, available, limit }: LimitStatus): string {
  const [left, capacity] = [available, limit.capacity].map((each) => shownAmount(limitName, each));
  return `${left} of ${capacity} left`;
}

function grantedText(
  { consume }: ConsumeOptions,
  statuses: readonly LimitStatus[],
  degraded: boolean,
  { palette }: Terminal,
): string {
  const head = `${palette.good("Granted")}: ${amountsText(consume)}`;
  if (degraded) return `${head}, uncounted, because the store does not answer`;
  const taken = new Set(consume.map(({ name }) => name));
  const rows = statuses
    .filter(({ limitName }) => taken.has(limitName))
    .map((status) => [`${status.entityId} ${shownName(status)}`, leftText(status)] as const);
  return `${head}\n${fields(rows, palette.faint)}`;
}
