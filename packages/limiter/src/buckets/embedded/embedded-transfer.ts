/** Moves whole buckets in and out of the rows of an embedded store. */

import { fullLevel, hasSlots, type Rate } from "../../core/bucket.ts";
import type { BucketName } from "../../records/keys.ts";
import { type BucketTransfer, inOrder, type WholeBucket } from "../bucket-transfer.ts";
import { hasPeriods } from "../periods.ts";
import { Bucket } from "./bucket.ts";
import type { BucketTable } from "./bucket-table.ts";
import { Build } from "./build.ts";
import {
  consumedAt,
  countAt,
  fill,
  levelAt,
  numbersFor,
  periodAt,
  setLevelAt,
  setPeriodAt,
} from "./limit-numbers.ts";
import { hourOf } from "./usage-hour.ts";

/** Rows that one step reads and writes. */
const ROWS = 100;

export class EmbeddedTransfer implements BucketTransfer {
  readonly #table: BucketTable;

  constructor(table: BucketTable) {
    this.#table = table;
  }

  async *all(atMs: number): AsyncGenerator<WholeBucket> {
    for await (const resource of resourcesIn(this.#table)) {
      for (let after: string | undefined; ; ) {
        const from = after;
        const page = () => this.#table.ofResource(resource, from);
        const rows = await this.#table.peek(page, undefined);
        if (rows.length === 0) break;
        for (const row of rows) {
          const { entityId, bucket } = row;
          if (!bucket.isExpired(atMs)) yield wholeOf({ entityId, resource }, bucket, atMs);
        }
        after = rows.at(-1)?.entityId;
      }
    }
  }

  async some(names: readonly BucketName[], atMs: number): Promise<(WholeBucket | undefined)[]> {
    const found: (WholeBucket | undefined)[] = [];
    for (const page of pagesOf(names)) {
      const read = () =>
        page.map(({ entityId, resource }) => {
          const bucket = this.#table.get(entityId, resource);
          if (bucket === undefined || bucket.isExpired(atMs)) return undefined;
          return wholeOf({ entityId, resource }, bucket, atMs);
        });
      found.push(...(await this.#table.peek(read, undefined, page)));
    }
    return found;
  }

  async put(buckets: readonly WholeBucket[]): Promise<void> {
    for (const page of pagesOf(buckets)) {
      const write = () => {
        // Refuses a namespace that was deleted meanwhile.
        this.#table.recordedLink((page[0] as WholeBucket).entityId);
        for (const whole of page) {
          this.#table.set(whole.entityId, whole.resource, bucketOf(whole));
        }
      };
      await this.#table.step(write, undefined, page);
    }
  }

  async remove(names: readonly BucketName[]): Promise<void> {
    for (const page of pagesOf(names)) {
      const remove = () => {
        for (const { entityId, resource } of page) this.#table.delete(entityId, resource);
      };
      await this.#table.step(remove, undefined, page);
    }
  }
}

/** Returns the resources that have buckets, a page at a time. */
export async function* resourcesIn(table: BucketTable): AsyncGenerator<string> {
  for (let after: string | undefined; ; ) {
    const from = after;
    const resources = await table.peek(() => table.resources(from), undefined);
    if (resources.length === 0) return;
    yield* resources;
    after = resources.at(-1);
  }
}

function wholeOf(name: BucketName, bucket: Bucket, atMs: number): WholeBucket {
  const { build, link, ttl, numbers } = bucket;
  const limits = build.names.map((limit, at) => {
    const rate = build.rates[at] as Rate;
    const level = levelAt(numbers, at);
    const known = { name: limit, rate, consumedMilli: consumedAt(numbers, at) };
    // Leases end on the store that they were granted on.
    if (hasSlots(rate)) {
      return { ...known, consumedMilli: 0, level: fullLevel(rate, level.refilledAtMs) };
    }
    // Nothing accrues in a period: its end is in the place of the remainder.
    return hasPeriods(rate)
      ? { ...known, level: { ...level, remainder: 0 }, period: periodAt(numbers, at) }
      : { ...known, level };
  });
  return {
    ...name,
    version: build.version,
    source: build.source,
    link,
    ttl,
    limits: inOrder(limits),
    paused: inOrder(
      bucket.rare.paused
        .filter(({ level }) => atMs < level.endMs)
        .map((limit) => ({ name: limit.name, rate: limit.rate, period: limit.level })),
    ),
  };
}

/** Returns the bucket of a row, whose usage is counted. */
function bucketOf({ limits, version, source, link, ttl, paused = [] }: WholeBucket): Bucket {
  const names = limits.map(({ name }) => name);
  const rates = limits.map(({ rate }) => rate);
  const numbers = numbersFor(rates);
  limits.forEach(({ rate, level, period, consumedMilli }, at) => {
    fill(numbers, at, rate, level.refilledAtMs);
    setLevelAt(numbers, at, level);
    if (period !== undefined) setPeriodAt(numbers, at, period);
    countAt(numbers, at, consumedMilli);
  });
  const hour = hourOf(Math.max(0, ...limits.map(({ level }) => level.refilledAtMs)));
  const bucket = new Bucket(new Build(version, source, names, rates), link, ttl, hour, 0, numbers);
  bucket.markCounted(hour);
  bucket.keep({
    paused: paused.map(({ name, rate, period }) => ({ name, rate, level: period, lateMilli: 0 })),
  });
  return bucket;
}

function* pagesOf<Row>(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let start = 0; start < rows.length; start += ROWS) yield rows.slice(start, start + ROWS);
}
