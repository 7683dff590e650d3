/** `usage`: what was consumed, window by window. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { WINDOW_TYPES, type WindowType } from "@zae-limiter/limiter/core/windows.ts";
import type { UsageQuery, UsageRecords } from "@zae-limiter/limiter/records/usage/usage.ts";
import type { UsageSnapshot } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import {
  CommandFailure,
  type Group,
  leaf,
  type OptionSpec,
  UsageError,
} from "../../frame/command.ts";
import { fields } from "../../frame/fields.ts";
import { jsonOf } from "../../terminal/json.ts";
import { wholeNumber, withThousands } from "../../terminal/numbers.ts";
import { plotUsage } from "../../terminal/plot.ts";
import { right, table } from "../../terminal/table.ts";

const LIMIT_DEFAULT = 100;
const LIMIT_MAX = 10_000;

interface QueryOptions {
  readonly entityId?: string;
  readonly resource?: string;
  readonly window?: WindowType;
  readonly start?: string;
  readonly end?: string;
}

const QUERY_OPTIONS: readonly OptionSpec[] = [
  { flags: "-e, --entity-id <id>", text: "of this entity" },
  { flags: "-r, --resource <name>", text: "of this resource" },
  {
    flags: "-w, --window <type>",
    text: "by hour, day or month; without it the finest that was counted",
    choices: WINDOW_TYPES,
  },
  { flags: "--start <time>", text: "the first window, e.g. 2026-01-31 or 2026-01-31T14:00:00Z" },
  { flags: "--end <time>", text: "the last window" },
];

const SNAPSHOT_SHAPE = {
  entity_id: "text",
  resource: "text",
  window: "text",
  window_start: "text",
  window_end: "text",
  total_events: "number",
  counters: "object",
  "overdrawn?": "object",
} as const;

interface ListOptions extends QueryOptions {
  readonly limit: number;
  readonly cursor?: string;
  readonly plot?: boolean;
}

const list = leaf<ListOptions>({
  name: "list",
  summary: "lists usage, the newest first",
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
  examples: ["usage list -e key-1 -w hourly", "usage list -r gpt-4 -w daily --plot"],
  json: {
    snapshots: [SNAPSHOT_SHAPE],
    cursor: "text | null",
  },
  run: async ({ options, json, open, note, terminal }) => {
    const query = checkedQuery(options);
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
        if (drawn !== undefined) return plotUsage(drawn, terminal.columns);
        return snapshotTable(snapshots, terminal.palette.faint);
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
    "One window type counts: hours and days together would count twice. Of a resource, an acquire " +
    "that cascades counts once, not again for each ancestor.",
  options: QUERY_OPTIONS,
  store: "read",
  examples: ["usage summary -e key-1 -w daily --start 2026-01-01"],
  json: SUMMARY_SHAPE,
  run: async ({ options, open, terminal }) => {
    const query = checkedQuery(options);
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
            withThousands(total[name] ?? 0),
            DECIMALS.format(average[name] ?? 0),
          ]);
        return `${fields(about, palette.faint)}\n\n${await table(columns, rows, palette.faint)}`;
      },
    };
  },
});

export const usage: Group = {
  name: "usage",
  summary: "what was consumed, by hour, day and month",
  commands: [list, summary],
};

/** Says what is missing before anything is opened. */
function checkedQuery(options: QueryOptions): UsageQuery {
  const { entityId, resource, window, start, end } = options;
  if (entityId === undefined && resource === undefined) {
    throw new CommandFailure("Expected an entity (-e key-1) or a resource (-r gpt-4)");
  }
  return defined({ entityId, resource, window, start, end });
}

/** One page. Without a window type, of the finest that was counted. */
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

/** A chart adds up the entities of a resource, so each acquire must be in it once. */
async function toAddUp(
  records: UsageRecords,
  { entityId }: UsageQuery,
  snapshots: readonly UsageSnapshot[],
): Promise<readonly UsageSnapshot[]> {
  return entityId === undefined ? records.withoutCascaded(snapshots) : snapshots;
}

/** How often a soft limit was left below zero; nothing where it was not. */
function debtOf({ overdrawn }: UsageSnapshot, limitName: string): string {
  const count = overdrawn?.[limitName];
  return count === undefined ? "" : ` (overdrawn ${withThousands(count)}x)`;
}

function snapshotTable(
  snapshots: readonly UsageSnapshot[],
  paint: (title: string) => string,
): Promise<string> {
  return table(
    ["WINDOW", "TYPE", "RESOURCE", "ENTITY", right("EVENTS"), "CONSUMED"],
    snapshots.map((snapshot) => [
      snapshot.windowStart,
      snapshot.windowType,
      snapshot.resource,
      snapshot.entityId,
      withThousands(snapshot.totalEvents),
      Object.keys(snapshot.counters)
        .sort()
        .map(
          (name) =>
            `${name}=${withThousands(snapshot.counters[name] ?? 0)}${debtOf(snapshot, name)}`,
        )
        .join(", "),
    ]),
    paint,
  );
}

const DECIMALS = new Intl.NumberFormat("en-US", {
  minimumFractionDigits: 2,
  maximumFractionDigits: 2,
});
