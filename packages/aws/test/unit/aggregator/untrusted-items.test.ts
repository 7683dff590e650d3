/** Nothing read from a table is trusted: every decoder, on thousands of items that cannot be. */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { archiveObjects, removedEvents } from "@zae-limiter/aws/aggregator/audit-archive.ts";
import { bucketActivity } from "@zae-limiter/aws/aggregator/bucket-activity.ts";
import { foldUsage } from "@zae-limiter/aws/aggregator/usage-fold.ts";
import { balancesAt, decoded } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { SHARDS_MAX } from "@zae-limiter/limiter/core/bucket.ts";
import { WINDOW_TYPES } from "@zae-limiter/limiter/core/windows.ts";
import { ZaeLimiterError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { decodeEvent, retentionDaysIn } from "@zae-limiter/limiter/records/audit.ts";
import { registeredResources } from "@zae-limiter/limiter/records/config/config-registry.ts";
import {
  decodeLimits,
  onUnavailableIn,
} from "@zae-limiter/limiter/records/config/limit-attributes.ts";
import { decodeEntity } from "@zae-limiter/limiter/records/entities/entity-item.ts";
import { decodeUsage, usageCounters } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { decodeVersion } from "@zae-limiter/limiter/records/version-record.ts";
import { decodeItem, encodeItem } from "@zae-limiter/limiter/storage/attribute-value.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { casesOf } from "@zae-limiter/test-support/effort.ts";
import { tellFigures } from "@zae-limiter/test-support/figures.ts";
import { hostileItem, SOUND_ITEMS } from "@zae-limiter/test-support/hostile-items.ts";
import { seededRandom } from "@zae-limiter/test-support/seeded-random.ts";
import { expect, test } from "vitest";
import { change } from "./changes.ts";

const SEED = Number(process.env.FC_SEED ?? 20_261_116);
const ITEMS = process.env.ZAEL_SOAK === undefined ? casesOf(20_000) : 100_000;
const NOW_MS = 1_800_000_000_500;

const DECODERS: Readonly<Record<string, (item: Item) => unknown>> = {
  bucket: (item) => {
    const bucket = decoded(item);
    if (bucket === undefined) return undefined;
    const { shard, shardCount } = bucket;
    if (shardCount > SHARDS_MAX || shard >= SHARDS_MAX) throw new Error("too many shards");
    for (const { accruedMilli } of balancesAt(bucket, NOW_MS).values()) {
      if (!Number.isSafeInteger(accruedMilli)) throw new Error(`accrued ${accruedMilli}`);
    }
    return bucket;
  },
  usage: (item) => [decodeUsage(item), usageCounters(item)],
  entity: (item) => JSON.stringify(decodeEntity(item)),
  event: (item) => JSON.stringify(decodeEvent(item)),
  limits: (item) => [decodeLimits(item), onUnavailableIn(item), retentionDaysIn(item)],
  registry: registeredResources,
  version: decodeVersion,
  change: (item) => {
    const changes = [change(undefined, item), change(item, item), change(item, undefined)];
    const { events } = removedEvents(changes);
    return [foldUsage(changes, WINDOW_TYPES), bucketActivity(changes), archiveObjects(events)];
  },
  wire: (item) => decodeItem(encodeItem(item)),
};

/** Runs all decoders on an item; returns how many of them refused it. */
function refusals(item: Item): number {
  let refused = 0;
  for (const [name, decode] of Object.entries(DECODERS)) {
    try {
      decode(item);
    } catch (error) {
      if (!(error instanceof ZaeLimiterError)) {
        const shown = JSON.stringify(encodeItem(item)).slice(0, 2000);
        throw new Error(`the decoder of ${name} failed on ${shown}`, { cause: error });
      }
      refused += 1;
    }
  }
  return refused;
}

/** Returns the bytes in use after garbage was collected. */
function heapUsed(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}

test("a sound item of every kind is refused by no decoder", () => {
  for (const item of SOUND_ITEMS) expect([item.SK, refusals(item)]).toEqual([item.SK, 0]);
});

test(`${ITEMS} hostile items lead to an answer or an error of ours (FC_SEED=${SEED})`, () => {
  const random = seededRandom(SEED);
  let refused = 0;
  const used: number[] = [];
  for (let count = 1; count <= ITEMS; count += 1) {
    refused += refusals(hostileItem(random));
    if (count % (ITEMS / 2) === 0) used.push(heapUsed());
  }
  tellFigures({ seed: SEED, items: ITEMS, decoders: Object.keys(DECODERS).length, refused });
  expect(refused).toBeGreaterThan(ITEMS / 10);
  const [halfway = 0, atEnd = 0] = used;
  // Caches of names and shapes are bounded: the second half of the items adds nothing to them.
  expect(atEnd).toBeLessThanOrEqual(halfway + 2 ** 24);
});
