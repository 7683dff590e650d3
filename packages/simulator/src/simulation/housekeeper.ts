/**
 * A client that changes the number of shards of buckets all the time, with what the library uses
 * for that, and without waiting until it is due: each of it must be right at any moment.
 */

import { Deadline } from "@zae-limiter/limiter/base/time.ts";
import { LinkChecks } from "@zae-limiter/limiter/buckets/distributed/consume/link-checks.ts";
import { decoded } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { BucketLoads } from "@zae-limiter/limiter/buckets/distributed/plan/writes-meter.ts";
import { Merger } from "@zae-limiter/limiter/buckets/distributed/shards/merger.ts";
import { SHARDS_MAX } from "@zae-limiter/limiter/buckets/distributed/shards/shards.ts";
import { splitFactor } from "@zae-limiter/limiter/buckets/distributed/shards/split-policy.ts";
import { Splitter } from "@zae-limiter/limiter/buckets/distributed/shards/splitter.ts";
import { CachedStates } from "@zae-limiter/limiter/buckets/distributed/state/cached-states.ts";
import { WRITES_PER_PARTITION } from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { InfrastructureError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { SimulatedProcess } from "@zae-limiter/testing/table/simulated-process.ts";

const TIMEOUT_MS = 2000;
const TTL_MULTIPLIER = 7;
const ANY_ROOM = { largestMilli: undefined, maxShards: SHARDS_MAX };

export interface HousekeeperTarget {
  readonly namespaceId: string;
  readonly entityId: string;
  readonly resource: string;
}

/** Traffic that asks for 2, 8, 32 and more shards in place of one. */
const WRITES_PER_SECOND = [1000, 4000, 16_000, 64_000];

export class Housekeeper {
  readonly #process: SimulatedProcess;
  /** For how long a bucket has had its shards. */
  readonly #loads: BucketLoads;

  constructor(process: SimulatedProcess) {
    this.#process = process;
    this.#loads = new BucketLoads(process.clock);
  }

  /** Splits or merges a bucket, if it is there. A store that fails is left alone. */
  async change(work: "split" | "merge", target: HousekeeperTarget): Promise<void> {
    const { namespaceId, entityId, resource } = target;
    const { store, clock, random, timer } = this.#process;
    const context = { store, namespaceId, clock, random };
    const timeoutMs = TIMEOUT_MS;
    try {
      const key = bucketKey(namespaceId, entityId, resource, 0);
      const first = decoded(await store.get(key, { consistent: true, timeoutMs }));
      if (first === undefined) return;
      const states = new CachedStates();
      if (work === "merge") {
        const options = { ttlMultiplier: TTL_MULTIPLIER, timeoutMs };
        await new Merger(context, states, options).halve(first);
        return;
      }
      const writesPerSecond = WRITES_PER_SECOND[Math.floor(random() * WRITES_PER_SECOND.length)];
      const load = { ...this.#loads.of(first), throttled: 1, writesPerSecond };
      const factor = splitFactor(first, "saturated", load, ANY_ROOM, clock());
      if (factor === 1) return;
      const options = { writesPerPartition: WRITES_PER_PARTITION, onWarning: () => undefined };
      const splitter = new Splitter(context, states, new LinkChecks(context, states), options);
      await splitter.split(first, factor, new Deadline(timer, timeoutMs));
    } catch (error) {
      if (!(error instanceof InfrastructureError)) throw error;
    }
  }
}
