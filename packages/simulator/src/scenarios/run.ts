/** Carries out a scenario and measures it. The checkers watch every write. */

import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import { noUsage, type Usage } from "@zae-limiter/testing/table/usage.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { World } from "../simulation/world.ts";
import { IdealFlow } from "./ideal-flow.ts";
import type { Scenario, ScenarioReport, SecondReport } from "./scenario.ts";

const RESOURCE = "api";
const LIMIT = "rps";
const SETTLED_SECONDS = 10;
/** For calls that are under way when the last one has begun. */
const QUIET_MS = 5000;

/** How a scenario runs. */
export interface ScenarioOptions {
  readonly seed?: number;
  /** Virtual seconds; the scenario's own when absent. */
  readonly seconds?: number | undefined;
  /** Called after every virtual second. */
  readonly onSecond?: (second: SecondReport) => void;
  readonly isStopped?: () => boolean;
}

/**
 * Carries out a scenario, one of the scale report or your own.
 */
export async function runScenario(
  scenario: Scenario,
  options: ScenarioOptions = {},
): Promise<ScenarioReport> {
  return new ScenarioRun(scenario, options).run();
}

class ScenarioRun {
  readonly #scenario: Scenario;
  readonly #options: ScenarioOptions;
  readonly #seed: number;
  readonly #seconds: number;
  readonly #world: World;
  readonly #ideal: IdealFlow;
  readonly #limiters: RateLimiter[] = [];
  readonly #latencies: number[] = [];
  readonly #timeline: SecondReport[] = [];
  readonly #counts = { offered: 0, admitted: 0, refused: 0, unavailable: 0 };
  #startMs = 0;
  #before: Usage;
  #dollarsBefore = 0;

  constructor(scenario: Scenario, options: ScenarioOptions) {
    this.#scenario = scenario;
    this.#options = options;
    this.#seed = options.seed ?? 1;
    this.#seconds = options.seconds ?? scenario.seconds;
    const time = new VirtualTime();
    const table = { seed: this.#seed };
    this.#world = new World({ time, table, keepsLog: false, logs: false, skewMs: 0 });
    this.#ideal = new IdealFlow(scenario.rateOf);
    this.#before = this.#world.table.usage;
  }

  async run(): Promise<ScenarioReport> {
    const { time, table, failed } = this.#world;
    await time.until(this.#prepare());
    this.#before = table.usage;
    this.#dollarsBefore = table.dollars;
    this.#startMs = time.nowMs;
    this.#tick(1, table.usage, { ...this.#counts });
    await time.until(Promise.race([this.#load(), failed]));
    if (this.#world.violation === undefined) await time.pass(QUIET_MS);
    return this.#report();
  }

  async #prepare(): Promise<void> {
    const {
      processes,
      limits,
      entityLimits = {},
      entities = [],
      speculativeWrites,
    } = this.#scenario;
    for (let at = 0; at < processes; at += 1) {
      const opened = this.#world.table.process().open({
        onWarning: () => {},
        ...(speculativeWrites === undefined ? {} : { speculativeWrites }),
      });
      this.#limiters.push(await opened);
    }
    const { repository } = this.#limiters[0] as RateLimiter;
    await repository.limits.setResource(RESOURCE, [...limits]);
    for (const entity of entities) await repository.entities.create(entity);
    for (const [entityId, own] of Object.entries(entityLimits)) {
      await repository.limits.setEntity(entityId, [...own], { resource: RESOURCE });
    }
  }

  /** Calls begin whether or not those before have ended, as users do not wait for each other. */
  async #load(): Promise<void> {
    const { time } = this.#world;
    const { callsPerSecond, next } = this.#scenario;
    const random = seededRandom(this.#seed, "load");
    const endMs = this.#endMs;
    await new Promise<void>((resolve) => {
      const arrive = () => {
        if (time.nowMs >= endMs || this.#options.isStopped?.() === true) return resolve();
        const limiter = this.#limiters[Math.floor(random() * this.#limiters.length)] as RateLimiter;
        const ids = next(random);
        this.#ideal.offer(ids, time.nowMs);
        this.#call(limiter, ids[0] as string).catch((error: unknown) => this.#world.fail(error));
        time.after((-Math.log(1 - random()) * 1000) / callsPerSecond, arrive);
      };
      arrive();
    });
  }

  get #endMs(): number {
    return this.#startMs + this.#seconds * 1000;
  }

  async #call(limiter: RateLimiter, entityId: string): Promise<void> {
    const { time } = this.#world;
    const counts = this.#counts;
    counts.offered += 1;
    const startMs = time.nowMs;
    try {
      const decision = await limiter.tryAcquire({
        entityId,
        resource: RESOURCE,
        consume: { [LIMIT]: 1 },
      });
      if (decision.granted) {
        // What is admitted later was not to be had in the time that is measured.
        if (time.nowMs <= this.#endMs) counts.admitted += 1;
        await decision.lease.commit();
      } else {
        counts.refused += 1;
        this.#judge(decision.violations, startMs);
      }
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      counts.unavailable += 1;
    }
    this.#latencies.push(time.nowMs - startMs);
  }

  #judge(violations: readonly LimitStatus[], startMs: number): void {
    const { refusals, time } = this.#world;
    const named = violations.map(({ entityId, resource, limitName, requested }) => {
      return { bucket: `${entityId} ${resource}`, limitName, amountMilli: requested * 1000 };
    });
    // No call of a scenario waits, so the process makes no difference.
    refusals.whyWrong(0, named, startMs, time.nowMs);
  }

  /** Reads the counters once per second. */
  #tick(
    second: number,
    usage: Usage,
    before: { readonly admitted: number; readonly unavailable: number },
  ): void {
    const { time, table, shape } = this.#world;
    if (second > this.#seconds) return;
    time.after(this.#startMs + second * 1000 - time.nowMs, () => {
      const now = table.usage;
      const { calls, throttled } = usageSince(now, usage);
      const report = {
        second,
        admitted: this.#counts.admitted - before.admitted,
        unavailable: this.#counts.unavailable - before.unavailable,
        calls,
        throttled,
        shards: shape.shardsOf(`${this.#scenario.watched ?? ""} ${RESOURCE}`),
      };
      this.#timeline.push(report);
      this.#options.onSecond?.(report);
      this.#tick(second + 1, now, { ...this.#counts });
    });
  }

  #report(): ScenarioReport {
    const { name, title, parameters } = this.#scenario;
    const { violation, table, time } = this.#world;
    const usage = usageSince(table.usage, this.#before);
    const { offered, admitted, refused, unavailable } = this.#counts;
    const settled = this.#timeline.filter(({ second }) => second > SETTLED_SECONDS);
    const sum = (of: (second: SecondReport) => number) =>
      settled.reduce((total, second) => total + of(second), 0);
    const sorted = Float64Array.from(this.#latencies).sort();
    const dollars = table.dollars - this.#dollarsBefore;
    return {
      name,
      title,
      seed: this.#seed,
      seconds: this.#seconds,
      parameters,
      offered,
      admitted,
      refused,
      wrongRefusals: this.#world.refusals.wrong,
      unavailable,
      theoreticalMax: this.#ideal.admitted,
      admittedShare: share(admitted, this.#ideal.admitted),
      callsPerAcquire: share(usage.calls, offered),
      writeUnitsPerAcquire: share(usage.writeUnits, offered),
      readUnitsPerAcquire: share(usage.readUnits, offered),
      throttledCalls: usage.throttled,
      throttledShare: share(usage.throttled, usage.calls),
      settled: {
        admittedPerSecond: share(
          sum((second) => second.admitted),
          settled.length,
        ),
        throttledShare: share(
          sum((second) => second.throttled),
          sum((second) => second.calls),
        ),
      },
      latencyMs: { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) },
      dollarsPerMillion: share(dollars * 1_000_000, offered),
      shards: this.#timeline.at(-1)?.shards ?? 1,
      timeline: this.#timeline,
      usage,
      violation: violation?.message,
      events: time.events,
    };
  }
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}

function quantile(sorted: Float64Array, at: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * at))] ?? 0;
}

/** Returns what was consumed between two readings. */
function usageSince(now: Usage, then: Usage): Usage {
  const since = noUsage();
  for (const name of Object.keys(since) as (keyof Usage)[]) since[name] = now[name] - then[name];
  return since;
}
