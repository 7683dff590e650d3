/** Metrics of a limiter. docs/operators/monitoring.md has the list, and a test compares the two. */

import type { Meter, Observable, ObservableResult } from "@opentelemetry/api";
import { subscribe } from "../acquire/announcer.ts";
import type { AcquireEvent, LimiterEvent } from "../acquire/events.ts";
import type { RateLimiter } from "../acquire/rate-limiter.ts";
import { WaitingQueues } from "../acquire/waiting/waiting-queues.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import { INTERNALS } from "../repository/internals.ts";
import type { StoreCall } from "../storage/item-store.ts";
import { BoundedLabels } from "./bounded-labels.ts";
import {
  callAttributes,
  DB_OPERATION,
  DB_SYSTEM,
  databaseOf,
  ENTITY,
  LEVEL,
  LIMIT,
  levelName,
  NAMESPACE,
  OUTCOME,
  RESOURCE,
} from "./names.ts";
import { Tally } from "./tally.ts";

/** Resources and limits come from callers too, so their labels are bounded as well. */
const NAMES_MAX = 200;
/** Acquires after which an entity gets a label of its own: one that comes once gets none. */
const ADMIT_AFTER = 10;
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const OUTCOMES = {
  acquired: "granted",
  rejected: "refused",
  degraded: "degraded",
  unavailable: "unavailable",
} as const satisfies Record<AcquireEvent["type"], string>;

/** The instruments that are made of a meter. */
export type MetricsMeter = Pick<
  Meter,
  | "createHistogram"
  | "createObservableCounter"
  | "createObservableGauge"
  | "createObservableUpDownCounter"
>;

/** Exports metrics until the result is called. */
export function observeMetrics(
  limiter: RateLimiter,
  meter: MetricsMeter,
  entitiesMax: number,
): () => void {
  const instruments = new Metrics(limiter, meter, entitiesMax);
  const ends = [
    subscribe(limiter, (event) => instruments.count(event)),
    limiter.repository[INTERNALS].listen((call) => instruments.called(call)),
    instruments.register(),
  ];
  return () => {
    for (const end of ends) end();
  };
}

class Metrics {
  readonly #limiter: RateLimiter;
  readonly #meter: MetricsMeter;
  readonly #namespace: string;
  readonly #database: ReturnType<typeof databaseOf>;
  readonly #entities: BoundedLabels | undefined;
  readonly #resources = new BoundedLabels(NAMES_MAX);
  readonly #limits = new BoundedLabels(NAMES_MAX);
  readonly #acquires = new Tally([OUTCOME, RESOURCE, NAMESPACE, LIMIT, LEVEL, ENTITY]);
  readonly #consumed = new Tally([RESOURCE, NAMESPACE, LIMIT, ENTITY]);
  readonly #adjusted = new Tally([RESOURCE, NAMESPACE, LIMIT, "zae_limiter.direction"]);
  readonly #refunded = new Tally([RESOURCE, NAMESPACE, LIMIT]);
  /** Slots that leases hold: no counter, because they come back. */
  readonly #slots = new Tally([RESOURCE, NAMESPACE, LIMIT]);
  readonly #calls = new Tally([DB_SYSTEM, DB_OPERATION, OUTCOME]);
  readonly #capacity = new Tally([DB_SYSTEM, DB_OPERATION, "zae_limiter.capacity.kind"]);
  readonly #splits = new Tally([RESOURCE, NAMESPACE]);
  readonly #shards = new Tally([RESOURCE, NAMESPACE]);
  readonly #alerts = new Tally([RESOURCE, NAMESPACE, LIMIT, "zae_limiter.percent"]);
  readonly #warnings = new Tally(["zae_limiter.warning", NAMESPACE]);
  /** Keeps the attributes of durations: the same object each time, which a meter may recognize. */
  readonly #durations = new Tally([OUTCOME, RESOURCE, NAMESPACE]);
  readonly #duration;
  readonly #timeInQueue;
  readonly #callDuration;

  constructor(limiter: RateLimiter, meter: MetricsMeter, entitiesMax: number) {
    this.#limiter = limiter;
    this.#meter = meter;
    this.#namespace = limiter.repository.namespaceName;
    this.#database = databaseOf(limiter);
    if (entitiesMax > 0) this.#entities = new BoundedLabels(entitiesMax, ADMIT_AFTER);
    const seconds = { unit: "s", advice: { explicitBucketBoundaries: SECONDS } };
    this.#duration = meter.createHistogram("zae_limiter.acquire.duration", {
      ...seconds,
      description: "Time from an acquire to its decision",
    });
    this.#timeInQueue = meter.createHistogram("zae_limiter.acquire.time_in_queue", {
      ...seconds,
      description: "Time an acquire with maxWaitSeconds waited for tokens",
    });
    this.#callDuration = meter.createHistogram("db.client.operation.duration", {
      ...seconds,
      description: "Duration of requests to the store",
    });
  }

  count(event: LimiterEvent): void {
    switch (event.type) {
      case "acquired":
      case "rejected":
      case "degraded":
      case "unavailable":
        this.#decided(event);
        break;
      case "adjusted":
        this.#corrected(event.resource, event.amounts);
        break;
      case "released":
        this.#held(event.resource, event.amounts, -1);
        break;
      case "restored":
        if (event.reason === "rollback") this.#returned(event.resource, event.amounts);
        break;
      case "split": {
        const resource = this.#resources.labelOf(event.resource);
        this.#splits.add(1, resource, this.#namespace);
        this.#shards.raise(event.shardCount, resource, this.#namespace);
        break;
      }
      case "alert": {
        const { resource, limitName, percent } = event.alert;
        const [place, limit] = [this.#resources.labelOf(resource), this.#limits.labelOf(limitName)];
        this.#alerts.add(1, place, this.#namespace, limit, String(percent));
        break;
      }
      case "warning":
        this.#warnings.add(1, event.warning.kind, this.#namespace);
        break;
    }
  }

  called(call: StoreCall): void {
    const { operation, outcome = "ok", durationMs, readUnits, writeUnits } = call;
    const { system } = this.#database;
    this.#calls.add(1, system, operation, outcome);
    if (readUnits > 0) this.#capacity.add(readUnits, system, operation, "read");
    if (writeUnits > 0) this.#capacity.add(writeUnits, system, operation, "write");
    if (durationMs === undefined) return;
    this.#callDuration.record(durationMs / 1000, callAttributes(this.#database, call));
  }

  /** Connects the sums to the meter; the result ends it. */
  register(): () => void {
    const ends: (() => void)[] = [];
    const connect = (instrument: Observable, observe: (result: ObservableResult) => void) => {
      instrument.addCallback(observe);
      ends.push(() => instrument.removeCallback(observe));
    };
    for (const [name, unit, description, tally] of this.#counters()) {
      const counter = this.#meter.createObservableCounter(name, { unit, description });
      connect(counter, (result) => tally.observe(result));
    }
    const shards = { unit: "{shard}", description: "Most shards a bucket of the resource has" };
    connect(this.#meter.createObservableGauge("zae_limiter.bucket.shards", shards), (result) =>
      this.#shards.observe(result),
    );
    const queue = { unit: "{request}", description: "Acquires that wait for tokens now" };
    connect(
      this.#meter.createObservableUpDownCounter("zae_limiter.queue.size", queue),
      (result) => {
        const { buckets, clock, timer } = this.#limiter.repository[INTERNALS];
        const { size } = WaitingQueues.of(buckets, clock, timer);
        result.observe(size, { [NAMESPACE]: this.#namespace });
      },
    );
    const slots = { unit: "{slot}", description: "Slots that leases of the process hold now" };
    connect(this.#meter.createObservableUpDownCounter("zae_limiter.slots.held", slots), (result) =>
      this.#slots.observe(result),
    );
    const lookups = { unit: "{lookup}", description: "Lookups of stored limits in the cache" };
    connect(this.#meter.createObservableCounter("zae_limiter.cache.lookups", lookups), (result) => {
      const { hits, misses } = this.#limiter.repository.limits.cacheStats();
      const attributes = { [NAMESPACE]: this.#namespace };
      result.observe(hits, { ...attributes, "zae_limiter.cache.result": "hit" });
      result.observe(misses, { ...attributes, "zae_limiter.cache.result": "miss" });
    });
    return () => {
      for (const end of ends) end();
    };
  }

  #counters(): readonly (readonly [string, string, string, Tally])[] {
    return [
      ["zae_limiter.acquires", "{request}", "Acquires by what came of them", this.#acquires],
      ["zae_limiter.tokens.consumed", "{token}", "Tokens consumed by grants", this.#consumed],
      ["zae_limiter.tokens.adjusted", "{token}", "Tokens corrected by leases", this.#adjusted],
      ["zae_limiter.tokens.refunded", "{token}", "Tokens refunded by rollbacks", this.#refunded],
      ["zae_limiter.store.calls", "{call}", "Requests to the store", this.#calls],
      ["zae_limiter.store.capacity", "{unit}", "Capacity units consumed", this.#capacity],
      ["zae_limiter.bucket.splits", "{split}", "Buckets split into more shards", this.#splits],
      ["zae_limiter.alerts", "{alert}", "Alerts by limit and percentage", this.#alerts],
      ["zae_limiter.warnings", "{warning}", "Warnings by kind", this.#warnings],
    ];
  }

  #decided(event: AcquireEvent): void {
    const resource = this.#resources.labelOf(event.resource);
    const entity = this.#entities?.labelOf(event.entityId);
    const outcome = OUTCOMES[event.type];
    if (event.type === "rejected") {
      const { limitName, level } = event.refusedBy;
      const limit = this.#limits.labelOf(limitName);
      this.#acquires.add(1, outcome, resource, this.#namespace, limit, levelName(level), entity);
    } else {
      this.#acquires.add(1, outcome, resource, this.#namespace, undefined, undefined, entity);
    }
    if (event.type === "acquired") this.#granted(event, resource, entity);
    const { attributes } = this.#durations.sumOf(outcome, resource, this.#namespace);
    this.#duration.record(event.durationMs / 1000, attributes);
    if (event.waitedMs > 0) this.#timeInQueue.record(event.waitedMs / 1000, attributes);
  }

  #granted(
    { resource: name, consumed, statuses }: Extract<AcquireEvent, { type: "acquired" }>,
    resource: string,
    entity: string | undefined,
  ): void {
    const slots = slotsIn(consumed, statuses);
    if (slots !== undefined) this.#held(name, slots, 1);
    for (const name in consumed) {
      if (slots?.[name] !== undefined) continue;
      const limit = this.#limits.labelOf(name);
      this.#consumed.add(consumed[name] ?? 0, resource, this.#namespace, limit, entity);
    }
  }

  #held(name: string, slots: Readonly<Record<string, number>>, sign: 1 | -1): void {
    const resource = this.#resources.labelOf(name);
    for (const [limitName, count] of Object.entries(slots)) {
      this.#slots.add(sign * count, resource, this.#namespace, this.#limits.labelOf(limitName));
    }
  }

  #corrected(name: string, amounts: Readonly<Record<string, number>>): void {
    const resource = this.#resources.labelOf(name);
    for (const limitName in amounts) {
      const amount = amounts[limitName] ?? 0;
      if (amount === 0) continue;
      const limit = this.#limits.labelOf(limitName);
      const direction = amount > 0 ? "more" : "less";
      this.#adjusted.add(Math.abs(amount), resource, this.#namespace, limit, direction);
    }
  }

  #returned(name: string, amounts: Readonly<Record<string, number>>): void {
    const resource = this.#resources.labelOf(name);
    for (const [limitName, amount] of Object.entries(amounts)) {
      if (amount === 0) continue;
      this.#refunded.add(amount, resource, this.#namespace, this.#limits.labelOf(limitName));
    }
  }
}

/** Returns the slots among the amounts of a grant; `undefined` where there are none. */
function slotsIn(
  consumed: Readonly<Record<string, number>>,
  statuses: readonly LimitStatus[],
): Readonly<Record<string, number>> | undefined {
  // Under bypass a lease holds nothing.
  const held = statuses.filter(({ kind, bypassed }) => kind === "concurrency" && !bypassed);
  if (held.length === 0) return undefined;
  const names = new Set(held.map(({ limitName }) => limitName));
  return Object.fromEntries(Object.entries(consumed).filter(([name]) => names.has(name)));
}
