/** One process with its own connection, clock and random numbers. It may crash at any moment. */

import type { RateLimiterOptions } from "@zae-limiter/limiter/acquire/limiter-options.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { Random } from "@zae-limiter/limiter/base/random.ts";
import type { Clock, Timer } from "@zae-limiter/limiter/base/time.ts";
import { DistributedBucketStore } from "@zae-limiter/limiter/buckets/distributed/distributed-bucket-store.ts";
import { DYNAMODB_TRAITS } from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import type { Periods } from "@zae-limiter/limiter/domain/periods.ts";
import { openCustom } from "@zae-limiter/limiter/repository/opening.ts";
import type { OpenOptions } from "@zae-limiter/limiter/repository/options.ts";
import { repositoryOf } from "@zae-limiter/limiter/repository/repository.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import type { VirtualTime } from "../time/virtual-time.ts";
import type { Connection } from "./connection.ts";

/** Options of a process for its limiter; time and randomness come from the process. */
export interface ProcessOpenOptions
  extends Omit<OpenOptions, "clock" | "timer" | "random">,
    RateLimiterOptions {}

/** How one process differs from the others. */
export interface ProcessOptions {
  /** How far its clock is ahead of the right time; below zero: behind. */
  readonly skewMs?: number;
  /**
   * Returns by how many milliseconds the local clock of a zone is ahead of UTC at an instant, by
   * the data of zones that this process has; those of this Node when absent.
   */
  readonly localClock?: (timeZone: string) => (ms: number) => number;
}

interface SimulatedProcessParts {
  readonly id: number;
  readonly time: VirtualTime;
  readonly clock: Clock;
  readonly random: Random;
  readonly store: ItemStore;
  readonly connection: Connection;
  readonly periods: Periods | undefined;
}

/**
 * A process of a `SimulatedTable`; made by its method `process`.
 *
 * @example
 * ```ts
 * import { SimulatedTable, VirtualTime } from 'zae-limiter/testing';
 * const time = new VirtualTime();
 * const table = new SimulatedTable({ time });
 * const [worker, other] = [table.process(), table.process({ skewMs: -40 })];
 * const limiter = await time.until(worker.open());
 * worker.crash(); // whatever it waits for will never come
 * console.log(worker.crashed, other.clock() - time.nowMs <= -40); // true true
 * ```
 */
export class SimulatedProcess {
  /** The number of this process. */
  readonly id: number;
  /** Epoch milliseconds, as this process has them. */
  readonly clock: Clock;
  /** The timer of this process, in virtual time. */
  readonly timer: Timer;
  /** The random source of this process. */
  readonly random: Random;
  /** The table as this process reaches it. */
  readonly store: ItemStore;
  readonly #connection: Connection;
  readonly #periods: Periods | undefined;
  #crashed = false;

  constructor(parts: SimulatedProcessParts) {
    this.id = parts.id;
    this.clock = parts.clock;
    this.random = parts.random;
    this.store = parts.store;
    this.#connection = parts.connection;
    this.#periods = parts.periods;
    const { timer } = parts.time;
    this.timer = {
      nowMs: () => timer.nowMs(),
      sleep: (ms, signal) =>
        new Promise((resolve) => {
          void timer.sleep(ms, signal).then(() => {
            if (!this.#crashed) resolve();
          });
        }),
    };
  }

  /** Whether this process has crashed. */
  get crashed(): boolean {
    return this.#crashed;
  }

  /** Opens a limiter over the table, with the buckets that DynamoDB has. */
  async open(options: ProcessOpenOptions = {}): Promise<RateLimiter> {
    const { speculativeWrites, events, onWarning, onCall, ...rest } = options;
    if (onCall !== undefined) this.#connection.listeners.add(onCall);
    const { clock, timer, random } = this;
    const shared = { ...rest, clock, timer, random };
    const traits = { ...DYNAMODB_TRAITS, periods: this.#periods };
    // The buckets are passed in, because no module can be loaded while virtual time is stopped.
    const opened = await openCustom(
      this.store,
      shared,
      "memory",
      (context, buckets) => new DistributedBucketStore(context, { ...buckets, ...traits }),
    );
    const { onUnavailable } = rest;
    const own = defined({ onUnavailable, speculativeWrites, events, onWarning });
    return new RateLimiter(repositoryOf(opened), own);
  }

  /** Cuts the process off: its requests do not arrive, and no answer does, until `reconnect`. */
  cutOff(): void {
    this.#connection.isCut = true;
  }

  /** Ends what `cutOff` began. */
  reconnect(): void {
    this.#connection.isCut = false;
  }

  /** Crashes the process: it gets no more answers, but its requests may still arrive. */
  crash(): void {
    this.#crashed = true;
    this.#connection.break();
  }
}
