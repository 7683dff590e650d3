/** The rows of a usage report: snapshots added up by entity, by resource and by local day. */

import { entryOf } from "@zae-limiter/limiter/base/entry.ts";
import { isMoney } from "@zae-limiter/limiter/core/micro-dollars.ts";
import { TAG_PREFIX } from "@zae-limiter/limiter/domain/names.ts";
import { localIso } from "@zae-limiter/limiter/domain/zone.ts";
import type { UsageSnapshot } from "@zae-limiter/limiter/records/usage/usage-item.ts";

/** Parts of a snapshot that a row can be about. */
export const REPORT_PARTS = ["entity", "tag", "resource", "day"] as const;
export type ReportPart = (typeof REPORT_PARTS)[number];

/** Acquires and amounts, in whole tokens and micro-dollars. */
export interface ReportSum {
  readonly totalEvents: number;
  readonly counters: Readonly<Record<string, number>>;
}

export interface ReportRow extends ReportSum {
  /** The entity or tag, the resource and the day that the row is about, as they were asked for. */
  readonly parts: Readonly<Partial<Record<ReportPart, string>>>;
  /** Whether rows of ancestors include all of it, so that the total does not count it again. */
  readonly isCascaded: boolean;
}

export interface ReportedUsage {
  /** The rows that consumed most first: by money where there is some, else by acquires. */
  readonly rows: readonly ReportRow[];
  readonly total: ReportSum;
  /** The names of all limits that were counted. */
  readonly limitNames: readonly string[];
}

/** Snapshots of one window type, none of them counted for a resource and for its total. */
export interface ReportInput {
  readonly snapshots: readonly UsageSnapshot[];
  /** These snapshots without what those of ancestors include. */
  readonly countedOnce: readonly UsageSnapshot[];
}

/** Adds snapshots up. A window belongs to the local day in which it begins. */
export function reportRows(
  { snapshots, countedOnce }: ReportInput,
  by: readonly ReportPart[],
  timeZone: string,
): ReportedUsage {
  const dayOf = (start: string) => localIso(timeZone, Date.parse(start)).slice(0, 10);
  const partsOf = ({ entityId, resource, windowStart }: UsageSnapshot) =>
    Object.fromEntries(
      by.map((part) => {
        if (part === "day") return [part, dayOf(windowStart)] as const;
        if (part === "tag") return [part, entityId.slice(TAG_PREFIX.length)] as const;
        return [part, part === "entity" ? entityId : resource] as const;
      }),
    );
  const keyOf = (snapshot: UsageSnapshot) => JSON.stringify(Object.values(partsOf(snapshot)));
  const once = new Set(countedOnce.map(keyOf));
  const isByEntity = by.includes("entity") || by.includes("tag");
  const sums = new Map<string, { parts: ReportRow["parts"]; sum: Sum }>();
  // A row over several entities must not count for an entity and for its ancestor.
  for (const snapshot of isByEntity ? snapshots : countedOnce) {
    const entry = () => ({ parts: partsOf(snapshot), sum: new Sum() });
    entryOf(sums, keyOf(snapshot), entry).sum.add(snapshot);
  }
  const total = new Sum();
  for (const snapshot of countedOnce) total.add(snapshot);
  const rows = [...sums].map(([key, { parts, sum }]) => {
    return { parts, ...sum.taken(), isCascaded: !once.has(key) };
  });
  const names = new Set(rows.flatMap(({ counters }) => Object.keys(counters)));
  return { rows: ranked(rows, by), total: total.taken(), limitNames: [...names].sort() };
}

class Sum {
  #events = 0;
  readonly #counters = new Map<string, number>();

  add({ totalEvents, counters }: UsageSnapshot): void {
    this.#events += totalEvents;
    for (const [name, amount] of Object.entries(counters)) {
      this.#counters.set(name, (this.#counters.get(name) ?? 0) + amount);
    }
  }

  taken(): ReportSum {
    return { totalEvents: this.#events, counters: Object.fromEntries(this.#counters) };
  }
}

/** Returns days in their order; within a day, or without days, the highest first. */
function ranked(rows: readonly ReportRow[], by: readonly ReportPart[]): ReportRow[] {
  const spent = ({ counters }: ReportRow) =>
    Object.entries(counters).reduce((sum, [name, amount]) => sum + (isMoney(name) ? amount : 0), 0);
  const text = ({ parts }: ReportRow) => by.map((part) => parts[part] ?? "").join("\n");
  const compare = (left: string, right: string) => (left < right ? -1 : Number(left > right));
  return rows.toSorted(
    (left, right) =>
      compare(left.parts.day ?? "", right.parts.day ?? "") ||
      spent(right) - spent(left) ||
      right.totalEvents - left.totalEvents ||
      compare(text(left), text(right)),
  );
}
