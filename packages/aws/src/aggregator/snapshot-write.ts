/**
 * The write of one snapshot, which counts every change exactly once.
 *
 * For each shard of the bucket the snapshot has a mark: the last change that is counted in it. A
 * write adds what lies behind the marks and moves them, under the condition that they are where it
 * expects them. Changes of one item come in order, so whatever is not behind the mark is counted
 * already, however often it is delivered, in whatever batches, by however many readers.
 */

import {
  markAttribute,
  type UsageAddition,
  usageChange,
  usageKey,
} from "@zae-limiter/limiter/records/usage/usage-item.ts";
import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import { textAt } from "@zae-limiter/limiter/storage/item.ts";
import type { Change, Condition, Test } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Consumption } from "./consumption.ts";
import { type Milli, plus } from "./milli.ts";
import type { ShardTally, SnapshotTally } from "./usage-fold.ts";

interface SnapshotWrite {
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
  const sum = new TallySum();
  const marks: Record<string, string> = {};
  const condition: Test[] = [];
  for (const part of tally.shards) {
    const name = markAttribute(part.shard);
    const entries = uncounted(part, textAt(stored, name));
    const [first] = entries;
    if (first === undefined) continue;
    for (const entry of entries) sum.add(entry);
    marks[name] = (entries.at(-1) as Consumption).order;
    condition.push({ is: "<", name, value: first.order, orAbsent: true });
  }
  if (condition.length === 0) return undefined;
  const change = usageChange(subject, type, startMs, sum, retentionDays);
  return {
    key: usageKey(subject, type, startMs),
    change: { ...change, set: { ...change.set, ...marks } },
    condition,
  };
}

function uncounted({ entries }: ShardTally, mark: string | undefined): readonly Consumption[] {
  return mark === undefined ? entries : entries.filter(({ order }) => order > mark);
}

/** What a write adds to a snapshot. */
class TallySum implements UsageAddition {
  readonly amountsMilli = new Map<string, Milli>();
  readonly overdrawn = new Map<string, number>();
  events = 0;

  add({ amountsMilli, events, overdrawn }: Consumption): void {
    this.events += events;
    for (const [name, milli] of amountsMilli) {
      this.amountsMilli.set(name, plus(this.amountsMilli.get(name) ?? 0, milli));
    }
    for (const name of overdrawn) this.overdrawn.set(name, (this.overdrawn.get(name) ?? 0) + 1);
  }
}
