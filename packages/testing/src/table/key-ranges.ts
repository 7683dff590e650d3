/**
 * How much one key range takes per second.
 *
 * A partition of DynamoDB takes 1,000 write units and 3,000 read units a second, and adaptive
 * capacity gives a hot partition key a partition of its own, but never more than one: a single
 * item cannot be spread. A collection of many sort keys can, and DynamoDB does so after a while
 * under heat; nothing is ever merged.
 */

import { hashOf } from "../seeded-random.ts";

/** The limits of a key range. */
export interface Throughput {
  /** Write units that one key takes per second. */
  readonly writeUnitsPerSecond: number;
  /** Read units that one key takes per second. */
  readonly readUnitsPerSecond: number;
  /** Write units per second of each key range of an index. */
  readonly indexWriteUnitsPerSecond: number;
  /** How many seconds of unused throughput a key range saves up. */
  readonly burstSeconds: number;
  /** Seconds of throttling after which a collection is cut in two. */
  readonly heatSplitSeconds: number;
}

/**
 * As documented for every partition. AWS also says that it keeps up to 300 seconds of unused
 * capacity and promises nothing about it, so the simulation counts on one second.
 */
export const DYNAMODB_THROUGHPUT: Throughput = Object.freeze({
  writeUnitsPerSecond: 1000,
  readUnitsPerSecond: 3000,
  indexWriteUnitsPerSecond: 1000,
  burstSeconds: 1,
  heatSplitSeconds: 60,
});

/** Capacity left in one key range. */
interface Meter {
  units: number;
  atMs: number;
}

/** A partition key that heat has split into this many ranges of sort keys. */
interface Heat {
  ranges: number;
  hotSinceMs: number;
  lastHotMs: number;
}

const COOL_MS = 5000;

export class KeyRanges {
  #perSecond: number;
  #burst: number;
  readonly #heatSplitMs: number;
  readonly #meters = new Map<string, Meter>();
  readonly #heat = new Map<string, Heat>();

  constructor(perSecond: number, { burstSeconds, heatSplitSeconds }: Throughput) {
    this.#perSecond = perSecond;
    this.#burst = perSecond * burstSeconds;
    this.#heatSplitMs = heatSplitSeconds * 1000;
  }

  /** Changes the throughput; capacity saved up beyond the new burst is lost. */
  change(perSecond: number, burstSeconds: number): void {
    this.#perSecond = perSecond;
    this.#burst = perSecond * burstSeconds;
    this.#meters.clear();
  }

  /**
   * Returns whether a request may proceed; a key range that refuses heats up. One unit is enough
   * for any request, because its size is known only afterwards: large requests leave a debt.
   */
  allows(partition: string, sort: string, nowMs: number): boolean {
    if (this.#meter(partition, sort, nowMs).units >= 1) return true;
    this.#warm(partition, nowMs);
    return false;
  }

  use(partition: string, sort: string, units: number, nowMs: number): void {
    this.#meter(partition, sort, nowMs).units -= units;
  }

  #meter(partition: string, sort: string, nowMs: number): Meter {
    const ranges = this.#heat.get(partition)?.ranges ?? 1;
    const id = ranges === 1 ? partition : `${partition} ${hashOf(sort) % ranges}`;
    const meter = this.#meters.get(id);
    if (meter === undefined) {
      const fresh = { units: this.#burst, atMs: nowMs };
      this.#meters.set(id, fresh);
      return fresh;
    }
    const gained = ((nowMs - meter.atMs) * this.#perSecond) / 1000;
    meter.units = Math.min(this.#burst, meter.units + gained);
    meter.atMs = nowMs;
    return meter;
  }

  #warm(partition: string, nowMs: number): void {
    const heat = this.#heat.get(partition) ?? { ranges: 1, hotSinceMs: nowMs, lastHotMs: nowMs };
    this.#heat.set(partition, heat);
    if (nowMs - heat.lastHotMs > COOL_MS) heat.hotSinceMs = nowMs;
    heat.lastHotMs = nowMs;
    if (nowMs - heat.hotSinceMs < this.#heatSplitMs) return;
    heat.ranges *= 2;
    heat.hotSinceMs = nowMs;
  }
}
