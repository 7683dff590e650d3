/**
 * The write of one snapshot, which counts every change exactly once.
 *
 * For each shard of the bucket the snapshot has a mark: the last change that is counted in it. A
 * write adds what lies behind the marks and moves them, under the condition that they are where it
 * expects them. Changes of one item come in order, so whatever is not behind the mark is counted
 * already, however often it is delivered, in whatever batches, by however many readers.
 */

import { textAt } from "../records/fields.ts";
import { markAttribute, usageChange, usageKey } from "../records/usage-item.ts";
import type { Item, Key } from "../storage/item.ts";
import type { Change, Condition, Test } from "../storage/item-store.ts";
import type { Consumption } from "./consumption.ts";
import { type Milli, plus } from "./milli.ts";
import type { ShardTally, SnapshotTally } from "./usage-fold.ts";

export interface SnapshotWrite {
  readonly key: Key;
  readonly change: Change;
  readonly condition: Condition;
}

/** What of a tally a stored snapshot has not counted; `undefined` when that is nothing. */
export function planSnapshot(
  tally: SnapshotTally,
  stored: Item | undefined,
  retentionDays: number,
): SnapshotWrite | undefined {
  const { subject, type, startMs } = tally;
  const amounts = new Map<string, Milli>();
  const marks: Record<string, string> = {};
  const condition: Test[] = [];
  let events = 0;
  for (const part of tally.shards) {
    const name = markAttribute(part.shard);
    const entries = uncounted(part, stored === undefined ? undefined : textAt(stored, name));
    const [first] = entries;
    if (first === undefined) continue;
    for (const entry of entries) {
      events += entry.events;
      for (const [limitName, milli] of entry.amountsMilli) {
        amounts.set(limitName, plus(amounts.get(limitName) ?? 0, milli));
      }
    }
    marks[name] = (entries.at(-1) as Consumption).order;
    condition.push({ is: "<", name, value: first.order, orAbsent: true });
  }
  if (condition.length === 0) return undefined;
  const change = usageChange(subject, type, startMs, amounts, events, retentionDays);
  return {
    key: usageKey(subject, type, startMs),
    change: { ...change, set: { ...change.set, ...marks } },
    condition,
  };
}

function uncounted({ entries }: ShardTally, mark: string | undefined): readonly Consumption[] {
  return mark === undefined ? entries : entries.filter(({ order }) => order > mark);
}
