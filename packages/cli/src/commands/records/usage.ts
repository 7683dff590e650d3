/** `usage`: consumed tokens, window by window. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { isMoney } from "@zae-limiter/limiter/core/micro-dollars.ts";
import { WINDOW_TYPES, type WindowType } from "@zae-limiter/limiter/core/windows.ts";
import type { UsageQuery, UsageRecords } from "@zae-limiter/limiter/records/usage/usage.ts";
import type { UsageSnapshot } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { type Group, leaf, type OptionSpec, UsageError } from "../../frame/command.ts";
import { jsonOf } from "../../terminal/json.ts";
import { shownAmount, wholeNumber, withThousands } from "../../terminal/numbers.ts";
import { fields, right, table } from "../../terminal/table.ts";
import { countersText, usageChart, usageTable } from "../../terminal/usage-text.ts";
import { periods } from "./usage-periods.ts";
import { report } from "./usage-report.ts";

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 10_000;

interface QueryOptions {
  readonly entityId?: string;
  readonly resource?: string;
  readonly window?: WindowType;
  readonly start?: string;
  readonly end?: string;
}

const ENTITY_OPTION: OptionSpec = { flags: "-e, --entity-id <id>", text: "of this entity" };

const SCOPE_OPTIONS: readonly OptionSpec[] = [
  { flags: "-r, --resource <name>", text: "of this resource" },
  {
    flags: "-w, --window <type>",
    text: "by hour, day or month; without it the finest that was counted",
    choices: WINDOW_TYPES,
  },
  { flags: "--start <time>", text: "the first window, e.g. 2026-01-31 or 2026-01-31T14:00:00Z" },
  { flags: "--end <time>", text: "the last window" },
];

const QUERY_OPTIONS: readonly OptionSpec[] = [ENTITY_OPTION, ...SCOPE_OPTIONS];

const WHOLE_NAMESPACE =
  "Without an entity and a resource it is usage of the whole namespace; on DynamoDB that reads " +
  "the keys of all its entities.";

const SNAPSHOT_SHAPE = {
  entity_id: "text",
  resource: "text",
  window: "text",
  window_start: "text",
  window_end: "text",
  total_events: "number",
  counters: "object",
  "overdrawn?": "object",
  "peaks?": "object",
} as const;

interface ListOptions extends QueryOptions {
  readonly limit: number;
  readonly cursor?: string;
  readonly plot?: boolean;
}

const list = leaf<ListOptions>({
  name: "list",
  summary: "lists usage, the newest first",
  details: WHOLE_NAMESPACE,
  options: [
    ...QUERY_OPTIONS,
    {
      flags: "-l, --limit <count>",
      text: "at most this many",
      default: LIMIT_DEFAULT,
      parse: wholeNumber(1, LIMIT_MAX),
    },
    { flags: "--cursor <cursor>", text: "continue where an earlier list ended" },
    { flags: "-p, --plot", text: "draw a chart" },
  ],
  store: "read",
  examples: [
    "usage list -e key-1 -w hourly",
    "usage list -r gpt-4 -w daily --plot",
    "usage list -w monthly",
  ],
  json: {
    snapshots: [SNAPSHOT_SHAPE],
    cursor: "text | null",
  },
  run: async ({ options, json, open, note, terminal }) => {
    const query = queryOf(options);
    if (json && options.plot === true)
      throw new UsageError("--plot and --json exclude each other. Leave one out");
    const { usage: records } = await open();
    const { snapshots, cursor } = await page(records, query, options);
    // Read here: the store is closed when the text is made.
    const drawn = options.plot === true ? await toAddUp(records, query, snapshots) : undefined;
    return {
      json: () => ({
        snapshots: snapshots.map((snapshot) =>
          jsonOf(SNAPSHOT_SHAPE, { ...snapshot, window: snapshot.windowType }),
        ),
        cursor: cursor ?? null,
      }),
      text: async () => {
        if (snapshots.length === 0) return "No usage was counted";
        if (cursor !== undefined) note(`There is more; continue with --cursor ${cursor}`);
        if (drawn !== undefined) return usageChart(drawn, terminal.columns);
        return usageTable(snapshots, terminal.palette.faint);
      },
    };
  },
});

const SUMMARY_SHAPE = {
  snapshot_count: "number",
  total: "object",
  average: "object",
  min_window_start: "text | null",
  max_window_start: "text | null",
} as const;

const summary = leaf<QueryOptions>({
  name: "summary",
  summary: "sums usage up",
  details:
    "One window type counts: hours and days together would count twice. Over several entities, an " +
    `acquire that cascades counts once, not again for each ancestor. ${WHOLE_NAMESPACE}`,
  options: QUERY_OPTIONS,
  store: "read",
  examples: ["usage summary -e key-1 -w daily --start 2026-01-01"],
  json: SUMMARY_SHAPE,
  run: async ({ options, open, terminal }) => {
    const query = queryOf(options);
    const found = await (await open()).usage.summary(query);
    const { snapshotCount, total, average, minWindowStart, maxWindowStart } = found;
    return {
      json: () => jsonOf(SUMMARY_SHAPE, { ...found }),
      text: async () => {
        if (snapshotCount === 0) return "No usage was counted";
        const { palette } = terminal;
        const about = [
          ...(options.entityId === undefined ? [] : [["Entity", options.entityId] as const]),
          ...(options.resource === undefined ? [] : [["Resource", options.resource] as const]),
          ...(options.window === undefined ? [] : [["Window", options.window] as const]),
          ["Snapshots", withThousands(snapshotCount)] as const,
          ["Time", `${minWindowStart} to ${maxWindowStart}`] as const,
        ];
        const columns = ["LIMIT", right("TOTAL"), right("AVERAGE")];
        const rows = Object.keys(total)
          .sort()
          .map((name) => [
            name,
            shownAmount(name, total[name] ?? 0),
            averageText(name, average[name] ?? 0),
          ]);
        return `${fields(about, palette.faint)}\n\n${await table(columns, rows, palette.faint)}`;
      },
    };
  },
});

const TOP_DEFAULT = 10;

const CONSUMER_SHAPE = {
  entity_id: "text",
  total_events: "number",
  counters: "object",
  resources: ["text"],
} as const;

interface TopOptions extends QueryOptions {
  readonly by?: string;
  readonly limit: number;
}

const top = leaf<TopOptions>({
  name: "top",
  summary: "shows the entities that consumed most",
  details:
    "Usage is summed over all resources and all windows of one type. What cascades counts for an " +
    `entity and for its ancestors. ${WHOLE_NAMESPACE.replace("an entity and a resource", "-r")}`,
  options: [
    ...SCOPE_OPTIONS,
    { flags: "--by <limit>", text: "rank by tokens of this limit; without it by acquires" },
    {
      flags: "-l, --limit <count>",
      text: "at most this many",
      default: TOP_DEFAULT,
      parse: wholeNumber(1, LIMIT_MAX),
    },
  ],
  store: "read",
  examples: ["usage top -w monthly", "usage top -r gpt-4 --by tpm --start 2026-01-01"],
  json: { consumers: [CONSUMER_SHAPE] },
  run: async ({ options, open, terminal }) => {
    const { by, limit } = options;
    const consumers = await (await open()).usage.top({
      ...queryOf(options),
      limit,
      ...defined({ by }),
    });
    return {
      json: () => ({
        consumers: consumers.map((consumer) => jsonOf(CONSUMER_SHAPE, { ...consumer })),
      }),
      text: async () => {
        if (consumers.length === 0) return "No usage was counted";
        return table(
          ["ENTITY", right("EVENTS"), "CONSUMED", "RESOURCES"],
          consumers.map(({ entityId, totalEvents, counters, resources }) => [
            entityId,
            withThousands(totalEvents),
            countersText(counters),
            resources.join(", "),
          ]),
          terminal.palette.faint,
        );
      },
    };
  },
});

export const usage: Group = {
  name: "usage",
  summary: "what was consumed, by hour, day and month",
  commands: [list, summary, top, report, periods],
};

function queryOf({ entityId, resource, window, start, end }: QueryOptions): UsageQuery {
  return defined({ entityId, resource, window, start, end });
}

/** Reads one page; without a window type, of the finest that was counted. */
async function page(
  records: UsageRecords,
  query: UsageQuery,
  { limit, cursor }: ListOptions,
): Promise<{ snapshots: UsageSnapshot[]; cursor?: string }> {
  const window = query.window ?? (await finestWindow(records, query));
  return records.snapshots({ ...query, limit, ...defined({ window, cursor }) });
}

async function finestWindow(
  records: UsageRecords,
  query: UsageQuery,
): Promise<WindowType | undefined> {
  for (const window of WINDOW_TYPES) {
    const { snapshots } = await records.snapshots({ ...query, window, limit: 1 });
    if (snapshots.length > 0) return window;
  }
  return undefined;
}

/** Returns snapshots that can be summed: each acquire is in them once. */
async function toAddUp(
  records: UsageRecords,
  { entityId }: UsageQuery,
  snapshots: readonly UsageSnapshot[],
): Promise<readonly UsageSnapshot[]> {
  return entityId === undefined
    ? records.withoutCascaded(snapshots)
    : records.withoutTotals(snapshots);
}

function averageText(limitName: string, average: number): string {
  if (isMoney(limitName)) return shownAmount(limitName, Math.round(average));
  return DECIMALS.format(average);
}

const DECIMALS = new Intl.NumberFormat("en-US", {
  minimumFractionDigits: 2,
  maximumFractionDigits: 2,
});
