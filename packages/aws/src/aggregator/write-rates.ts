/**
 * How often items are written, measured on the stream.
 *
 * The stream tells the time of a change to the second on AWS, to the minute on DynamoDB Local; a
 * reader that catches up sees old changes all at once. Each would take a quiet bucket for a busy
 * one, so the lower of both rates counts: by the times of the changes, and by their arrival.
 */

import { LRUCache } from "lru-cache";

const ITEMS_MAX = 10_000;
const MEASURED_MS = 5000;

interface Meter {
  second: number;
  inSecond: number;
  sinceMs: number;
  sinceThen: number;
}

export class WriteRates {
  readonly #meters = new LRUCache<string, Meter>({ max: ITEMS_MAX });

  /** Counts writes that happened in one second, and says how many there are per second. */
  count(item: string, atMs: number, writes: number, nowMs: number): number {
    const second = Math.floor(atMs / 1000);
    let meter = this.#meters.get(item);
    if (meter === undefined || nowMs - meter.sinceMs > MEASURED_MS) {
      meter = { second, inSecond: 0, sinceMs: nowMs, sinceThen: 0 };
      this.#meters.set(item, meter);
    }
    if (meter.second !== second) {
      meter.second = second;
      meter.inSecond = 0;
    }
    meter.inSecond += writes;
    meter.sinceThen += writes;
    const seconds = Math.max(1, (nowMs - meter.sinceMs) / 1000);
    return Math.min(meter.inSecond, meter.sinceThen / seconds);
  }
}
