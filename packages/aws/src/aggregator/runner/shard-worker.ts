/** Reads one shard and hands it to the aggregator, batch by batch. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { AUDIT_PREFIX, STATE_SK } from "@zae-limiter/limiter/records/keys.ts";
import type { ChangeRecord } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Aggregator } from "../aggregator.ts";
import type { AggregatorCounters } from "../counters.ts";
import { errorFields, type Log } from "../log.ts";
import { changeOf, type StreamChange } from "../stream-change.ts";
import type { ShardFeed, SourceShards } from "./shard-source.ts";

/** DynamoDB allows five reads of a shard per second. */
const POLL_MS = 200;
/** A page with this many records probably has a successor. */
const FULL_PAGE = 500;
const BACKOFF_MS_MAX = 10_000;

interface ShardWorkerOptions {
  readonly aggregator: Aggregator;
  readonly source: SourceShards;
  readonly shardId: string;
  readonly checkpoint: string | undefined;
  readonly timer: Timer;
  readonly log: Log;
  /** How long changes are gathered before they are counted. */
  readonly batchMs: number;
  readonly batchSize: number;
  readonly onCounters: (counters: AggregatorCounters) => void;
}

export class ShardWorker {
  readonly #options: ShardWorkerOptions;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;
  #checkpoint: string | undefined;
  #done = false;
  #failures = 0;
  /** Changes that were read, and are not counted yet. */
  #pending: ChangeRecord[] = [];
  /** When the oldest of them was read. */
  #sinceMs = 0;

  constructor(options: ShardWorkerOptions) {
    this.#options = options;
    this.#checkpoint = options.checkpoint;
    this.#running = this.#run();
  }

  get progress(): { readonly checkpoint: string | undefined; readonly done: boolean } {
    return { checkpoint: this.#checkpoint, done: this.#done };
  }

  /** Ends when the batch at work is done. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Runs until the shard ends or it is stopped; failures are logged and tried again. */
  async #run(): Promise<void> {
    const { log, shardId } = this.#options;
    while (!this.#isOver) {
      const feed = this.#options.source.open(shardId, this.#checkpoint);
      try {
        await this.#follow(feed);
      } catch (error) {
        this.#failures += 1;
        log("error", "a shard could not be read", { shard: shardId, ...errorFields(error) });
        this.#skipLost(error);
        await this.#pause(this.#failures);
      } finally {
        this.#pending = [];
        await feed.close();
      }
    }
  }

  async #follow(feed: ShardFeed): Promise<void> {
    while (!this.#isOver) {
      const { changes, ended } = await feed.next();
      if (this.#pending.length === 0) this.#sinceMs = this.#options.timer.nowMs();
      this.#pending.push(...changes);
      if (ended || this.#isDue) await this.#process();
      if (this.#pending.length === 0) {
        this.#failures = 0;
        this.#done = ended;
      }
      if (changes.length < FULL_PAGE && !this.#isOver) {
        await this.#options.timer.sleep(POLL_MS, this.#stop.signal);
      }
    }
  }

  get #isDue(): boolean {
    const { batchMs, batchSize, timer } = this.#options;
    return timer.nowMs() - this.#sinceMs >= batchMs || this.#pending.length >= batchSize;
  }

  /** Counts what is pending; what failed stays pending, and is tried again until it works. */
  async #process(): Promise<void> {
    const { aggregator, source, onCounters } = this.#options;
    for (let failures = 0; this.#pending.length > 0 && !this.#stop.signal.aborted; ) {
      const changes = this.#pending
        .filter(matters)
        .map((record): StreamChange => changeOf(record, source.generation));
      const { counters, failedIds } = await aggregator.process(changes);
      onCounters(counters);
      const failed = this.#pending.findIndex(({ sequence }) => sequence === failedIds[0]);
      const done = failed === -1 ? this.#pending.length : failed;
      this.#checkpoint = this.#pending[done - 1]?.sequence ?? this.#checkpoint;
      this.#pending = this.#pending.slice(done);
      if (this.#pending.length === 0) return;
      failures += 1;
      await this.#pause(failures);
    }
  }

  /** Skips records that the stream has dropped: they cannot be counted, but later ones can. */
  #skipLost(error: unknown): void {
    if (!(error instanceof ValidationError) || error.field !== "position") return;
    const { log, shardId } = this.#options;
    const fields = { shard: shardId, after: this.#checkpoint };
    log("error", "changes were lost: the stream does not keep them any more", fields);
    this.#checkpoint = undefined;
  }

  get #isOver(): boolean {
    return this.#done || this.#stop.signal.aborted;
  }

  async #pause(failures: number): Promise<void> {
    const pauseMs = Math.min(BACKOFF_MS_MAX, POLL_MS * 2 ** failures);
    await this.#options.timer.sleep(pauseMs, this.#stop.signal);
  }
}

/** Returns whether a change matters: the stream shows everything, also the aggregator's writes. */
function matters({ key: { SK } }: ChangeRecord): boolean {
  return SK === STATE_SK || SK.startsWith(AUDIT_PREFIX);
}
