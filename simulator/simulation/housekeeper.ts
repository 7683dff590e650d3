/**
 * A client that changes the number of shards of buckets all the time, with what the library uses
 * for that, and without waiting until it is due: each of it must be right at any moment.
 */

import { CachedStates } from "../../src/buckets/distributed/cached-states.ts";
import { LinkChecks } from "../../src/buckets/distributed/link-checks.ts";
import { Merger } from "../../src/buckets/distributed/merger.ts";
import { decoded } from "../../src/buckets/distributed/seen-bucket.ts";
import { Splitter } from "../../src/buckets/distributed/splitter.ts";
import { Deadline } from "../../src/domain/deadline.ts";
import { InfrastructureError } from "../../src/domain/errors.ts";
import { bucketKey } from "../../src/records/keys.ts";
import type { SimulatedProcess } from "../../src/testing/table/simulated-process.ts";

const TIMEOUT_MS = 2000;
const TTL_MULTIPLIER = 7;

export interface HousekeeperTarget {
  readonly namespaceId: string;
  readonly entityId: string;
  readonly resource: string;
}

export class Housekeeper {
  readonly #process: SimulatedProcess;
  #splitter: Splitter | undefined;

  constructor(process: SimulatedProcess) {
    this.#process = process;
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
      // It remembers for how long a bucket has had its shards.
      this.#splitter ??= new Splitter(context, states, new LinkChecks(context, states), {
        onWarning: () => undefined,
      });
      await this.#splitter.relieve(first, "saturated", new Deadline(timer, timeoutMs));
    } catch (error) {
      if (!(error instanceof InfrastructureError)) throw error;
    }
  }
}
