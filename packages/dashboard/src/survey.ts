/**
 * Walks over all buckets of a namespace in the background, for the overview. A walk over 100,000
 * buckets takes longer than a page should wait, and on DynamoDB it costs money; so an answer is the
 * last finished walk, walks run only while they are asked for, and after each there is a pause that
 * grows with its length.
 */

import { unbreakable } from "@zae-limiter/limiter/base/listener.ts";
import { CascadedUsage } from "@zae-limiter/limiter/records/usage/cascaded-usage.ts";
import { INTERNALS, type RepositoryInternals } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { BucketCensus } from "./bucket-census.ts";
import { marked } from "./marks.ts";
import type { OverviewJson } from "./wire.ts";

/** How long the first answer waits for the first walk. */
const FIRST_WAIT_MS = 60;
const PAUSE_MS_MIN = 1000;
/** A walk may take a tenth of the time. */
const PAUSE_FACTOR = 9;
/** Walking never blocks the process for longer than some milliseconds. */
const STATES_PER_TURN = 1000;

interface Walk {
  readonly done: Promise<void>;
  readonly census: BucketCensus;
}

export class Survey {
  readonly #repository: Repository;
  readonly #internals: RepositoryInternals;
  readonly #warn = unbreakable<unknown>("dashboard", (error) => {
    throw error;
  });
  #finished: OverviewJson | undefined;
  #walk: Walk | undefined;
  #nextAtMs = 0;

  constructor(repository: Repository) {
    this.#repository = repository;
    this.#internals = repository[INTERNALS];
  }

  /** Returns the newest overview, and starts the next walk when its time has come. */
  async overview(): Promise<OverviewJson> {
    const walk = await this.#first();
    const census = walk?.census ?? new BucketCensus();
    return this.#finished ?? census.overview(this.#internals.clock(), 0, false);
  }

  /** Starts a walk when its time has come, and waits for the first one. */
  async #first(): Promise<Walk | undefined> {
    const { timer } = this.#internals;
    if (this.#walk === undefined && timer.nowMs() >= this.#nextAtMs) this.#start();
    const walk = this.#walk;
    if (this.#finished !== undefined || walk === undefined) return walk;
    const waiting = new AbortController();
    await Promise.race([walk.done, timer.sleep(FIRST_WAIT_MS, waiting.signal)]);
    waiting.abort();
    return walk;
  }

  /** Makes the next overview begin with a new walk, because limits were changed. */
  expire(): void {
    this.#nextAtMs = 0;
  }

  #start(): void {
    const { timer } = this.#internals;
    const startedAtMs = timer.nowMs();
    const census = new BucketCensus();
    const done = this.#read(census, startedAtMs)
      .catch((error: unknown) => this.#warn(error))
      .finally(() => {
        const tookMs = timer.nowMs() - startedAtMs;
        this.#nextAtMs = timer.nowMs() + Math.max(PAUSE_MS_MIN, PAUSE_FACTOR * tookMs);
        this.#walk = undefined;
      });
    this.#walk = { done, census };
  }

  async #read(census: BucketCensus, startedAtMs: number): Promise<void> {
    const { buckets, timer, clock } = this.#internals;
    let states = 0;
    for await (const state of buckets.listAll()) {
      census.add(state);
      states += 1;
      if (states % STATES_PER_TURN === 0) await timer.sleep(0);
    }
    const cascaded = new CascadedUsage(this.#internals.records);
    await census.leaveOutCascaded((entityIds) => cascaded.nearest(entityIds));
    const tookMs = Math.round(timer.nowMs() - startedAtMs);
    this.#finished = await marked(this.#repository, census.overview(clock(), tookMs, true));
  }
}
