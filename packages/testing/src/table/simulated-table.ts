/** A DynamoDB table in memory, with its limits, its delays and its failures, from one seed. */

import { checkFields, checkInteger } from "@zae-limiter/limiter/domain/check.ts";
import { Periods } from "@zae-limiter/limiter/domain/periods.ts";
import {
  dollarsOf,
  ON_DEMAND_PRICES,
  type Prices,
} from "@zae-limiter/limiter/storage/dynamodb/prices.ts";
import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import { seededRandom } from "../seeded-random.ts";
import type { VirtualTime } from "../time/virtual-time.ts";
import type { TableObserver } from "./call.ts";
import { Connection } from "./connection.ts";
import { FAULT_NAMES, type Faults } from "./faults.ts";
import { DYNAMODB_THROUGHPUT, type Throughput } from "./key-ranges.ts";
import { type Latency, SAME_REGION_LATENCY } from "./latency.ts";
import { ProcessStore } from "./process-store.ts";
import { Server } from "./server.ts";
import { type ProcessOptions, SimulatedProcess } from "./simulated-process.ts";
import { type MutableUsage, noUsage, type Usage } from "./usage.ts";

/** How a simulated table is made. */
export interface SimulatedTableOptions {
  /** The virtual time of the table. */
  readonly time: VirtualTime;
  /** The seed of everything random. Default 1. */
  readonly seed?: number;
  /** Faults and how often they occur. */
  readonly faults?: Faults;
  /** How long requests take. */
  readonly latency?: Partial<Latency>;
  /** How much one key takes per second. */
  readonly throughput?: Partial<Throughput>;
  /** The prices that `usage` is computed with. */
  readonly prices?: Prices;
}

const OPTION_NAMES = ["time", "seed", "faults", "latency", "throughput", "prices"] as const;

/**
 * A table that any number of simulated processes share.
 *
 * @example
 * ```ts
 * import { SimulatedTable, VirtualTime } from 'zae-limiter/testing';
 * const time = new VirtualTime();
 * const table = new SimulatedTable({ time, seed: 7, faults: { lostResponses: 0.01 } });
 * const worker = table.process({ skewMs: 250 });
 * const limiter = await time.until(worker.open());
 * await time.until(limiter.repository.limits.setSystem(['rpm:100']));
 * const request = { entityId: 'key-1', resource: 'api', consume: { rpm: 1 } };
 * const decision = await time.until(limiter.tryAcquire(request));
 * console.log(decision.granted, table.usage.calls > 0); // true true
 * ```
 */
export class SimulatedTable {
  readonly time: VirtualTime;
  readonly #seed: number;
  readonly #latency: Latency;
  readonly #prices: Prices;
  readonly #throughput: Throughput;
  readonly #usage: MutableUsage = noUsage();
  readonly #server: Server;
  #processes = 0;

  constructor(options: SimulatedTableOptions) {
    checkFields("options", options, OPTION_NAMES);
    const { time, seed = 1, faults = {}, latency = {}, throughput = {} } = options;
    checkInteger("seed", seed, 0, Number.MAX_SAFE_INTEGER);
    checkFields("faults", faults, FAULT_NAMES);
    this.time = time;
    this.#seed = seed;
    this.#latency = { ...SAME_REGION_LATENCY, ...latency };
    this.#prices = options.prices ?? ON_DEMAND_PRICES;
    this.#throughput = { ...DYNAMODB_THROUGHPUT, ...throughput };
    this.#server = new Server({
      time,
      random: seededRandom(seed, "table"),
      throughput: this.#throughput,
      faults,
      usage: this.#usage,
    });
  }

  /** Starts another process. */
  process({ skewMs = 0, localClock }: ProcessOptions = {}): SimulatedProcess {
    const { time } = this;
    const id = this.#processes;
    this.#processes += 1;
    const clock = () => Math.floor(time.nowMs + skewMs);
    const connection = new Connection({
      process: id,
      time,
      clock,
      server: this.#server,
      latency: this.#latency,
      random: seededRandom(this.#seed, `network ${id}`),
      usage: this.#usage,
    });
    const random = seededRandom(this.#seed, `process ${id}`);
    const store = new ProcessStore(
      connection,
      this.#server,
      seededRandom(this.#seed, `feed ${id}`),
    );
    const periods = localClock && new Periods(localClock);
    return new SimulatedProcess({ id, time, clock, random, store, connection, periods });
  }

  /** Requests and consumed capacity so far. */
  get usage(): Usage {
    return { ...this.#usage };
  }

  /** The cost of that, in dollars. */
  get dollars(): number {
    return dollarsOf(this.#usage, this.#prices);
  }

  /** Sets the faults from now on. */
  set faults(faults: Faults) {
    checkFields("faults", faults, FAULT_NAMES);
    this.#server.faults = faults;
  }

  /** How many write units one key takes per second from now on. */
  set writeUnitsPerSecond(writeUnitsPerSecond: number) {
    this.#server.limitWrites({ ...this.#throughput, writeUnitsPerSecond });
  }

  /** Adds an observer of every write. */
  watch(observer: TableObserver): void {
    this.#server.observer = observer;
  }

  /** Returns an item without a request. */
  read(key: Key): Item | undefined {
    return this.#server.items.readNow(key);
  }

  /** Yields all items of an index partition, without a request. */
  async *items(partition: string): AsyncGenerator<Item> {
    const { items } = this.#server;
    for await (const { PK, SK } of items.query({ index: "GSI4", partition })) {
      const item = items.readNow({ PK, SK });
      if (item !== undefined) yield item;
    }
  }
}
