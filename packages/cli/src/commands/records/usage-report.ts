/** `usage report`: what entities consumed in a month or in days of a time zone. */

import { csvText } from "@zae-limiter/limiter/base/csv.ts";
import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { systemClock } from "@zae-limiter/limiter/base/time.ts";
import type { Period } from "@zae-limiter/limiter/core/calendar.ts";
import { isMoney, printMoney, signOf } from "@zae-limiter/limiter/core/micro-dollars.ts";
import { show } from "@zae-limiter/limiter/domain/check.ts";
import { isTag } from "@zae-limiter/limiter/domain/names.ts";
import { localClock, localIso, localText } from "@zae-limiter/limiter/domain/zone.ts";
import type { UsageRecords } from "@zae-limiter/limiter/records/usage/usage.ts";
import type { UsageSnapshot } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { CommandFailure, leaf, UsageError } from "../../frame/command.ts";
import { shownAmount, wholeNumber, withThousands } from "../../terminal/numbers.ts";
import type { Palette } from "../../terminal/palette.ts";
import { type Column, right, table } from "../../terminal/table.ts";
import { type PeriodOptions, reportPeriod, zoneOption } from "./report-period.ts";
import {
  REPORT_PARTS,
  type ReportedUsage,
  type ReportPart,
  type ReportRow,
  reportRows,
} from "./report-rows.ts";

const HOUR_MS = 3_600_000;
const PAGE = 10_000;
/** Snapshots that are held in memory at once. */
const SNAPSHOTS_MAX = 500_000;
const ROWS_MAX = 1_000_000;
const BY_DEFAULT: readonly ReportPart[] = ["entity", "resource"];
const CASCADED_MARK = "*";

interface ReportOptions extends PeriodOptions {
  readonly by?: readonly ReportPart[];
  readonly zone: string;
  readonly entityId?: string;
  readonly resource?: string;
  readonly limit?: number;
  readonly csv?: boolean;
}

const SUM_SHAPE = { total_events: "number", counters: "object" } as const;

export const report = leaf<ReportOptions>({
  name: "report",
  summary: "sums a month or days up, by entity and resource, in local time",
  details:
    "The entities that spent most come first, by money or by acquires. What cascades is in the " +
    "row of an entity and, with its mark, of each ancestor; the total counts it once. What counts " +
    "for a total over all resources is in the row of its resource; @all has what no resource " +
    "has. What tags count is left out, but for --by tag and an entity tag:NAME. Reports are made " +
    "from hourly usage, as long as it is kept. Without an entity and a resource it is usage of " +
    "the whole namespace; on DynamoDB that reads the keys of all its entities.",
  options: [
    {
      flags: "--by <parts>",
      text: "rows by entity or tag, model (or resource) and day; without it by entity,model",
      parse: partsOption,
    },
    { flags: "--month <month>", text: "this month, e.g. 2026-11; without it the current one" },
    { flags: "--from <day>", text: "the first day, instead of a month, e.g. 2026-11-01" },
    { flags: "--to <day>", text: "the last day, included; without it today" },
    {
      flags: "--zone <name>",
      text: "the time zone of months and days, e.g. Europe/Berlin",
      default: "UTC",
      parse: zoneOption,
    },
    { flags: "-e, --entity-id <id>", text: "of this entity" },
    { flags: "-r, --resource <name>", text: "of this resource" },
    {
      flags: "-l, --limit <count>",
      text: "at most this many rows; the total has all of them",
      parse: wholeNumber(1, ROWS_MAX),
    },
    { flags: "--csv", text: "print rows for a spreadsheet, with money in dollars" },
  ],
  store: "read",
  examples: [
    "usage report --by entity,model --month 2026-11 --zone Europe/Berlin",
    "usage report --by entity --limit 10",
    "usage report --by tag,model",
    "usage report --by day,model -e team-a --from 2026-11-01 --to 2026-11-15 --csv",
  ],
  json: {
    zone: "text",
    start: "text",
    end: "text",
    rows: [
      {
        "entity_id?": "text",
        "tag?": "text",
        "resource?": "text",
        "day?": "text",
        ...SUM_SHAPE,
        cascaded: "boolean",
      },
    ],
    total: SUM_SHAPE,
  },
  run: async ({ options, json, open, note, terminal }) => {
    const { by = BY_DEFAULT, zone, limit, csv } = options;
    if (json && csv === true)
      throw new UsageError("--csv and --json exclude each other. Leave one out");
    if (options.entityId !== undefined && by.includes("tag"))
      throw new UsageError("--by tag is about all tags. Leave --entity-id out, or name tag:NAME");
    const period = reportPeriod(options, zone, (terminal.clock ?? systemClock)());
    const { usage } = await open();
    const found = await reported(usage, { ...options, by }, period);
    const rows = found.rows.slice(0, limit);
    const unevenNote = unevenText(zone, period);
    return {
      json: () => ({
        zone,
        start: localIso(zone, period.startMs),
        end: localIso(zone, period.endMs),
        rows: rows.map(rowJson),
        total: { total_events: found.total.totalEvents, counters: { ...found.total.counters } },
      }),
      text: async () => {
        if (unevenNote !== undefined) note(unevenNote);
        if (csv === true) return csvOf({ ...found, rows }, by);
        const time = `${localText(zone, period.startMs)} to ${localText(zone, period.endMs)}`;
        if (rows.length === 0) return `No usage was counted from ${time}`;
        const more = found.rows.length - rows.length;
        if (more > 0) note(`There are ${withThousands(more)} more rows; --limit shows more`);
        return `${time}\n\n${await tableOf({ ...found, rows }, by, terminal.palette)}`;
      },
    };
  },
});

/** Reads the hours of a period and adds them up. */
async function reported(
  usage: UsageRecords,
  { entityId, resource, by, zone }: ReportOptions & { readonly by: readonly ReportPart[] },
  { startMs, endMs }: Period,
): Promise<ReportedUsage> {
  const query = {
    ...defined({ entityId, resource }),
    window: "hourly",
    start: new Date(startMs),
    // Both ends are included, and windows begin at whole hours.
    end: new Date(endMs - 1),
    limit: PAGE,
  } as const;
  const all: UsageSnapshot[] = [];
  let cursor: string | undefined;
  do {
    const page = await usage.snapshots({ ...query, ...defined({ cursor }) });
    all.push(...page.snapshots);
    cursor = page.cursor;
    if (all.length > SNAPSHOTS_MAX) throw tooMuch();
  } while (cursor !== undefined);
  // The total of one resource is what was asked for, also where that resource is @all.
  const distinct = (found: readonly UsageSnapshot[]) =>
    resource === undefined ? usage.withoutTotals(found, all) : found;
  const isByTag = by.includes("tag");
  const isAsked = (one: UsageSnapshot) => entityId !== undefined || isTag(one.entityId) === isByTag;
  const asked = distinct(all.filter(isAsked));
  if (entityId !== undefined || isByTag) {
    return reportRows({ snapshots: asked, countedOnce: asked }, by, zone);
  }
  const countedOnce = distinct(await usage.withoutCascaded(all));
  return reportRows({ snapshots: asked, countedOnce }, by, zone);
}

function tooMuch(): CommandFailure {
  return new CommandFailure(
    `There are more than ${withThousands(SNAPSHOTS_MAX)} hours of entities and resources. Name an ` +
      "entity with -e, a resource with -r, or fewer days with --from and --to",
  );
}

/** Returns a note where the period begins within an hour of UTC, by which usage is counted. */
function unevenText(zone: string, { startMs, endMs }: Period): string | undefined {
  if (startMs % HOUR_MS === 0 && endMs % HOUR_MS === 0) return undefined;
  const minutes = Math.abs(localClock(zone)(startMs) % HOUR_MS) / 60_000;
  return `Usage is counted by hours of UTC, and ${zone} differs by ${minutes} minutes: an hour counts where it begins`;
}

function partsOption(text: string): readonly ReportPart[] {
  const parts = text.split(",").map((part) => {
    const known = REPORT_PARTS.find((each) => each === (part === "model" ? "resource" : part));
    if (known !== undefined) return known;
    throw new UsageError(
      `expected entity or tag, model and day, joined by commas, got ${show(text)}`,
    );
  });
  const twice = parts.find((part, at) => parts.indexOf(part) !== at);
  if (parts.includes("tag") && parts.includes("entity")) {
    throw new UsageError("expected entity or tag: what tags count is part of what entities do");
  }
  if (twice === undefined) return parts;
  throw new UsageError(`expected each part once, got ${show(text)}`);
}

function rowJson({ parts, totalEvents, counters, isCascaded }: ReportRow) {
  const { entity, tag, resource, day } = parts;
  return {
    ...defined({ entity_id: entity, tag, resource, day }),
    total_events: totalEvents,
    counters: { ...counters },
    cascaded: isCascaded,
  };
}

function csvOf({ rows, limitNames }: ReportedUsage, by: readonly ReportPart[]): string {
  const titles = [...by.map((part) => (part === "entity" ? "entity_id" : part)), "total_events"];
  const header = [
    ...titles,
    ...limitNames.map((name) => (isMoney(name) ? `${name} (${signOf(name)})` : name)),
    "cascaded",
  ];
  const lines = rows.map(({ parts, totalEvents, counters, isCascaded }) => [
    ...by.map((part) => parts[part] ?? ""),
    String(totalEvents),
    ...limitNames.map((name) => csvAmount(name, counters[name] ?? 0)),
    isCascaded ? "yes" : "no",
  ]);
  return csvText([header, ...lines], "\n").trimEnd();
}

/** Returns an amount without separators; of money in dollars, which spreadsheets add up. */
function csvAmount(limitName: string, amount: number): string {
  if (!isMoney(limitName)) return String(amount);
  return `${amount < 0 ? "-" : ""}${printMoney(limitName, Math.abs(amount)).slice(1)}`;
}

async function tableOf(
  { rows, total, limitNames }: ReportedUsage,
  by: readonly ReportPart[],
  palette: Palette,
): Promise<string> {
  const columns: Column[] = [
    ...by.map((part) => part.toUpperCase()),
    right("EVENTS"),
    ...limitNames.map(right),
  ];
  const amounts = ({ totalEvents, counters }: Pick<ReportRow, "totalEvents" | "counters">) => [
    withThousands(totalEvents),
    ...limitNames.map((name) => {
      const amount = counters[name];
      return amount === undefined ? "-" : shownAmount(name, amount);
    }),
  ];
  const lines = rows.map((row) => [
    ...by.map((part) => {
      const mark = part === "entity" && row.isCascaded ? ` ${CASCADED_MARK}` : "";
      return `${row.parts[part] ?? ""}${mark}`;
    }),
    ...amounts(row),
  ]);
  const sum = [...by.map((_, at) => (at === 0 ? "TOTAL" : "")), ...amounts(total)];
  const drawn = await table(columns, [...lines, sum], palette.faint);
  if (!rows.some(({ isCascaded }) => isCascaded)) return drawn;
  const meaning = `${CASCADED_MARK} in the rows of ancestors too; the total counts it once`;
  return `${drawn}\n\n${palette.faint(meaning)}`;
}
