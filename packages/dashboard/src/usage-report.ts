/** Usage over time: groups for a stacked chart, and rows for a CSV file. */

import { csvText } from "@zae-limiter/limiter/base/csv.ts";
import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { entryOf } from "@zae-limiter/limiter/base/entry.ts";
import { checkResource } from "@zae-limiter/limiter/domain/names.ts";
import type { UsageSnapshot } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { UsageJson } from "./wire.ts";

const READ_MAX = 10_000;
const GROUPS_MAX = 7;
const OTHER = "other";
/** Acquires are shown like a limit of this name, where no limit has it. */
const REQUESTS = "requests";

export interface UsageOptions {
  readonly entityId: string | undefined;
  readonly resource: string | undefined;
  readonly window: "hourly" | "daily" | "monthly";
  readonly start: string | undefined;
  readonly end: string | undefined;
}

interface UsageRows {
  readonly snapshots: readonly UsageSnapshot[];
  readonly complete: boolean;
}

/** Reads the newest snapshots of an entity, of a resource, or of the whole namespace. */
export async function usageRows(
  { usage }: Repository,
  { entityId, resource, window, start, end }: UsageOptions,
): Promise<UsageRows> {
  const scope = defined({ entityId, resource: resource && checkResource(resource) });
  const query = { ...scope, window, ...defined({ start, end }), limit: READ_MAX };
  const { snapshots, cursor } = await usage.snapshots(query);
  return { snapshots, complete: cursor === undefined };
}

/**
 * Groups snapshots for a chart. An acquire that cascades is counted once in a sum of entities, and
 * one that counts for a total too once in a sum of resources.
 */
export async function usageReport(
  repository: Repository,
  { snapshots, complete }: UsageRows,
  groupBy: "entity" | "resource",
): Promise<UsageJson> {
  const isOneEntity = new Set(snapshots.map(({ entityId }) => entityId)).size <= 1;
  const counted = isOneEntity ? snapshots : await repository.usage.withoutCascaded(snapshots);
  const once = repository.usage.withoutTotals(counted, snapshots);
  return { ...grouped(once, groupBy, snapshots), complete };
}

/**
 * Returns the groups that consumed most by name, and all others as one. `all` has the peaks, also
 * of ancestors and totals: a peak is the highest of them, and no sum. Pure.
 */
export function grouped(
  snapshots: readonly UsageSnapshot[],
  groupBy: "entity" | "resource",
  all: readonly UsageSnapshot[] = snapshots,
): Omit<UsageJson, "complete"> {
  const nameOf = (snapshot: UsageSnapshot) =>
    groupBy === "entity" ? snapshot.entityId : snapshot.resource;
  const windows = [...new Set(all.map(({ windowStart }) => windowStart))].sort();
  const positions = new Map(windows.map((start, at) => [start, at]));
  const limitNames = new Set(snapshots.flatMap(({ counters }) => Object.keys(counters)));
  const events = new Map<string, number>();
  for (const snapshot of snapshots) {
    const name = nameOf(snapshot);
    events.set(name, (events.get(name) ?? 0) + snapshot.totalEvents);
  }
  const withPeaks = all.filter(({ peaks }) => peaks !== undefined);
  for (const each of withPeaks) events.set(nameOf(each), events.get(nameOf(each)) ?? 0);
  const ranked = [...events].sort((left, right) => right[1] - left[1]).map(([name]) => name);
  const shown = new Set(ranked.slice(0, ranked.length > GROUPS_MAX + 1 ? GROUPS_MAX : undefined));
  const groups = new Map<string, Record<string, number[]>>();
  const note = (
    snapshot: UsageSnapshot,
    amounts: Readonly<Record<string, number>>,
    join: (one: number, other: number) => number,
  ) => {
    const name = shown.has(nameOf(snapshot)) ? nameOf(snapshot) : OTHER;
    const values = entryOf(groups, name, () => ({}));
    const at = positions.get(snapshot.windowStart) as number;
    for (const [limitName, amount] of Object.entries(amounts)) {
      values[limitName] ??= windows.map(() => 0);
      values[limitName][at] = join(values[limitName][at] ?? 0, amount);
    }
  };
  for (const each of snapshots) {
    note(each, { [REQUESTS]: each.totalEvents, ...each.counters }, (sum, more) => sum + more);
  }
  for (const each of withPeaks) note(each, peaksIn(each), Math.max);
  // The gateway counts models that are on no list for a resource of the same name.
  const order = [...new Set([...shown, OTHER])];
  return {
    windows,
    limitNames: [...limitNames].sort(),
    peakNames: peakNamesIn(all),
    groups: order.flatMap((name) => {
      const values = groups.get(name);
      return values === undefined ? [] : [{ name, values }];
    }),
  };
}

/** Returns the peaks of a snapshot, by names that no limit has. */
function peaksIn({ peaks = {} }: UsageSnapshot): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(peaks).map(([name, peak]) => [`${name} at once`, peak]));
}

function peakNamesIn(snapshots: readonly UsageSnapshot[]): readonly string[] {
  return [...new Set(snapshots.flatMap((snapshot) => Object.keys(peaksIn(snapshot))))].sort();
}

/** Returns snapshots as CSV. */
export function csvOf(snapshots: readonly UsageSnapshot[]): string {
  const names = [...new Set(snapshots.flatMap(({ counters }) => Object.keys(counters)))].sort();
  const peakNames = peakNamesIn(snapshots);
  const rows = snapshots.map((snapshot) => [
    snapshot.windowStart,
    snapshot.windowType,
    snapshot.entityId,
    snapshot.resource,
    String(snapshot.totalEvents),
    ...names.map((name) => String(snapshot.counters[name] ?? 0)),
    ...peakNames.map((name) => String(peaksIn(snapshot)[name] ?? "")),
  ]);
  const header = ["window_start", "window", "entity_id", "resource", "total_events"];
  return csvText([[...header, ...names, ...peakNames], ...rows]);
}
