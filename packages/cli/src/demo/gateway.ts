/** A simulated gateway to a language model: consumes an estimate, calls, settles the cost. */

import type { Refusal } from "@zae-limiter/limiter/acquire/decision.ts";
import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { duration, withThousands } from "../terminal/numbers.ts";
import { isPatient, LAST_CALL_MS, type PlannedCall } from "./callers.ts";
import { RESOURCE } from "./project.ts";
import type { StageTime } from "./stage-time.ts";

export interface CallReport {
  readonly atMs: number;
  readonly entityId: string;
  readonly outcome: "answered" | "refused" | "failed";
  readonly estimated: number;
  /** 0 when it was refused or failed: everything was refunded. */
  readonly used: number;
  /** 0 unless it was refused; `Infinity` when it never fits. */
  readonly retryAfterSeconds: number;
  readonly line: string;
}

interface Planned {
  readonly atMs: number;
  readonly run: () => Promise<void>;
}

export class Gateway {
  readonly #limiter: RateLimiter;
  readonly #time: StageTime;
  readonly #report: (call: CallReport) => void;
  /** Sorted by time; of equal times, the first that was planned comes first. */
  readonly #agenda: Planned[] = [];

  constructor(limiter: RateLimiter, time: StageTime, report: (call: CallReport) => void) {
    this.#limiter = limiter;
    this.#time = time;
    this.#report = report;
  }

  expect(call: PlannedCall): void {
    this.at(call.atMs, () => this.#receive(call));
  }

  at(atMs: number, run: () => Promise<void>): void {
    const after = this.#agenda.findIndex((planned) => planned.atMs > atMs);
    this.#agenda.splice(after === -1 ? this.#agenda.length : after, 0, { atMs, run });
  }

  /** Runs everything that is planned until then, each at its own time. */
  async until(passedMs: number): Promise<void> {
    for (let next = this.#agenda[0]; next !== undefined; next = this.#agenda[0]) {
      if (next.atMs > passedMs) break;
      this.#agenda.shift();
      this.#time.moveTo(next.atMs);
      await next.run();
    }
    this.#time.moveTo(passedMs);
  }

  async #receive(call: PlannedCall): Promise<void> {
    const { key: entityId, estimated, atMs } = call;
    const consume = { rpm: 1, tpm: estimated };
    const decision = await this.#limiter.tryAcquire({ entityId, resource: RESOURCE, consume });
    if (decision.granted) {
      const { lease } = decision;
      this.at(atMs + call.lastsMs, () => this.#settle(call, lease));
      return;
    }
    const { retryAfterSeconds } = decision;
    const line = refusal(decision);
    const report = { atMs, entityId, estimated, used: 0, retryAfterSeconds, line };
    this.#report({ ...report, outcome: "refused" });
    const againMs = atMs + Math.ceil(retryAfterSeconds * 1000);
    if (isPatient(entityId) && againMs < LAST_CALL_MS) this.expect({ ...call, atMs: againMs });
  }

  async #settle({ key, estimated, used, fails }: PlannedCall, lease: Lease): Promise<void> {
    const report = {
      atMs: this.#time.passedMs,
      entityId: key,
      estimated,
      retryAfterSeconds: 0,
    };
    if (fails) {
      await lease.rollback();
      const line = `the model failed; all ${estimated} are refunded`;
      this.#report({ ...report, outcome: "failed", used: 0, line });
      return;
    }
    lease.adjust({ tpm: used - estimated });
    await lease.commit();
    this.#report({ ...report, outcome: "answered", used, line: correction(estimated, used) });
  }
}

/** Describes the limit with the longest wait. */
function refusal({ violations, retryAfterSeconds }: Refusal): string {
  const { entityId, limitName, available, requested } = violations.reduce((worst, other) =>
    other.retryAfterSeconds > worst.retryAfterSeconds ? other : worst,
  );
  const has = `${entityId} has ${withThousands(available)} ${limitName}`;
  const asked = `${has}, asked for ${withThousands(requested)}`;
  return Number.isFinite(retryAfterSeconds)
    ? `${asked}; again in ${duration(retryAfterSeconds)}`
    : `${asked}, which never fits`;
}

function correction(estimated: number, used: number): string {
  const line = `estimated ${estimated}, used ${used}`;
  if (used === estimated) return line;
  return used > estimated
    ? `${line}: ${used - estimated} more are consumed`
    : `${line}: ${estimated - used} are refunded`;
}
