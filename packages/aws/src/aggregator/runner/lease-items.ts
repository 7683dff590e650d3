/**
 * Coordination of the processes that share a stream, as items of the table itself: which processes
 * are alive, which shard each one reads, and how far it has come.
 *
 * A lease has a beat that its owner raises. Others take it for dead when the beat has not changed
 * for a while by their own watch, so clocks need not agree. Leases only spare work: two readers of
 * one shard would disturb each other, but still count everything once.
 */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import { RESERVED_NAMESPACE } from "@zae-limiter/limiter/domain/names.ts";
import { inNamespace } from "@zae-limiter/limiter/records/keys.ts";
import {
  flagAt,
  type Item,
  type Key,
  numberAt,
  textAt,
} from "@zae-limiter/limiter/storage/item.ts";
import type { Condition, ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";

const PARTITION = `${RESERVED_NAMESPACE}/AGGREGATOR#`;
const SHARD_PREFIX = "#SHARD#";
const WORKER_PREFIX = "#WORKER#";
/** Longer than a stream keeps its records. */
const KEPT_SECONDS = 3 * 86_400;

export interface ShardLease {
  readonly shardId: string;
  /** The process that reads the shard; absent when none does. */
  readonly owner: string | undefined;
  readonly beat: number;
  /** The last sequence number that is done. */
  readonly checkpoint: string | undefined;
  /** Whether the shard was read to its end, so that the shards that follow it may be read. */
  readonly done: boolean;
}

type Progress = Pick<ShardLease, "checkpoint" | "done">;

export interface WorkerSign {
  readonly id: string;
  readonly beat: number;
}

export class LeaseItems {
  readonly #store: ItemStore;
  readonly #generation: string;

  constructor(store: ItemStore, generation: string) {
    this.#store = store;
    this.#generation = generation;
  }

  async read(): Promise<{ leases: Map<string, ShardLease>; workers: Map<string, WorkerSign> }> {
    const leases = new Map<string, ShardLease>();
    const workers = new Map<string, WorkerSign>();
    const prefix = this.#shardKey("").SK;
    for await (const item of this.#store.query({ partition: PARTITION, consistent: true })) {
      const beat = numberAt(item, "beat") ?? 0;
      if (item.SK.startsWith(WORKER_PREFIX)) {
        const id = item.SK.slice(WORKER_PREFIX.length);
        workers.set(id, { id, beat });
      } else if (item.SK.startsWith(prefix)) {
        const shardId = item.SK.slice(prefix.length);
        leases.set(shardId, leaseIn(item, shardId, beat));
      }
    }
    return { leases, workers };
  }

  /** Takes a shard without a live owner, unless another process was faster. */
  async take(shardId: string, seen: ShardLease | undefined, worker: string, nowMs: number) {
    const condition: Condition =
      seen === undefined
        ? [{ is: "absent", name: "beat" }]
        : [{ is: "=", name: "beat", value: seen.beat }];
    const result = await this.#store.update(
      this.#shardKey(shardId),
      { set: { owner: worker, ...common(nowMs) }, add: { beat: 1 } },
      condition,
    );
    return result.ok && result.item !== undefined
      ? leaseIn(result.item, shardId, numberAt(result.item, "beat") ?? 0)
      : undefined;
  }

  /** Keeps a shard and stores its position; false when another process has it by now. */
  renew(shardId: string, worker: string, progress: Progress, nowMs: number): Promise<boolean> {
    return this.#save(shardId, worker, progress, nowMs, []);
  }

  /** Releases a shard, so that other processes need not wait until the lease is dead. */
  release(shardId: string, worker: string, progress: Progress, nowMs: number): Promise<boolean> {
    return this.#save(shardId, worker, progress, nowMs, ["owner"]);
  }

  /** Shows that this process is alive. */
  async sign(worker: string, nowMs: number): Promise<void> {
    await this.#store.update(workerKey(worker), { set: common(nowMs), add: { beat: 1 } });
  }

  async signOff(worker: string): Promise<void> {
    await this.#store.delete(workerKey(worker));
  }

  async #save(id: string, worker: string, progress: Progress, nowMs: number, remove: string[]) {
    const set = { ...progressOf(progress), ...common(nowMs) };
    const change = { set, add: { beat: 1 }, remove };
    const mine: Condition = [{ is: "=", name: "owner", value: worker }];
    const { ok } = await this.#store.update(this.#shardKey(id), change, mine);
    return ok;
  }

  #shardKey(shardId: string): Key {
    return { PK: PARTITION, SK: `${SHARD_PREFIX}${this.#generation}${shardId}` };
  }
}

function workerKey(worker: string): Key {
  return { PK: PARTITION, SK: WORKER_PREFIX + worker };
}

function common(nowMs: number) {
  const ttl = Math.ceil(nowMs / 1000) + KEPT_SECONDS;
  return { ttl, ...inNamespace(RESERVED_NAMESPACE, PARTITION) };
}

function progressOf({ checkpoint, done }: Progress) {
  return { done, ...defined({ checkpoint }) };
}

function leaseIn(item: Item, shardId: string, beat: number): ShardLease {
  return {
    shardId,
    owner: textAt(item, "owner"),
    beat,
    checkpoint: textAt(item, "checkpoint"),
    done: flagAt(item, "done"),
  };
}
