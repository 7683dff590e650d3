/** A simulated gateway to a language model: consumes an estimate, calls, corrects it. */

import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { type Random, randomInteger } from "@zae-limiter/limiter/base/random.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";

export const RESOURCE = "gpt-4";
export const PROJECT = "search";
export const KEYS = ["web", "batch", "agent"] as const;
/** Length of the traffic in milliseconds; every call begins and ends within it. */
export const TRAFFIC_MS = 30_000;
const LAST_CALL_MS = 27_000;
const FAILING_PERCENT = 6;

type Key = (typeof KEYS)[number];
type Range = readonly [low: number, high: number];
type Ranges = readonly [
  fromMs: number,
  pauseMs: Range,
  estimated: Range,
  percent: Range,
  ms: Range,
];

/** When each key begins, its pauses, its estimates, the use in percent of them, the durations. */
const HABITS: Readonly<Record<Key, Ranges>> = {
  // Interactive users: frequent calls with short answers.
  web: [400, [400, 1000], [200, 400], [50, 160], [400, 1500]],
  // A job at night: it asks for more than its limit, and does not wait when it is refused.
  batch: [3000, [500, 900], [400, 600], [80, 120], [600, 1600]],
  // Answers of unpredictable length; it waits as long as the limiter says.
  agent: [1500, [3000, 4500], [500, 800], [120, 260], [1200, 3000]],
};

interface PlannedCall {
  readonly atMs: number;
  readonly key: Key;
  /** Tokens that are consumed before the call. */
  readonly estimated: number;
  /** Tokens that the model really uses. */
  readonly used: number;
  readonly lastsMs: number;
  readonly fails: boolean;
}

/** A whole book, once: more than the bucket can ever hold. */
const BOOK = { key: "web", estimated: 9500, used: 9500, lastsMs: 0, fails: false } as const;
const BOOK_MS = 8200;

/** The end of a call. */
export interface CallReport {
  readonly atMs: number;
  readonly entityId: string;
  readonly outcome: "answered" | "refused" | "failed";
  readonly estimated: number;
  /** 0 when the call was refused or failed: everything was refunded. */
  readonly used: number;
  /** 0 unless the call was refused; `Infinity` when it never fits. */
  readonly retryAfterSeconds: number;
  /** The limit with the longest wait, if the call was refused. */
  readonly lacking?: { entityId: string; limitName: string; available: number; requested: number };
}

/** Creates the project, its keys and limits at several levels. */
export async function createProject({ entities, limits }: Repository): Promise<void> {
  const principal = "setup";
  await entities.create({ id: PROJECT, principal });
  for (const id of KEYS) await entities.create({ id, parentId: PROJECT, cascade: true, principal });
  await limits.setResource(RESOURCE, ["rpm:20", "tpm:9000"], { principal });
  await limits.setEntity(PROJECT, ["rpm:90", "tpm:17000"], { principal });
  await limits.setEntity("batch", ["rpm:40", "tpm:4000"], { principal });
  const ofAgent = ["rpm:20", "tpm:12000/min:3000"];
  await limits.setEntity("agent", ofAgent, { resource: RESOURCE, principal });
}

/** Runs calls at their times, in virtual time, so that every run has the same numbers. */
export class Traffic {
  readonly #limiter: RateLimiter;
  readonly #report: (call: CallReport) => void;
  readonly #moveTo: (ms: number) => void;
  #agenda: { readonly atMs: number; readonly run: () => Promise<void> }[] = [];

  /** `moveTo` sets the time of the store, in milliseconds since the beginning. */
  constructor(
    limiter: RateLimiter,
    random: Random,
    moveTo: (ms: number) => void,
    report: (call: CallReport) => void,
  ) {
    this.#limiter = limiter;
    this.#moveTo = moveTo;
    this.#report = report;
    for (const key of KEYS) for (const call of callsOf(key, random)) this.#expect(call);
    this.#expect({ ...BOOK, atMs: BOOK_MS });
  }

  at(atMs: number, run: () => Promise<void>): void {
    this.#agenda = [...this.#agenda, { atMs, run }].sort((a, b) => a.atMs - b.atMs);
  }

  /** Runs everything that is planned until then. */
  async until(ms: number): Promise<void> {
    for (let next = this.#agenda[0]; next && next.atMs <= ms; next = this.#agenda[0]) {
      this.#agenda.shift();
      this.#moveTo(next.atMs);
      await next.run();
    }
    this.#moveTo(ms);
  }

  #expect(call: PlannedCall): void {
    this.at(call.atMs, () => this.#call(call));
  }

  async #call(call: PlannedCall): Promise<void> {
    const { key: entityId, estimated, atMs } = call;
    const consume = { rpm: 1, tpm: estimated };
    const decision = await this.#limiter.tryAcquire({ entityId, resource: RESOURCE, consume });
    if (decision.granted) {
      const endMs = atMs + call.lastsMs;
      this.at(endMs, () => this.#end(call, decision.lease, endMs));
      return;
    }
    const { retryAfterSeconds, violations } = decision;
    const lacking = violations.reduce((worst, other) =>
      other.retryAfterSeconds > worst.retryAfterSeconds ? other : worst,
    );
    const refused = { atMs, entityId, estimated, used: 0, retryAfterSeconds, lacking };
    this.#report({ ...refused, outcome: "refused" });
    const againMs = atMs + Math.ceil(retryAfterSeconds * 1000);
    if (entityId === "agent" && againMs < LAST_CALL_MS) this.#expect({ ...call, atMs: againMs });
  }

  async #end({ key, estimated, used, fails }: PlannedCall, lease: Lease, atMs: number) {
    if (fails) await lease.rollback();
    else {
      lease.adjust({ tpm: used - estimated });
      await lease.commit();
    }
    const call = { atMs, entityId: key, estimated, retryAfterSeconds: 0 };
    this.#report({ ...call, outcome: fails ? "failed" : "answered", used: fails ? 0 : used });
  }
}

function* callsOf(key: Key, random: Random): Generator<PlannedCall> {
  const draw = ([low, high]: Range) => low + randomInteger(random, high - low + 1);
  const [fromMs, pauseMs, estimates, percent, durations] = HABITS[key];
  for (let atMs = fromMs; atMs < LAST_CALL_MS; atMs += draw(pauseMs)) {
    const estimated = 10 * Math.round(draw(estimates) / 10);
    const used = Math.round((estimated * draw(percent)) / 100);
    const fails = randomInteger(random, 100) < FAILING_PERCENT;
    yield { atMs, key, estimated, used, lastsMs: draw(durations), fails };
  }
}
