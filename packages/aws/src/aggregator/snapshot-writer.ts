/** Carries out the writes of snapshots. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import {
  markAttribute,
  usageChange,
  usageKey,
} from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { type Item, type Key, textAt } from "@zae-limiter/limiter/storage/item.ts";
import type {
  Change,
  Condition,
  ItemStore,
  Test,
} from "@zae-limiter/limiter/storage/item-store.ts";
import type { Consumption } from "./consumption.ts";
import { dividedAt } from "./deletions.ts";
import { type Milli, plus } from "./milli.ts";
import { PeakChange } from "./slot-peaks.ts";
import type { ShardTally, SnapshotTally } from "./usage-fold.ts";

const ATTEMPTS_MAX = 5;
const PAUSE_MS = 50;

interface SnapshotWriterOptions {
  readonly store: ItemStore;
  readonly timer: Timer;
  readonly retentionDays: number;
}

export class SnapshotWriter {
  readonly #options: SnapshotWriterOptions;

  constructor(options: SnapshotWriterOptions) {
    this.#options = options;
  }

  /**
   * Counts a tally without what is from before a deletion; false when there was nothing to count.
   * A snapshot that has counted such records, by its marks, is removed first: an aggregator may
   * have written it just before the deletion was known, and then died.
   */
  async write(tally: SnapshotTally, deletedUntilMs: number): Promise<boolean> {
    const { kept, dropped } = dividedAt(tally, deletedUntilMs);
    for (const shard of dropped) await this.#remove(tally, shard);
    return kept !== undefined && (await this.#count(kept));
  }

  /**
   * Counts again a tally that this process has counted before it knew of a deletion: the snapshot
   * holds the records of both sides, so it is removed by the mark of the last one.
   */
  async recount(tally: SnapshotTally, deletedUntilMs: number): Promise<void> {
    const { kept, dropped } = dividedAt(tally, deletedUntilMs);
    const affected = new Set(dropped.map(({ shard }) => shard));
    for (const shard of tally.shards) {
      if (affected.has(shard.shard)) await this.#remove(tally, shard);
    }
    if (kept !== undefined) await this.#count(kept);
  }

  /** Removes the snapshot unless its mark is behind these records: later ones are in it then. */
  async #remove(tally: SnapshotTally, { shard, entries }: ShardTally): Promise<void> {
    const last = entries.at(-1);
    if (last === undefined) return;
    const { subject, type, startMs } = tally;
    const condition = [{ is: "<=", name: markAttribute(shard), value: last.order }] as const;
    await this.#repeated(() =>
      this.#options.store.delete(usageKey(subject, type, startMs), condition),
    );
  }

  /**
   * Counts a tally; false when all of it was counted before. A write with unknown outcome is
   * repeated: had it happened, the mark would say so. Peaks of slots are read first: most batches
   * do not raise them, and a read costs less than a write that is refused.
   */
  async #count(tally: SnapshotTally): Promise<boolean> {
    const { store, retentionDays } = this.#options;
    let stored = hasSlots(tally) ? await this.#read(tally) : undefined;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const write = planSnapshot(tally, stored, retentionDays);
      if (write === undefined) return false;
      const { key, change, condition } = write;
      const result = await this.#repeated(() => store.update(key, change, condition));
      if (result.ok) return true;
      stored = result.item;
    }
    throw new RateLimiterUnavailable(BUSY, BUSY_DETAILS);
  }

  #read({ subject, type, startMs }: SnapshotTally): Promise<Item | undefined> {
    return this.#repeated(() => this.#options.store.get(usageKey(subject, type, startMs)));
  }

  /** Repeats what is harmless to repeat, while the store does not answer. */
  async #repeated<T>(call: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await call();
      } catch (error) {
        if (!(error instanceof RateLimiterUnavailable) || attempt >= ATTEMPTS_MAX) throw error;
        await this.#options.timer.sleep(PAUSE_MS * 2 ** attempt);
      }
    }
  }
}

const BUSY = "The snapshot was changed by another aggregator too often";
const BUSY_DETAILS = { reason: "throttled", nothingWritten: true } as const;

interface SnapshotWrite {
  readonly key: Key;
  readonly change: Change;
  readonly condition: Condition;
}

/**
 * Plans the write of one snapshot, which counts every change exactly once; `undefined` when the
 * stored snapshot has counted the whole tally.
 *
 * For each shard of the bucket the snapshot has a mark: the last change that is counted in it. A
 * write adds the changes behind the marks and moves the marks, under the condition that they are as
 * it read them. Changes of one item come in order, so a change that is not behind the mark is
 * counted already, however often it is delivered, in whatever batches, by however many readers.
 * Peaks of slots are set, where they are higher, on condition that they are as they were read.
 */
export function planSnapshot(
  tally: SnapshotTally,
  stored: Item | undefined,
  retentionDays: number,
): SnapshotWrite | undefined {
  const { subject, type, startMs } = tally;
  const sum = new TallySum();
  const peaks = new PeakChange(stored);
  const marks: Record<string, string> = {};
  const condition: Test[] = [];
  for (const part of tally.shards) {
    const name = markAttribute(part.shard);
    const entries = uncounted(part, textAt(stored, name));
    const [first] = entries;
    if (first === undefined) continue;
    for (const entry of entries) {
      sum.add(entry);
      peaks.add(part.shard, entry.slots);
    }
    marks[name] = (entries.at(-1) as Consumption).order;
    condition.push({ is: "<", name, value: first.order, orAbsent: true });
  }
  if (condition.length === 0) return undefined;
  const { amountsMilli, events, overdrawn } = sum;
  const addition = { amountsMilli, events, overdrawn, peaks: peaks.higher };
  const change = usageChange(subject, type, startMs, addition, retentionDays);
  return {
    key: usageKey(subject, type, startMs),
    change: { ...change, set: { ...change.set, ...marks, ...peaks.attributes } },
    condition: [...condition, ...peaks.condition],
  };
}

function hasSlots({ shards }: SnapshotTally): boolean {
  return shards.some(({ entries }) => entries.some(({ slots }) => slots.length > 0));
}

function uncounted({ entries }: ShardTally, mark: string | undefined): readonly Consumption[] {
  return mark === undefined ? entries : entries.filter(({ order }) => order > mark);
}

/** Sums the consumption that a write adds to a snapshot. */
class TallySum {
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
