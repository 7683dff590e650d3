/** One call of a process from its beginning to its end, and what it says it has kept. */

import { LeaseExpiredError, RateLimiterUnavailable, ValidationError } from "../../domain/errors.ts";
import type { LimitStatus } from "../../domain/limit-status.ts";
import { RateLimitExceeded } from "../../domain/rate-limit-exceeded.ts";
import type { Timer } from "../../domain/timer.ts";
import type { AcquireRequest } from "../../limiter/acquire-request.ts";
import type { Lease } from "../../limiter/lease.ts";
import type { RateLimiter } from "../../limiter/rate-limiter.ts";
import { type Amounts, slotOf } from "../checkers/books.ts";
import type { Wanted } from "../checkers/refusals.ts";
import { Violation } from "../checkers/violation.ts";
import type { Deed } from "./parameters.ts";
import { RESOURCE } from "./population.ts";
import type { World } from "./world.ts";

/** Whole tokens by limit name. */
export type Tokens = Readonly<Record<string, number>>;

/** A call, as it was drawn. */
export interface PlannedCall {
  readonly number: number;
  readonly entityId: string;
  readonly ancestors: readonly string[];
  readonly deed: Deed;
  readonly consume: Tokens;
  /** For `adjust` and `flush`: below zero gives back. */
  readonly deltas: Tokens;
  readonly limits: readonly string[] | undefined;
  readonly thinkMs: number;
}

/** Who makes it. */
export interface Caller {
  readonly id: number;
  readonly limiter: RateLimiter;
  readonly timer: Timer;
  readonly timeoutMs: number;
}

const THROWN = new Error("thrown by the body");
const ABORTED = new Error("aborted");
const WAIT_SECONDS = 3;
/** Beyond its timeout a call may take the time of a give-back that it starts at the last moment. */
const MARGIN_MS = 500;

export class CallRun {
  readonly call: PlannedCall;
  readonly #world: World;
  readonly #caller: Caller;
  outcome = "under way";

  constructor(world: World, caller: Caller, call: PlannedCall) {
    this.#world = world;
    this.#caller = caller;
    this.call = call;
  }

  /** The most that it can have consumed when its process crashes in the middle of it. */
  get most(): Amounts {
    const { entityId, ancestors, consume, deltas } = this.call;
    const most = new Map<string, number>();
    for (const entity of [entityId, ...ancestors]) {
      for (const [name, amount] of Object.entries(consume)) {
        // Twice, for those that take more of the same.
        const sum = 2 * amount + Math.max(0, deltas[name] ?? 0);
        most.set(slotOf(entity, RESOURCE, name), sum * 1000);
      }
    }
    return most;
  }

  async run(): Promise<void> {
    const { deed, number } = this.call;
    try {
      if (deed === "look") await this.#look();
      else if (deed === "throw" || deed === "abort") await this.#runBody(deed);
      else await this.#acquire(deed);
    } catch (error) {
      this.#failed(error);
    }
    this.#world.log.add(`p${this.#caller.id} call ${number} ${deed}: ${this.outcome}`);
  }

  get #request(): AcquireRequest {
    const { entityId, consume, limits, deed } = this.call;
    return {
      entityId,
      resource: RESOURCE,
      consume,
      ...(limits === undefined ? {} : { limits }),
      ...(deed === "wait" ? { maxWaitSeconds: WAIT_SECONDS } : {}),
    };
  }

  async #look(): Promise<void> {
    const { limiter } = this.#caller;
    await this.#timed(
      "available",
      limiter.available({ entityId: this.call.entityId, resource: RESOURCE }),
    );
    this.outcome = "looked";
  }

  /** `run` refunds everything when its body throws, be it because its signal has aborted. */
  async #runBody(deed: "throw" | "abort"): Promise<void> {
    const { limiter, timer } = this.#caller;
    const { thinkMs } = this.call;
    const controller = new AbortController();
    const body = async () => {
      await timer.sleep(thinkMs);
      if (deed === "throw") throw THROWN;
      controller.abort(ABORTED);
      controller.signal.throwIfAborted();
    };
    const request = {
      ...this.#request,
      ...(deed === "abort" ? { signal: controller.signal } : {}),
    };
    await this.#timed("run", limiter.run(request, body), thinkMs);
    this.outcome = "ran";
  }

  async #acquire(deed: Deed): Promise<void> {
    const { limiter, timer, id } = this.#caller;
    const waitMs = deed === "wait" ? WAIT_SECONDS * 1000 : 0;
    const startMs = this.#world.time.nowMs;
    const stopWaiting = waitMs > 0 ? this.#world.refusals.wait(id, this.#wanted) : () => {};
    const decision = await this.#timed(
      "tryAcquire",
      limiter.tryAcquire(this.#request),
      waitMs,
    ).finally(stopWaiting);
    if (waitMs > 0) this.#judgeWait(startMs);
    if (!decision.granted) {
      this.outcome = "refused";
      if (decision.violations.length === 0) {
        throw new Violation("leases", `call ${this.call.number}`, "refused without a reason");
      }
      this.#judgeRefusal(decision.violations, startMs);
      return;
    }
    const { lease } = decision;
    this.#expect(lease, this.call.consume);
    if (!this.#world.links.isEmpty && !lease.degraded) {
      const consumed = new Set(lease.statuses.map(({ entityId }) => entityId));
      const subject = `call ${this.call.number} of process ${id}`;
      this.#world.links.judge(subject, this.call.entityId, consumed, startMs);
    }
    const held = heldBy(lease);
    await timer.sleep(this.call.thinkMs);
    const { books } = this.#world;
    switch (deed) {
      case "rollback":
        await this.#timed("rollback", lease.rollback());
        this.outcome = "rolled back";
        return;
      case "adjust":
      case "flush":
        return this.#adjust(lease, held, deed);
      case "more":
        return this.#takeMore(lease, held);
      default:
        await this.#timed("commit", lease.commit());
        this.outcome = "committed";
        books.claim(id, held);
    }
  }

  /** What the call asks of its own bucket. */
  get #wanted(): Wanted[] {
    const { entityId, consume } = this.call;
    return Object.entries(consume).map(([limitName, amount]) => {
      return { bucket: `${entityId} ${RESOURCE}`, limitName, amountMilli: amount * 1000 };
    });
  }

  #judgeRefusal(violations: readonly LimitStatus[], startMs: number): void {
    const { refusals, time, judgesRefusals } = this.#world;
    // The parameters of a bucket follow those of a call, for other calls too.
    if (this.call.limits !== undefined) return;
    const named = violations.map(({ entityId, resource, limitName, requested }) => {
      return { bucket: `${entityId} ${resource}`, limitName, amountMilli: requested * 1000 };
    });
    const reason = refusals.whyWrong(this.#caller.id, named, startMs, time.nowMs);
    if (reason === undefined) return;
    this.outcome = "refused wrongly";
    this.#world.log.add(`call ${this.call.number} is refused wrongly: ${reason}`);
    if (judgesRefusals) throw new Violation("refusals", `call ${this.call.number}`, reason);
  }

  #judgeWait(startMs: number): void {
    const { refusals, time, judgesRefusals } = this.#world;
    // A call that cascades may wait for an ancestor, and another process wakes up nothing here.
    const isAlone = this.call.ancestors.length === 0 && this.#world.links.isEmpty;
    if (!judgesRefusals || !isAlone) return;
    if (!refusals.isLate(this.#caller.id, this.#wanted, startMs, time.nowMs)) return;
    const detail = "waited on although there was enough for it";
    throw new Violation("refusals", `call ${this.call.number}`, detail);
  }

  async #adjust(lease: Lease, held: Amounts, deed: "adjust" | "flush"): Promise<void> {
    const { books } = this.#world;
    const { entityId, consume } = this.call;
    const deltas: Record<string, number> = {};
    const expected: Record<string, number> = { ...consume };
    const change = new Map(held);
    for (const [name, delta] of Object.entries(this.call.deltas)) {
      const known = lease.statuses.filter(({ limitName }) => limitName === name);
      if (!known.some((status) => status.entityId === entityId)) continue;
      const bounded = Math.max(-(consume[name] ?? 0), delta);
      deltas[name] = bounded;
      expected[name] = (consume[name] ?? 0) + bounded;
      for (const status of known) {
        const slot = slotOf(status.entityId, RESOURCE, name);
        change.set(slot, (held.get(slot) ?? 0) + bounded * 1000);
        if (bounded > 0)
          this.#world.allowDebt(`${status.entityId} ${RESOURCE}`, name, bounded * 1000);
      }
    }
    lease.adjust(deltas);
    this.#expect(lease, expected);
    try {
      if (deed === "flush") await this.#timed("flush", lease.flush());
      await this.#timed("commit", lease.commit());
    } catch (error) {
      // Some of its legs may have been written.
      if (error instanceof RateLimiterUnavailable) books.claim(this.#caller.id, held, change);
      throw error;
    }
    this.#expect(lease, expected);
    this.outcome = "adjusted";
    books.claim(this.#caller.id, change);
  }

  async #takeMore(lease: Lease, held: Amounts): Promise<void> {
    const { books } = this.#world;
    const { consume } = this.call;
    const all = new Map(held);
    this.outcome = "took no more";
    try {
      await this.#timed("consume", lease.consume(consume));
      for (const { entityId, limitName } of lease.statuses) {
        const slot = slotOf(entityId, RESOURCE, limitName);
        const amount = (consume[limitName] ?? 0) * 1000;
        if (amount > 0) all.set(slot, (held.get(slot) ?? 0) + amount);
      }
      this.#expect(lease, double(consume));
      this.outcome = "took more";
    } catch (error) {
      if (!isExpected(error)) throw error;
    }
    await this.#timed("commit", lease.commit());
    books.claim(this.#caller.id, all);
  }

  /** The lease says what it holds, exactly. */
  #expect(lease: Lease, tokens: Tokens): void {
    if (lease.degraded) return;
    for (const name of new Set([...Object.keys(tokens), ...Object.keys(lease.consumed)])) {
      const [found, expected] = [lease.consumed[name] ?? 0, tokens[name] ?? 0];
      if (found === expected) continue;
      const detail = `its lease holds ${found} of "${name}", and should hold ${expected}`;
      throw new Violation("leases", `call ${this.call.number}`, detail);
    }
  }

  /** Nobody waits for longer than the timeout, and what it was allowed to wait for. */
  async #timed<T>(name: string, work: Promise<T>, allowedMs = 0): Promise<T> {
    const { time } = this.#world;
    const startMs = time.nowMs;
    try {
      return await work;
    } finally {
      const tookMs = time.nowMs - startMs;
      // A wait asks once more when its time has come.
      const mostMs = 2 * this.#caller.timeoutMs + allowedMs + MARGIN_MS;
      if (tookMs > mostMs) {
        const detail = `${name} took ${Math.round(tookMs)} ms, at most ${mostMs} are allowed`;
        this.#world.fail(new Violation("patience", `call ${this.call.number}`, detail));
      }
    }
  }

  #failed(error: unknown): void {
    if (error instanceof Error) this.outcome = `${error.name}`;
    if (error instanceof Violation || !isExpected(error)) this.#world.fail(error);
    if (error instanceof RateLimiterUnavailable && this.#world.isHealthy) {
      const detail = `nothing has failed, and yet it ends with: ${error.message}`;
      this.#world.fail(new Violation("availability", `call ${this.call.number}`, detail));
    }
  }
}

/** Everything that may end a call; anything else is a bug. */
function isExpected(error: unknown): boolean {
  return (
    error instanceof RateLimiterUnavailable ||
    error instanceof RateLimitExceeded ||
    error instanceof ValidationError ||
    error instanceof LeaseExpiredError ||
    error === THROWN ||
    error === ABORTED
  );
}

/** What was charged, of the entity and of its ancestors. */
function heldBy(lease: Lease): Amounts {
  const held = new Map<string, number>();
  for (const { entityId, resource, limitName, requested } of lease.statuses) {
    if (requested > 0) held.set(slotOf(entityId, resource, limitName), requested * 1000);
  }
  return held;
}

function double(tokens: Tokens): Tokens {
  return Object.fromEntries(Object.entries(tokens).map(([name, amount]) => [name, 2 * amount]));
}
