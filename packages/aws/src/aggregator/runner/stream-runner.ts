/**
 * Runs the aggregator on a stream for as long as it is wanted: finds the shards, shares them with
 * other processes, remembers how far it has come, and goes on from there.
 */

import type { Clock, Timer } from "@zae-limiter/limiter/base/time.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { StreamShard } from "@zae-limiter/limiter/storage/change-source.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Aggregator } from "../aggregator.ts";
import { type AggregatorCounters, added, counterFields, NOTHING_DONE } from "../counters.ts";
import { errorFields, type Log } from "../log.ts";
import { LeaseItems, type ShardLease, type WorkerSign } from "./lease-items.ts";
import type { ShardSource, SourceShards } from "./shard-source.ts";
import { ShardWorker } from "./shard-worker.ts";

interface StreamRunnerOptions {
  readonly aggregator: Aggregator;
  readonly source: ShardSource;
  readonly store: ItemStore;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly log: Log;
  /** Names this process among those that share the stream. */
  readonly worker: string;
  /** How long a process may be silent before its shards are taken over. */
  readonly leaseMs: number;
  readonly batchMs: number;
  readonly batchSize: number;
  /** How often a line with the counters is logged. */
  readonly reportMs: number;
}

/** Renewals within the time of a lease, so that one late renewal does not lose it. */
const BEATS_PER_LEASE = 4;

export class StreamRunner {
  readonly #options: StreamRunnerOptions;
  readonly #workers = new Map<string, ShardWorker>();
  readonly #pulse: Pulse;
  #source: SourceShards | undefined;
  #counters = NOTHING_DONE;
  #reportedAtMs: number;

  constructor(options: StreamRunnerOptions) {
    this.#options = options;
    this.#pulse = new Pulse(options.leaseMs);
    this.#reportedAtMs = options.timer.nowMs();
  }

  /** Runs until the signal stops it, then finishes the work in progress and releases its shards. */
  async run(signal: AbortSignal): Promise<AggregatorCounters> {
    const { timer, leaseMs, log, worker } = this.#options;
    log("info", "aggregator started", { worker });
    while (!signal.aborted) {
      try {
        await this.#beat();
      } catch (error) {
        // A missing table, or one that may not be read, does not get better by itself.
        if (this.#source === undefined && !(error instanceof RateLimiterUnavailable)) throw error;
        log("error", "shards could not be shared out", errorFields(error));
      }
      this.#report();
      await timer.sleep(leaseMs / BEATS_PER_LEASE, signal);
    }
    await this.#leave();
    log("info", "aggregator stopped", { worker, ...counterFields(this.#counters) });
    return this.#counters;
  }

  async #beat(): Promise<void> {
    const { clock, source: from, store, worker } = this.#options;
    const source = await from.discover();
    if (source.generation !== this.#source?.generation) await this.#stopAll();
    this.#source = source;
    const items = new LeaseItems(store, source.generation);
    await items.sign(worker, clock());
    await this.#renewOwn(items);
    const { leases, workers } = await items.read();
    const dead = this.#pulse.deadAmong(leases, workers, this.#options.timer.nowMs());
    const alive = new Set([...workers.keys()].filter((id) => !dead.workers.has(id)));
    const plan = assign({
      worker,
      shards: source.shards,
      leases: this.#asKnownHere(leases),
      workers: alive.add(worker),
      dead: dead.shards,
    });
    await Promise.all([
      ...plan.release.map((shardId) => this.#release(items, shardId)),
      ...plan.take.map((shardId) => this.#take(items, source, shardId, leases)),
    ]);
  }

  /** Returns leases; one of this process that no worker here reads counts as free. */
  #asKnownHere(leases: ReadonlyMap<string, ShardLease>): ReadonlyMap<string, ShardLease> {
    const { worker } = this.#options;
    return new Map(
      [...leases].map(([id, lease]) => {
        const isLost = lease.owner === worker && !this.#workers.has(id);
        return [id, isLost ? { ...lease, owner: undefined } : lease];
      }),
    );
  }

  async #renewOwn(items: LeaseItems): Promise<void> {
    await Promise.all([...this.#workers].map((entry) => this.#renew(items, ...entry)));
  }

  async #renew(items: LeaseItems, shardId: string, reader: ShardWorker): Promise<void> {
    const { clock, log, worker } = this.#options;
    const { progress } = reader;
    const kept = await items.renew(shardId, worker, progress, clock());
    if (kept && !progress.done) return;
    this.#workers.delete(shardId);
    await reader.stop();
    log("info", kept ? "shard finished" : "shard lost to another process", { shard: shardId });
  }

  async #take(
    items: LeaseItems,
    source: SourceShards,
    shardId: string,
    leases: ReadonlyMap<string, ShardLease>,
  ): Promise<void> {
    const { clock, log, worker } = this.#options;
    const lease = await items.take(shardId, leases.get(shardId), worker, clock());
    if (lease === undefined) return;
    const { checkpoint } = lease;
    log("info", "shard taken", { shard: shardId, checkpoint });
    const onCounters = (counters: AggregatorCounters) => {
      this.#counters = added(this.#counters, counters);
    };
    const shard = { source, shardId, checkpoint, onCounters };
    this.#workers.set(shardId, new ShardWorker({ ...this.#options, ...shard }));
  }

  async #release(items: LeaseItems, shardId: string): Promise<void> {
    const { clock, log, worker } = this.#options;
    const reader = this.#workers.get(shardId);
    this.#workers.delete(shardId);
    if (reader === undefined) return;
    await reader.stop();
    await items.release(shardId, worker, reader.progress, clock());
    log("info", "shard released", { shard: shardId });
  }

  async #stopAll(): Promise<void> {
    const readers = [...this.#workers.values()];
    this.#workers.clear();
    await Promise.all(readers.map((reader) => reader.stop()));
  }

  /** Releases the shards. Where that fails, other processes notice the dead leases. */
  async #leave(): Promise<void> {
    const { store, worker, log } = this.#options;
    if (this.#source === undefined) return;
    const items = new LeaseItems(store, this.#source.generation);
    try {
      await Promise.all([...this.#workers.keys()].map((id) => this.#release(items, id)));
      await items.signOff(worker);
    } catch (error) {
      log("warning", "shards could not be released", errorFields(error));
      await this.#stopAll();
    }
  }

  #report(): void {
    const { timer, reportMs, log, worker } = this.#options;
    if (timer.nowMs() - this.#reportedAtMs < reportMs) return;
    this.#reportedAtMs = timer.nowMs();
    const shards = this.#workers.size;
    log("info", "aggregator at work", { worker, shards, ...counterFields(this.#counters) });
  }
}

interface AssignmentInput {
  readonly worker: string;
  readonly shards: readonly StreamShard[];
  readonly leases: ReadonlyMap<string, ShardLease>;
  /** Workers that are alive, this one included. */
  readonly workers: ReadonlySet<string>;
  /** Shards whose lease is dead. */
  readonly dead: ReadonlySet<string>;
}

interface Assignment {
  readonly take: readonly string[];
  /** Shards to release to processes that have fewer. */
  readonly release: readonly string[];
}

/**
 * Assigns the shards of a stream to processes, an equal share to each. A process that has more
 * releases the rest by itself, so that no process has to take a shard from another.
 */
export function assign(input: AssignmentInput): Assignment {
  const { worker, leases, workers, dead } = input;
  const readable = input.shards.filter((shard) => isReadable(shard, input));
  const share = Math.ceil(readable.length / Math.max(1, workers.size));
  const own = readable.filter(({ id }) => leases.get(id)?.owner === worker);
  const free = readable.filter(({ id }) => {
    const owner = leases.get(id)?.owner;
    return owner === undefined || (owner !== worker && dead.has(id));
  });
  return {
    take: free.slice(0, Math.max(0, share - own.length)).map(({ id }) => id),
    release: own.slice(share).map(({ id }) => id),
  };
}

/** Returns whether the shards before it are done: changes of one item continue from these. */
function isReadable({ id, parentId }: StreamShard, input: AssignmentInput): boolean {
  const { leases, shards } = input;
  if (leases.get(id)?.done === true) return false;
  const parent = shards.find((shard) => shard.id === parentId);
  return parent === undefined || leases.get(parent.id)?.done === true;
}

interface Seen {
  readonly beat: number;
  readonly sinceMs: number;
}

/** Finds dead processes: their beat has not changed for the time of a lease, by the local timer. */
class Pulse {
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
