/** Finds dead processes: their beat has not changed for the time of a lease, by the local timer. */

import type { ShardLease, WorkerSign } from "./lease-items.ts";

interface Seen {
  readonly beat: number;
  readonly sinceMs: number;
}

export class Pulse {
  readonly #leaseMs: number;
  #shards = new Map<string, Seen>();
  #workers = new Map<string, Seen>();

  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs;
  }

  deadAmong(
    leases: ReadonlyMap<string, ShardLease>,
    workers: ReadonlyMap<string, WorkerSign>,
    nowMs: number,
  ): { readonly shards: ReadonlySet<string>; readonly workers: ReadonlySet<string> } {
    this.#shards = watched(this.#shards, leases, nowMs);
    this.#workers = watched(this.#workers, workers, nowMs);
    return {
      shards: this.#silent(this.#shards, nowMs),
      workers: this.#silent(this.#workers, nowMs),
    };
  }

  #silent(seen: ReadonlyMap<string, Seen>, nowMs: number): Set<string> {
    const silent = [...seen].filter(([, { sinceMs }]) => nowMs - sinceMs >= this.#leaseMs);
    return new Set(silent.map(([id]) => id));
  }
}

function watched(
  before: ReadonlyMap<string, Seen>,
  now: ReadonlyMap<string, { readonly beat: number }>,
  nowMs: number,
): Map<string, Seen> {
  return new Map(
    [...now].map(([id, { beat }]) => {
      const known = before.get(id);
      return [id, known?.beat === beat ? known : { beat, sinceMs: nowMs }];
    }),
  );
}
