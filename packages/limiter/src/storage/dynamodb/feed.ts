/**
 * The feed of a table, read from its stream. A stream consists of shards that close and are
 * followed by children, so a child is read only when its parent is read to the end: that keeps the
 * changes of one item in order.
 */

import { setTimeout as pause } from "node:timers/promises";
import type { Shard } from "@aws-sdk/client-dynamodb-streams";
import { inParallel } from "../../base/bounded.ts";
import type { ChangeRecord, ChangesOptions } from "../item-store.ts";
import { formatPosition, type Mark, parsePosition } from "./position.ts";
import { type ShardBatch, ShardReader } from "./shard-reader.ts";
import { changeOf, findStream, listShards } from "./table-stream.ts";
import type { Calls } from "./transport/calls.ts";

/** DynamoDB allows five reads of a shard per second. */
const POLL_MS = 200;
/** How often to search for the children of a closed shard; they may appear a little later. */
const DISCOVER_MS = 1000;
const PARALLEL = 8;

type Start = NonNullable<ChangesOptions["from"]>;

/** Yields changes from `from` on, until the signal aborts. */
export async function* readChanges(
  calls: Calls,
  from: Start,
  signal: AbortSignal,
): AsyncGenerator<ChangeRecord> {
  try {
    yield* new StreamReader(calls).read(from, signal);
  } catch (error) {
    // After a stop the outcome of the last request does not matter.
    if (!signal.aborted) throw error;
  }
}

class StreamReader {
  readonly #calls: Calls;
  readonly #reading = new Map<string, ShardReader>();
  readonly #ended = new Set<string>();
  /** Shards that were read to their end and whose children have not shown up yet. */
  readonly #childless = new Map<string, Mark>();
  /** Marks to begin from in shards that were known before; others are read from their beginning. */
  #front: ReadonlyMap<string, Mark> = new Map();
  #arn = "";
  #discoveredAtMs = Number.NEGATIVE_INFINITY;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  async *read(from: Start, signal: AbortSignal): AsyncGenerator<ChangeRecord> {
    await this.#open(from);
    while (!signal.aborted) {
      let quiet = true;
      for (const [shard, batch] of await this.#nextBatches()) {
        quiet &&= batch.records.length === 0;
        yield* this.#accept(shard, batch, signal);
      }
      await this.#followEnded();
      if (quiet) await pause(POLL_MS, undefined, { signal });
    }
  }

  async #open(from: Start): Promise<void> {
    if (typeof from === "object") this.#front = parsePosition(from.after);
    this.#arn = await findStream(this.#calls);
    const shards = await listShards(this.#calls, this.#arn);
    for (const id of from === "now" ? parentsAmong(shards) : ancestorsOf(this.#front, shards)) {
      this.#ended.add(id);
    }
    this.#startReadable(shards);
    if (from === "now") {
      await inParallel([...this.#reading.values()], PARALLEL, (shard) => shard.skipToNow());
    }
  }

  async #nextBatches(): Promise<Map<ShardReader, ShardBatch>> {
    const batches = new Map<ShardReader, ShardBatch>();
    await inParallel([...this.#reading.values()], PARALLEL, async (shard) => {
      batches.set(shard, await shard.next());
    });
    return batches;
  }

  *#accept(shard: ShardReader, batch: ShardBatch, signal: AbortSignal): Generator<ChangeRecord> {
    for (const record of batch.records) {
      if (signal.aborted) return;
      const sequence = record.dynamodb?.SequenceNumber ?? "";
      shard.advance(sequence);
      yield changeOf(record, shard.id, sequence, this.#position());
    }
    if (batch.ended) this.#end(shard);
  }

  #end(shard: ShardReader): void {
    this.#reading.delete(shard.id);
    this.#ended.add(shard.id);
    this.#childless.set(shard.id, shard.mark);
    this.#discoveredAtMs = Number.NEGATIVE_INFINITY;
  }

  /** Starts the children of shards that were read to their end. */
  async #followEnded(): Promise<void> {
    if (this.#childless.size === 0) return;
    if (performance.now() - this.#discoveredAtMs < DISCOVER_MS) return;
    this.#startReadable(await listShards(this.#calls, this.#arn));
    this.#discoveredAtMs = performance.now();
  }

  #startReadable(shards: ReadonlyMap<string, Shard>): void {
    for (const [id, { ParentShardId: parent = "" }] of shards) {
      if (this.#reading.has(id) || this.#ended.has(id)) continue;
      if (shards.has(parent) && !this.#ended.has(parent)) continue;
      const mark = this.#front.get(id) ?? { from: "horizon" };
      this.#reading.set(id, new ShardReader(this.#calls, this.#arn, id, mark));
      this.#childless.delete(parent);
    }
  }

  #position(): string {
    const reading = [...this.#reading.values()].map(({ id, mark }) => [id, mark] as const);
    return formatPosition(new Map([...this.#childless, ...reading]));
  }
}

/**
 * Returns the shards that have children, and therefore get no more records. A closed shard also has
 * a last sequence number, but one local DynamoDB shows that for open shards too.
 */
function parentsAmong(shards: ReadonlyMap<string, Shard>): Set<string> {
  return new Set([...shards.values()].flatMap(({ ParentShardId }) => ParentShardId ?? []));
}

/** Returns the ancestors of the shards in a position: they were read to their end. */
function ancestorsOf(
  front: ReadonlyMap<string, Mark>,
  shards: ReadonlyMap<string, Shard>,
): Set<string> {
  const ancestors = new Set<string>();
  for (const id of front.keys()) {
    let parent = shards.get(id)?.ParentShardId;
    while (parent !== undefined && !ancestors.has(parent) && !front.has(parent)) {
      ancestors.add(parent);
      parent = shards.get(parent)?.ParentShardId;
    }
  }
  return ancestors;
}
