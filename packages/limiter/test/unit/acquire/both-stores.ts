/** Limiters with buckets in this process, and limiters with buckets that are items. */

import type { AcquireRequest } from "@zae-limiter/limiter/acquire/acquire-request.ts";
import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import { SimulatedTable } from "@zae-limiter/testing/table/simulated-table.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { expect } from "vitest";

/** Opens a limiter with buckets of either kind. */
export const STORES = {
  memory: (time: VirtualTime) =>
    RateLimiter.open("memory:", { clock: time.clock, timer: time.timer }),
  "distributed buckets": (time: VirtualTime) =>
    new SimulatedTable({ time, seed: 1 }).process().open(),
};

/** For a second a refusal may be repeated from memory, without a read of the bucket. */
const STEP_MS = 1000;

/** A limiter on one of the stores, and the leases that its story has taken. */
export abstract class Telling<Step> {
  protected readonly limiter: RateLimiter;
  readonly #leases: Lease[] = [];

  constructor(repository: Repository) {
    this.limiter = new RateLimiter(repository);
  }

  /** Prepares the store before the first step. */
  async begin(): Promise<void> {}

  protected abstract live(step: Step): Promise<unknown>;

  async tell(step: Step): Promise<unknown> {
    try {
      return await this.live(step);
    } catch (error) {
      const { name, message } = error as Error;
      return { name, message };
    }
  }

  end(): Promise<void> {
    return this.limiter.close();
  }

  protected async take(request: AcquireRequest): Promise<unknown> {
    const decision = await this.limiter.tryAcquire(request);
    if (!decision.granted) return decision.toJSON();
    this.#leases.push(decision.lease);
    return { consumed: decision.lease.consumed, statuses: decision.lease.statuses };
  }

  /** Uses one of the leases so far; `undefined` when there is none. */
  protected async use(at: number, work: (lease: Lease) => Promise<void> | void): Promise<unknown> {
    const held = this.#leases[at % Math.max(1, this.#leases.length)];
    if (held === undefined) return undefined;
    await work(held);
    return held.consumed;
  }
}

/** Expects the same answer of both stores to each step; only a step that waits has `ms`. */
export async function expectSameAnswers<Step extends object>(
  On: new (repository: Repository) => Telling<Step>,
  steps: readonly Step[],
): Promise<void> {
  const time = new VirtualTime(1_900_000_000_000);
  const { clock } = time;
  const embedded = new On(await Repository.open("memory:", { clock }));
  const items = new MemoryItemStore({ clock });
  const distributed = new On(await overTable(items, { clock }));
  await Promise.all([embedded.begin(), distributed.begin()]);
  for (const [at, step] of steps.entries()) {
    time.advance("ms" in step ? Number(step.ms) : STEP_MS);
    expect(await distributed.tell(step), `step ${at}`).toEqual(await embedded.tell(step));
  }
  await Promise.all([embedded.end(), distributed.end()]);
}
