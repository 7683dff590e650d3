/** `usage`: consumed tokens, window by window. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import {
  isoSeconds,
  WINDOW_TYPES,
  type WindowType,
  windowEndMs,
} from "@zae-limiter/limiter/core/windows.ts";
import type { UsageQuery, UsageRecords } from "@zae-limiter/limiter/records/usage/usage.ts";
import type { UsageSnapshot } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import {
  CommandFailure,
  type Group,
  leaf,
  type OptionSpec,
  UsageError,
} from "../../frame/command.ts";
import { chart } from "../../terminal/chart.ts";
import { jsonOf } from "../../terminal/json.ts";
import { wholeNumber, withThousands } from "../../terminal/numbers.ts";
import { fields, right, table } from "../../terminal/table.ts";

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

/** Refuses an incomplete query before anything is opened. */
function checkedQuery(options: QueryOptions): UsageQuery {
  const { entityId, resource, window, start, end } = options;
  if (entityId === undefined && resource === undefined) {
    throw new CommandFailure("Expected an entity (-e key-1) or a resource (-r gpt-4)");
  }
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

/** Returns snapshots that can be summed by resource: each acquire is in them once. */
async function toAddUp(
  records: UsageRecords,
  { entityId }: UsageQuery,
  snapshots: readonly UsageSnapshot[],
): Promise<readonly UsageSnapshot[]> {
  return entityId === undefined ? records.withoutCascaded(snapshots) : snapshots;
}

/** Returns how often a soft limit was left below zero; empty where it was not. */
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

const POINTS_MAX = 100_000;

/** Draws a chart for each limit and window type. */
function plotUsage(snapshots: readonly UsageSnapshot[], columns: number): string {
  const types = [...new Set(snapshots.map(({ windowType }) => windowType))];
  return types
    .map((type) =>
      chartsOf(
        type,
        snapshots.filter(({ windowType }) => windowType === type),
        columns,
      ),
    )
    .join("\n\n");
}

function chartsOf(type: string, snapshots: readonly UsageSnapshot[], columns: number): string {
  const starts = snapshots.map(({ windowStart }) => windowStart).sort();
  const first = starts[0] ?? "";
  const last = starts.at(-1) ?? "";
  const windows = windowsBetween(type, first, last) ?? [...new Set(starts)];
  const names = [...new Set(snapshots.flatMap(({ counters }) => Object.keys(counters)))].sort();
  const axis = { first: timeText(type, first), last: timeText(type, last) };
  const charts = names.map((name) => {
    const sums = new Map<string, number>();
    for (const { windowStart, counters } of snapshots) {
      sums.set(windowStart, (sums.get(windowStart) ?? 0) + (counters[name] ?? 0));
    }
    const amounts = windows.map((window) => sums.get(window) ?? 0);
    return `${name}, ${type}\n${chart(amounts, axis, columns)}`;
  });
  const points = `${windows.length} ${windows.length === 1 ? "window" : "windows"}`;
  return [...charts, `${first} to ${last}, ${points}`].join("\n\n");
}

/** Returns the part of a time that differs between windows of a type. */
function timeText(type: string, start: string): string {
  if (type === "hourly") return `${start.slice(5, 10)} ${start.slice(11, 16)}`;
  return type === "monthly" ? start.slice(0, 7) : start.slice(0, 10);
}

/** Returns the starts of all windows between two, because one without usage has no record. */
function windowsBetween(type: string, first: string, last: string): string[] | undefined {
  const known = WINDOW_TYPES.find((candidate): candidate is WindowType => candidate === type);
  const endMs = Date.parse(last);
  let ms = Date.parse(first);
  if (known === undefined || Number.isNaN(ms) || Number.isNaN(endMs)) return undefined;
  const windows: string[] = [];
  while (ms <= endMs && windows.length < POINTS_MAX) {
    windows.push(isoSeconds(ms));
    ms = windowEndMs(known, ms);
  }
  return windows;
}
