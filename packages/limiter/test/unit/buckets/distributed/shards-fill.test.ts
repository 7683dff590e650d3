/** How much of its refill a sharded bucket loses, compared with an ideal one in one piece. */

import { setImmediate as tick } from "node:timers/promises";
import type { BucketConfig } from "@zae-limiter/limiter/buckets/leg.ts";
import { splitInto } from "@zae-limiter/test-support/force-split.ts";
import { type Client, configOf, TARGET, Table } from "@zae-limiter/test-support/table.ts";
import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import { expect, test } from "vitest";

const NAMED = { namespaceId: "ns", ...TARGET };
const CAPACITY = 1000;
const PER_MS = CAPACITY / 60_000;
const CALLS = 250;

/** Tokens missing at the end, as a part of the capacity, and the part of calls refused wrongly. */
async function history(seed: number, shards: number, load: number, most: number, cools = false) {
  const random = seededRandom(seed);
  const table = new Table();
  const config = configOf([`a:${CAPACITY}/min`]);
  const client = table.client();
  await client.take(config, { a: 1000 });
  await splitInto(table.items, NAMED, shards, table.nowMs);
  if (cools) await coolDown(table, client, config);
  let ideal = cools ? CAPACITY : CAPACITY - 1;
  let wrong = 0;
  for (let call = 0; call < CALLS; call += 1) {
    const amount = 1 + Math.floor(random() * most);
    const pauseMs = Math.floor((2 * random() * amount) / PER_MS / load);
    table.nowMs += pauseMs;
    ideal = Math.min(CAPACITY, ideal + pauseMs * PER_MS);
    const { outcome } = await client.take(config, { a: amount * 1000 });
    if (outcome === "granted") ideal -= amount;
    else if (amount <= ideal) wrong += 1;
  }
  const [left] = await client.balances(config);
  return { missing: (ideal - (left as number) / 1000) / CAPACITY, wrong: wrong / CALLS };
}

/** Makes a call a minute until the shards are merged, and then lets the bucket fill. */
async function coolDown(table: Table, client: Client, config: BucketConfig): Promise<void> {
  for (let minute = 0; minute < 90; minute += 1) {
    table.nowMs += 60_000;
    await client.take(config, { a: 1000 });
    await tick();
  }
  table.nowMs += 60_000;
}

// A shard refills by itself: what one gives, the others cannot make up for while they are full.
test.each([
  [0.9, 20, 0.05],
  [1.3, 20, 0.04],
  [0.9, 60, 0.14],
])(
  "with a load of %d and amounts up to %d, less than %d of it is missing",
  async (load, most, bound) => {
    let missing = 0;
    let wrong = 0;
    const runs = 8;
    for (let seed = 1; seed <= runs; seed += 1) {
      const result = await history(seed, 2 ** (1 + (seed % 4)), load, most);
      missing += result.missing / runs;
      wrong += result.wrong / runs;
    }
    expect(wrong).toBeLessThan(0.02);
    expect(missing).toBeLessThan(bound);
    expect(missing).toBeGreaterThan(-0.0001);
  },
);

test.each([
  [0.9, 20],
  [1.3, 20],
  [0.9, 60],
])(
  "a bucket that no longer needs its shards misses at most 0.02 of it at a load of %d with amounts up to %d",
  async (load, most) => {
    for (let seed = 1; seed <= 4; seed += 1) {
      const { missing, wrong } = await history(seed, 2 ** seed, load, most, true);
      expect(missing).toBeLessThan(0.02);
      expect(missing).toBeGreaterThan(-0.0001);
      expect(wrong).toBe(0);
    }
  },
);
