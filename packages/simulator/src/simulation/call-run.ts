/** One call of a process from its beginning to its end, and what it says it has kept. */

import type { AcquireRequest } from "@zae-limiter/limiter/acquire/acquire-request.ts";
import type { Lease } from "@zae-limiter/limiter/acquire/lease/lease.ts";
import {
  LeaseExpiredError,
  RateLimiterUnavailable,
  ResourceDisabled,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { RateLimitExceeded } from "@zae-limiter/limiter/domain/errors/rate-limit-exceeded.ts";
import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import { type Amounts, slotOf } from "../checkers/books.ts";
import type { SlotGrant } from "../checkers/slots/slot-grants.ts";
import { Violation } from "../checkers/violation.ts";
import { CallJudge } from "./call-judge.ts";
import type { Deed } from "./parameters.ts";
import {
  type Caller,
  type PlannedCall,
  partsOf,
  type Tokens,
  type WholePart,
} from "./planned-call.ts";
import { RESOURCE } from "./population.ts";
import type { World } from "./world.ts";

const THROWN = new Error("thrown by the body");
const ABORTED = new Error("aborted");
const WAIT_SECONDS = 3;
/** Beyond its timeout a call may take the time of a give-back that it starts at the last moment. */
const MARGIN_MS = 500;

export class CallRun {
  readonly call: PlannedCall;
  readonly #world: World;
  readonly #caller: Caller;
  readonly #judge: CallJudge;
  #grants: readonly SlotGrant[] = [];
  outcome = "under way";

  constructor(world: World, caller: Caller, call: PlannedCall) {
    this.#world = world;
    this.#caller = caller;
    this.call = call;
    this.#judge = new CallJudge(world, caller, call);
  }

  /** The most that it can have consumed when its process crashes in the middle of it. */
  get most(): Amounts {
    return mostOf(this.call);
  }

  get #parts(): readonly WholePart[] {
    return partsOf(this.call, RESOURCE);
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
    const { entityId, consume, slots, limits, deed, totals } = this.call;
    const also = this.#parts
      .slice(1)
      .map((part) => ({ entityId: part.entityId, resource: part.resource, consume: part.consume }));
    return {
      entityId,
      resource: RESOURCE,
      consume: { ...consume, ...slots },
      ...(totals.length === 0 ? {} : { totals: true }),
      ...(also.length === 0 ? {} : { also }),
      ...(limits === undefined ? {} : { limits }),
      ...(deed === "wait" ? { maxWaitSeconds: WAIT_SECONDS } : {}),
    };
  }

  async #look(): Promise<void> {
    const { limiter } = this.#caller;
    await this.#timed(
      "available",
      limiter.available({
        entityId: this.call.entityId,
        resource: RESOURCE,
        totals: this.call.totals.length > 0,
      }),
    );
    this.outcome = "looked";
  }

  /** Makes a call by `run` whose body throws, or whose signal aborts: everything is refunded. */
  async #runBody(deed: "throw" | "abort"): Promise<void> {
    const { limiter, timer } = this.#caller;
    const { thinkMs } = this.call;
    const controller = new AbortController();
    const decided = this.#judge.asks();
    const body = async (lease: Lease) => {
      decided();
      this.#hold(lease);
      await timer.sleep(thinkMs);
      this.#giveBack();
      if (deed === "throw") throw THROWN;
      controller.abort(ABORTED);
      controller.signal.throwIfAborted();
    };
    const request = {
      ...this.#request,
      ...(deed === "abort" ? { signal: controller.signal } : {}),
    };
    await this.#timed("run", limiter.run(request, body), thinkMs).finally(decided);
    this.outcome = "ran";
  }

  async #acquire(deed: Deed): Promise<void> {
    const { limiter, timer, id } = this.#caller;
    const waitMs = deed === "wait" ? WAIT_SECONDS * 1000 : 0;
    const decided = this.#judge.asks();
    const decision = await this.#timed(
      "tryAcquire",
      limiter.tryAcquire(this.#request),
      waitMs,
    ).finally(decided);
    if (waitMs > 0) this.#judge.wait();
    if (!decision.granted) {
      this.outcome = this.#judge.refusal(decision.violations);
      return;
    }
    const { lease } = decision;
    this.#expect(lease, this.#parts);
    this.#hold(lease);
    this.#judge.grant(lease);
    const held = heldBy(lease);
    await timer.sleep(this.call.thinkMs);
    const { books } = this.#world;
    this.#giveBack();
    if (deed === "release") await this.#release(lease);
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

  /** Counts the slots that the lease holds from now on, of the entity and its ancestors. */
  #hold(lease: Lease): void {
    if (lease.degraded) return;
    const { slotGrants } = this.#world;
    const process = this.#caller.id;
    this.#grants = lease.statuses.flatMap((status) => {
      const { entityId, resource, limitName, requested: count, kind, limit } = status;
      if (kind !== "concurrency" || count === 0) return [];
      const grant = { process, slot: slotOf(entityId, resource, limitName), count };
      slotGrants.take(grant, limit.capacity);
      return [grant];
    });
  }

  /** Counts the slots no longer: the call begins to give them back. */
  #giveBack(): void {
    for (const grant of this.#grants) this.#world.slotGrants.give(grant);
    this.#grants = [];
  }

  /** Gives slots back early, and goes on without them for a while. */
  async #release(lease: Lease): Promise<void> {
    lease.release(this.call.slots);
    await this.#caller.timer.sleep(this.call.thinkMs);
  }

  async #adjust(lease: Lease, held: Amounts, deed: "adjust" | "flush"): Promise<void> {
    const { books } = this.#world;
    const change = new Map(held);
    const expected = this.#parts.map((part) => this.#adjustPart(lease, part, change));
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

  /** Adjusts one resource, notes what its buckets have then, and returns what the lease holds. */
  #adjustPart(lease: Lease, part: WholePart, change: Map<string, number>): WholePart {
    const { resource, consume, entityId, entities } = part;
    const deltas: Record<string, number> = {};
    const expected: Record<string, number> = { ...consume };
    for (const [name, delta] of Object.entries(this.call.deltas)) {
      const known = lease.statuses.filter(
        (status) =>
          status.limitName === name &&
          entities.includes(status.entityId) &&
          (status.resource === resource || status.resource === TOTAL),
      );
      if (!known.some((status) => status.entityId === entityId && status.resource === resource)) {
        continue;
      }
      const bounded = Math.max(-(consume[name] ?? 0), delta);
      deltas[name] = bounded;
      expected[name] = (consume[name] ?? 0) + bounded;
      for (const status of known) {
        const slot = slotOf(status.entityId, status.resource, name);
        change.set(slot, (change.get(slot) ?? 0) + bounded * 1000);
        if (bounded > 0)
          this.#world.allowDebt(`${status.entityId} ${status.resource}`, name, bounded * 1000);
      }
    }
    lease.of(resource, { entityId }).adjust(deltas);
    return { ...part, consume: expected };
  }

  async #takeMore(lease: Lease, held: Amounts): Promise<void> {
    const { books } = this.#world;
    const { consume } = this.call;
    const all = new Map(held);
    let most: Amounts = all;
    this.outcome = "took no more";
    try {
      await this.#timed("consume", lease.consume(consume));
      const [own, ...others] = this.#parts as [WholePart, ...WholePart[]];
      for (const { entityId, limitName, resource } of lease.statuses) {
        if (resource !== RESOURCE && resource !== TOTAL) continue;
        if (!own.entities.includes(entityId)) continue;
        const slot = slotOf(entityId, resource, limitName);
        const amount = (consume[limitName] ?? 0) * 1000;
        if (amount > 0) all.set(slot, (held.get(slot) ?? 0) + amount);
      }
      most = this.#withLaterTotals(all, own);
      this.#expect(lease, [{ ...own, consume: double(consume) }, ...others]);
      this.outcome = "took more";
    } catch (error) {
      if (!isExpected(error)) throw error;
    }
    await this.#timed("commit", lease.commit());
    books.claim(this.#caller.id, all, most);
  }

  /** Adds what a total may have consumed of limits that it got after the acquire. */
  #withLaterTotals(all: Amounts, { entities, consume }: WholePart): Amounts {
    if (this.call.totals.length === 0) return all;
    const most = new Map(all);
    for (const [name, amount] of Object.entries(consume)) {
      for (const entityId of entities) {
        const slot = slotOf(entityId, TOTAL, name);
        if (!most.has(slot)) most.set(slot, amount * 1000);
      }
    }
    return most;
  }

  /** Checks that the lease holds exactly these amounts of each resource. */
  #expect(lease: Lease, parts: readonly WholePart[]): void {
    if (lease.degraded) return;
    for (const { resource, entityId, consume } of parts) {
      const { consumed } = lease.of(resource, { entityId });
      for (const name of new Set([...Object.keys(consume), ...Object.keys(consumed)])) {
        if (this.call.slots[name] !== undefined) continue;
        const [found, expected] = [consumed[name] ?? 0, consume[name] ?? 0];
        if (found === expected) continue;
        const what = `"${name}" of ${resource}`;
        const detail = `its lease holds ${found} of ${what}, and should hold ${expected}`;
        throw new Violation("leases", `call ${this.call.number}`, detail);
      }
    }
  }

  /** Checks that no call takes longer than the timeout and its allowed wait. */
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

  /** Records a refusal that came as an error, from `run`. */
  #refused({ violations }: RateLimitExceeded): void {
    try {
      this.outcome = this.#judge.refusal(violations);
    } catch (error) {
      this.#world.fail(error);
    }
  }

  #failed(error: unknown): void {
    if (error instanceof Error) this.outcome = `${error.name}`;
    if (error instanceof ResourceDisabled) this.#judge.disabled(error);
    if (error instanceof RateLimitExceeded) this.#refused(error);
    if (error instanceof Violation || !isExpected(error)) this.#world.fail(error);
    if (error instanceof RateLimiterUnavailable && this.#world.isHealthy) {
      const detail = `nothing has failed, and yet it ends with: ${error.message}`;
      this.#world.fail(new Violation("availability", `call ${this.call.number}`, detail));
    }
  }
}

/** Returns the most that a call can have consumed, whatever its outcome. */
export function mostOf(call: PlannedCall): Amounts {
  const { deltas, totals } = call;
  const most = new Map<string, number>();
  for (const { resource, consume, entities } of partsOf(call, RESOURCE)) {
    const reached = totals.length === 0 ? [resource] : [resource, TOTAL];
    // An adjustment may concern a limit that the call did not consume from.
    for (const name of new Set([...Object.keys(consume), ...Object.keys(deltas)])) {
      // Twice, for those that take more of the same.
      const sum = 2 * (consume[name] ?? 0) + Math.max(0, deltas[name] ?? 0);
      for (const entity of entities) {
        for (const each of reached) {
          const slot = slotOf(entity, each, name);
          most.set(slot, (most.get(slot) ?? 0) + sum * 1000);
        }
      }
    }
  }
  return most;
}

/** Whether an error may end a call; any other is a bug. */
function isExpected(error: unknown): boolean {
  return (
    error instanceof RateLimiterUnavailable ||
    error instanceof RateLimitExceeded ||
    error instanceof ResourceDisabled ||
    error instanceof ValidationError ||
    error instanceof LeaseExpiredError ||
    error === THROWN ||
    error === ABORTED
  );
}

/** Returns what was consumed from the entity and its ancestors. */
function heldBy(lease: Lease): Amounts {
  const held = new Map<string, number>();
  for (const { entityId, resource, limitName, requested, kind } of lease.statuses) {
    if (kind === "concurrency") continue;
    if (requested > 0) held.set(slotOf(entityId, resource, limitName), requested * 1000);
  }
  return held;
}

function double(tokens: Tokens): Tokens {
  return Object.fromEntries(Object.entries(tokens).map(([name, amount]) => [name, 2 * amount]));
}
