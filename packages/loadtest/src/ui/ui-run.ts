/** One run at a time that a page starts, changes and stops. */

import { systemClock } from "@zae-limiter/limiter/base/time.ts";
import { checkFields, checkInteger, checkNumber } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { costOf, figuresOf } from "../figures.ts";
import type { Fleet, MakeFleet } from "../fleet.ts";
import type { Plan } from "../plan.ts";
import { Results } from "../results.ts";
import type { Slice } from "../slice.ts";
import type { UiInterval, UiState } from "./ui-wire.ts";

/** A page that is left open does not run without end. */
const DURATION_MS = 24 * 3600 * 1000;
const INTERVAL_MS = 1000;
const INTERVALS_SHOWN = 300;
const LATE_INTERVALS = 3;
const SPAWN_RATE = 1000;
const USERS_MAX = 100_000;
/** Arrivals per second, as `--rate` takes them. */
const RATE_MIN = 0.01;
const RATE_MAX = 1_000_000;

interface UiRunOptions {
  readonly title: string;
  readonly store: string;
  readonly classes: readonly string[];
  readonly workers: number;
  readonly users: number;
  readonly makeFleet: MakeFleet;
}

interface Wanted {
  readonly users: number;
  /** `undefined`: a closed model. */
  readonly rate: number | undefined;
}

export class UiRun {
  readonly #options: UiRunOptions;
  #wanted: Wanted;
  #state: UiState["state"] = "idle";
  #results = new Results(INTERVALS_SHOWN);
  /** Intervals that change no more. */
  readonly #known = new Map<number, UiInterval>();
  #fleet: Fleet | undefined;
  #startedMs = 0;
  #endedMs = 0;
  #problem: string | null = null;
  #ended: Promise<void> = Promise.resolve();

  constructor(options: UiRunOptions) {
    this.#options = options;
    this.#wanted = { users: options.users, rate: undefined };
  }

  /** Starts a run; what an earlier one has shown is gone. */
  start(body: unknown): void {
    const wanted = checkWanted(body);
    if (this.#state !== "idle") throw new ValidationError("start", body, "a run is under way");
    this.#wanted = wanted;
    const plan: Plan = {
      classes: this.#options.classes,
      ...wanted,
      spawnRate: SPAWN_RATE,
      durationMs: DURATION_MS,
      intervalMs: INTERVAL_MS,
    };
    this.#results = new Results(INTERVALS_SHOWN);
    this.#known.clear();
    this.#problem = null;
    this.#state = "running";
    this.#startedMs = systemClock();
    const fleet = this.#options.makeFleet(plan, this.#results);
    this.#fleet = fleet;
    this.#ended = fleet
      .run()
      .catch((error: Error) => {
        this.#problem = error.message;
      })
      .finally(() => {
        this.#state = "idle";
        this.#endedMs = systemClock();
      });
  }

  /** Changes the load of the run. Users stay users, and arrivals stay arrivals. */
  change(body: unknown): void {
    const wanted = checkWanted(body);
    if (this.#state !== "running") throw new ValidationError("change", body, "no run is under way");
    if ((wanted.rate === undefined) !== (this.#wanted.rate === undefined)) {
      const reason = "stop the run to change between users and arrivals";
      throw new ValidationError("rate", wanted.rate, reason);
    }
    this.#wanted = wanted;
    const { users, rate } = wanted;
    this.#fleet?.change(rate === undefined ? { users } : { users, rate });
  }

  /** Ends the run; its users and their leases end in good order. */
  stop(): void {
    if (this.#state !== "running") return;
    this.#state = "stopping";
    this.#fleet?.stop();
  }

  /** Stops, and waits until nothing is at work. */
  async close(): Promise<void> {
    this.stop();
    await this.#ended;
  }

  state(): UiState {
    const { title, store, classes, workers } = this.#options;
    const elapsedMs = this.#startedMs === 0 ? 0 : this.#nowMs() - this.#startedMs;
    const all = this.#results.total.total();
    const { counts, p50Ms, p95Ms, p99Ms, maxMs } = figuresOf(all, elapsedMs);
    const cost = costOf(this.#results.total.store, all.acquires);
    return {
      title,
      store,
      classes,
      workers,
      state: this.#state,
      users: this.#wanted.users,
      rate: this.#wanted.rate ?? null,
      elapsedSeconds: Math.floor(elapsedMs / 1000),
      ...counts,
      p50Ms,
      p95Ms,
      p99Ms,
      maxMs,
      callsPerAcquire: cost.callsPerAcquire,
      writeUnitsPerAcquire: cost.writeUnitsPerAcquire,
      dollarsPerMillion: cost.dollarsPerMillion,
      errors: [...all.errors].map(([message, count]) => ({ message, count })),
      intervals: this.#intervals(),
      problem: this.#problem,
    };
  }

  #nowMs(): number {
    return this.#state === "idle" ? this.#endedMs : systemClock();
  }

  #intervals(): UiInterval[] {
    const slices = this.#results.intervals;
    const [first, last] = [slices[0]?.interval ?? 0, slices.at(-1)?.interval ?? 0];
    for (const interval of this.#known.keys()) if (interval < first) this.#known.delete(interval);
    return slices.map((slice) => {
      const known = this.#known.get(slice.interval) ?? this.#interval(slice);
      // Workers report at about the same time.
      if (slice.interval < last - LATE_INTERVALS) this.#known.set(slice.interval, known);
      return known;
    });
  }

  #interval(slice: Slice): UiInterval {
    const figures = figuresOf(slice.total(), INTERVAL_MS);
    const { counts, errors, perSecond, p50Ms, p95Ms, p99Ms } = figures;
    return {
      at: Math.round((this.#startedMs + slice.interval * INTERVAL_MS) / 1000),
      users: slice.users,
      perSecond,
      refusedPerSecond: (counts.refused * 1000) / INTERVAL_MS,
      errorsPerSecond: (errors * 1000) / INTERVAL_MS,
      p50Ms,
      p95Ms,
      p99Ms,
    };
  }
}

function checkWanted(body: unknown): Wanted {
  checkFields("body", body, ["users", "rate"]);
  const { users, rate } = body as { users?: unknown; rate?: unknown };
  return {
    users: checkInteger("users", users, 1, USERS_MAX),
    rate:
      rate === null || rate === undefined
        ? undefined
        : checkNumber("rate", rate, RATE_MIN, RATE_MAX),
  };
}
