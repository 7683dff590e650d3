/** `usage periods`: the statements of closed periods of quotas and sessions. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { localIso, localText } from "@zae-limiter/limiter/domain/zone.ts";
import type { UsagePeriod } from "@zae-limiter/limiter/records/usage/period-item.ts";
import { leaf, UsageError } from "../../frame/command.ts";
import { jsonOf } from "../../terminal/json.ts";
import { shownAmount, wholeNumber } from "../../terminal/numbers.ts";
import { right, table } from "../../terminal/table.ts";

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 10_000;
const NO_ZONE = "UTC";

interface PeriodsOptions {
  readonly entityId?: string;
  readonly resource?: string;
  readonly limitName?: string;
  readonly start?: string;
  readonly end?: string;
  readonly limit: number;
  readonly cursor?: string;
}

const PERIOD_SHAPE = {
  entity_id: "text",
  resource: "text",
  limit_name: "text",
  kind: "text",
  start: "text",
  end: "text",
  start_ms: "number",
  end_ms: "number",
  "time_zone?": "text",
  allowance: "number",
  carried: "number",
  granted: "number",
  used: "number",
  "late?": "number",
} as const;

export const periods = leaf<PeriodsOptions>({
  name: "periods",
  summary: "lists closed periods of quotas and sessions, those that ended last first",
  details:
    "A statement has what a period granted (the allowance, what was carried into it, top-ups) and " +
    "what was used; late is the part of it that calls of an earlier period consumed. Name an " +
    "entity, a resource or both. On DynamoDB the aggregator writes statements: without one there " +
    "are none.",
  options: [
    { flags: "-e, --entity-id <id>", text: "of this entity" },
    { flags: "-r, --resource <name>", text: "of this resource" },
    { flags: "--limit-name <name>", text: "of this limit" },
    { flags: "--start <time>", text: "that ended then or later, e.g. 2026-11-01" },
    { flags: "--end <time>", text: "that ended then or earlier" },
    {
      flags: "-l, --limit <count>",
      text: "at most this many",
      default: LIMIT_DEFAULT,
      parse: wholeNumber(1, LIMIT_MAX),
    },
    { flags: "--cursor <cursor>", text: "continue where an earlier list ended" },
  ],
  store: "read",
  examples: ["usage periods -e key-1", "usage periods -r gpt-4 --start 2026-11-01 --json"],
  json: { periods: [PERIOD_SHAPE], cursor: "text | null" },
  run: async ({ options, open, note, terminal }) => {
    const { entityId, resource, limitName, start, end, limit, cursor } = options;
    if (entityId === undefined && resource === undefined) {
      throw new UsageError("Name an entity with -e, a resource with -r, or both");
    }
    const { usage } = await open();
    const query = defined({ entityId, resource, limitName, start, end, cursor });
    const found = await usage.periods({ ...query, limit });
    if (found.periods.length === 0 && usage.countedBy === "aggregator") {
      note("On DynamoDB the aggregator writes statements. Without one there are none");
    }
    return {
      json: () => ({ periods: found.periods.map(periodJson), cursor: found.cursor ?? null }),
      text: async () => {
        if (found.periods.length === 0) return "No period was closed";
        if (found.cursor !== undefined)
          note(`There is more; continue with --cursor ${found.cursor}`);
        return tableOf(found.periods, terminal.palette.faint);
      },
    };
  },
});

function periodJson(period: UsagePeriod) {
  const { startMs, endMs, timeZone = NO_ZONE } = period;
  return jsonOf(PERIOD_SHAPE, {
    ...period,
    start: localIso(timeZone, startMs),
    end: localIso(timeZone, endMs),
  });
}

function tableOf(found: readonly UsagePeriod[], faint: (text: string) => string): Promise<string> {
  const amounts = ["USED", "GRANTED", "CARRIED", "LATE"].map(right);
  return table(
    ["ENDED", "BEGAN", "RESOURCE", "ENTITY", "LIMIT", ...amounts],
    found.map(
      ({ startMs, endMs, timeZone = NO_ZONE, resource, entityId, limitName, ...period }) => [
        localText(timeZone, endMs),
        localText(timeZone, startMs),
        resource,
        entityId,
        limitName,
        ...[period.used, period.granted, period.carried, period.late].map((amount) =>
          amount === undefined ? "-" : shownAmount(limitName, amount),
        ),
      ],
    ),
    faint,
  );
}
