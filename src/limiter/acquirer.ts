/** One attempt at an acquire: legs, charge, and what to do when something is in the way. */

import {
  type BucketCallOptions,
  type BucketStore,
  type ConsumeResult,
  givingBack,
  type Leg,
  type LegOutcome,
} from "../buckets/bucket-store.ts";
import { RateLimiterUnavailable } from "../domain/errors.ts";
import { CONFIG_LEVELS } from "../domain/precedence.ts";
import { RateLimitExceeded } from "../domain/rate-limit-exceeded.ts";
import type { OnUnavailable } from "../domain/unavailability.ts";
import type { RepositoryInternals } from "../repository/internals.ts";
import { type AcquireRequest, type CheckedRequest, isPlain } from "./acquire-request.ts";
import { ActiveLease, type LeaseHost, type LeaseTarget } from "./active-lease.ts";
import type { AmountsByName } from "./amounts.ts";
import { type Charged, seenBy } from "./charged.ts";
import { Refusal, type Seen } from "./decision.ts";
import { DegradedLease } from "./degraded-lease.ts";
import type { LeaseWarning, LimiterEvent, LimiterWarning } from "./events.ts";
import type { Granted } from "./holding.ts";
import type { Lease } from "./lease.ts";
import { Legs, type Target } from "./legs.ts";
import { Links, sameLink } from "./links.ts";
import type { MissingLimits } from "./missing-limits.ts";
import type { LineRequest } from "./waiting-line.ts";
import { Warnings } from "./warnings.ts";

/** A lease that says whether it has ended. */
type OpenLease = Lease & { readonly isEnded: boolean };

export type Decided = { readonly granted: true; readonly lease: OpenLease } | Refusal;

export interface AcquirerOptions {
  readonly onUnavailable: OnUnavailable | undefined;
  readonly speculativeWrites: boolean | undefined;
  readonly events: ((event: LimiterEvent) => void) | undefined;
  readonly onWarning: ((warning: LimiterWarning) => void) | undefined;
  readonly missingLimits: MissingLimits | undefined;
  /** Told what leases have given back, so that nobody waits for what is there. */
  readonly gaveBack: LeaseHost["gaveBack"];
  /** A refusal where what is there belongs to others, who wait for it. */
  readonly refusedByOthers: (target: LineRequest) => Promise<Refusal | undefined>;
}

const LATE: unique symbol = Symbol("late");
/** How often limits or links that turn out to be old are read anew. */
const ROUNDS_MAX = 4;

export class Acquirer implements LeaseHost {
  readonly #internals: RepositoryInternals;
  readonly #options: AcquirerOptions;
  readonly #links: Links;
  readonly #legs: Legs;
  readonly #warnings: Warnings;
  readonly #onRestored: ((leg: LeaseTarget) => void) | undefined;
  /** Refusals for which the store was asked. */
  readonly #asked = new WeakSet<Refusal>();

  constructor(internals: RepositoryInternals, options: AcquirerOptions) {
    this.#internals = internals;
    this.#options = options;
    this.#links = new Links(internals.buckets, internals.clock);
    this.#legs = new Legs(internals.resolver, this.#links, options.missingLimits);
    this.#warnings = new Warnings(options.onWarning);
    const { events } = options;
    this.#onRestored =
      events && (({ entityId, resource }) => events({ type: "restored", entityId, resource }));
  }

  get buckets(): BucketStore {
    return this.#internals.buckets;
  }

  /**
   * Decides on the spot, where the bucket is in this process and its limits are known. Only for
   * calls that say nothing out of the ordinary; `undefined`, with nothing done, for all others.
   */
  attemptNow(request: AcquireRequest): Decided | undefined {
    const { buckets, resolver } = this.#internals;
    if (buckets.chargeNow === undefined || !isPlain(request)) return undefined;
    const { entityId, resource, consume } = request;
    const { cache } = resolver;
    const charged = buckets.chargeNow(entityId, resource, consume, cache.generation);
    if (charged === undefined) return undefined;
    cache.countHits(CONFIG_LEVELS.length);
    if (charged.granted) {
      this.#options.events?.({ type: "acquired", entityId, resource });
      return { granted: true, lease: new ActiveLease(this, charged, charged) };
    }
    const refusal = this.#refusal(charged, false);
    this.announceRefusal(charged, refusal);
    return refusal;
  }

  /** Decides, or throws `RateLimiterUnavailable` within the time the store is given. */
  async attempt(request: CheckedRequest): Promise<Decided> {
    const { entityId, resource } = request;
    const taken = await this.#take(request);
    if (taken instanceof Refusal) return taken;
    this.#options.events?.({ type: "acquired", entityId, resource });
    this.#remember(taken);
    return { granted: true, lease: new ActiveLease(this, request, taken) };
  }

  /** What a call comes to that the store could not answer: a grant that nobody counts, or an error. */
  unavailable(request: LeaseTarget, cause: RateLimiterUnavailable): Decided {
    this.#pass(request, cause);
    return { granted: true, lease: new DegradedLease() };
  }

  /** Tells that a call was refused for good; one that waits may be refused many times before. */
  announceRefusal({ entityId, resource }: LeaseTarget, refusal: Refusal): void {
    const { events } = this.#options;
    if (events === undefined) return;
    const { retryAfterSeconds } = refusal;
    const local = !this.#asked.has(refusal);
    events({ type: "rejected", entityId, resource, local, retryAfterSeconds });
  }

  /** The legs of a call and their balances, without taking anything. */
  async look(target: Target): Promise<Seen> {
    const deadline = this.#deadline();
    const legs = await this.#legsOf(target, deadline, false);
    const balancesMilli = await this.#internals.buckets.read(legs, this.#left(deadline));
    return { legs, balancesMilli };
  }

  /** Whether the store answers in time. */
  async ping(timeoutMs: number): Promise<boolean> {
    try {
      const deadline = this.#internals.timer.nowMs() + timeoutMs;
      await this.#before(deadline, this.#internals.ping(timeoutMs));
      return true;
    } catch {
      return false;
    }
  }

  /** The next call for the same bucket may find it charged by limits that are still in force. */
  #remember({ legs }: Granted): void {
    const { buckets, resolver } = this.#internals;
    const [leg] = legs;
    if (buckets.remember === undefined || leg === undefined || legs.length > 1) return;
    if (leg.config.source === "override") return;
    const { entityId, resource } = leg;
    const known = resolver.remembered(entityId, resource);
    if (known?.limits === undefined || known.limits.version < resolver.cache.version) return;
    const { generation } = resolver.cache;
    const memory = { config: known.limits, generation, untilMs: known.expiresAtMs };
    buckets.remember(entityId, resource, memory);
  }

  async takeMore(request: LeaseTarget, amounts: AmountsByName): Promise<Granted | undefined> {
    try {
      const { entityId, resource, limits, missingLimits } = request;
      const target = { entityId, resource, limits, missingLimits, amounts };
      const taken = (await this.#options.refusedByOthers(target)) ?? (await this.#take(target));
      if (taken instanceof Refusal) {
        this.announceRefusal(request, taken);
        throw new RateLimitExceeded(taken.statuses);
      }
      this.#options.events?.({ type: "acquired", entityId, resource });
      return taken;
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      this.#pass(request, error);
      return undefined;
    }
  }

  /** Lets a call pass uncounted, unless it is to be blocked while the store cannot answer. */
  #pass(request: LeaseTarget, cause: RateLimiterUnavailable): void {
    if (this.#mode(request) === "block") throw this.#blocked(request, cause);
    const { entityId, resource } = request;
    this.#options.events?.({ type: "degraded", entityId, resource, cause });
  }

  /** Charges all legs, or none. */
  async #take(target: Target): Promise<Granted | Refusal> {
    const deadline = this.#deadline();
    const legs = this.#legs.remembered(target);
    if (legs === undefined) return this.#takeInRounds(target, deadline, new Map(), 0);
    // Nothing was charged before, so there is nothing to give back if this fails.
    const result = await this.#consume(legs, deadline);
    if (result.outcome === "refused") {
      return this.#refusal({ legs, balancesMilli: result.balancesMilli }, result.local);
    }
    if (result.outcome === "outdated") {
      this.#internals.resolver.cache.clear();
      return this.#takeInRounds(target, deadline, new Map(), 1);
    }
    const [leg] = legs;
    const outcome = result.legs[0] as LegOutcome;
    this.#links.see(leg.entityId, leg.resource, outcome.link);
    if (sameLink(leg.link, outcome.link)) return { legs, outcomes: result.legs };
    const charged = { leg: { ...leg, link: outcome.link }, outcome };
    return this.#takeInRounds(target, deadline, new Map([[leg.entityId, charged]]), 0);
  }

  /** Reads anew what turns out to be old. `charged` is what was charged already. */
  async #takeInRounds(
    target: Target,
    deadline: number,
    charged: Map<string, Charged>,
    outdatedBefore: number,
  ): Promise<Granted | Refusal> {
    let outdated = outdatedBefore;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const legs = await this.#settleOnFailure(charged, deadline, () =>
        this.#legsOf(target, deadline, outdated > 0),
      );
      const due = legs.filter((leg) => !charged.has(leg.entityId));
      const result = await this.#settleOnFailure(charged, deadline, () =>
        this.#consume(due, deadline),
      );
      if (result.outcome === "outdated") {
        // The first time our own memory may be old; the second time the counter has gone back.
        outdated += 1;
        this.#internals.resolver.cache.clear();
        continue;
      }
      if (result.outcome === "refused") {
        await this.#giveBack([...charged.values()], deadline);
        return this.#refusal(seenBy(legs, due, charged, result), result.local);
      }
      due.forEach((leg, at) => {
        charged.set(leg.entityId, { leg, outcome: result.legs[at] as LegOutcome });
      });
      if (!this.#linksChanged(charged)) return this.#granted(legs, charged, deadline);
    }
    await this.#giveBack([...charged.values()], deadline);
    throw new RateLimiterUnavailable("The limits changed too often to be applied in time", {
      reason: "throttled",
      nothingWritten: true,
    });
  }

  #consume(legs: readonly Leg[], deadline: number): Promise<ConsumeResult> {
    const { timeoutMs } = this.#left(deadline);
    const speculative = this.#options.speculativeWrites !== false;
    const onRestored = this.#onRestored;
    return this.#internals.buckets.consume(legs, { timeoutMs, speculative, onRestored });
  }

  /**
   * The legs in their order, each as it was charged: limits may have changed since. Those that
   * were charged by an old link are given back.
   */
  async #granted(
    legs: readonly Leg[],
    charged: Map<string, Charged>,
    deadline: number,
  ): Promise<Granted> {
    const charges = legs.map((leg) => charged.get(leg.entityId) as Charged);
    for (const leg of legs) charged.delete(leg.entityId);
    if (charged.size > 0) await this.#giveBack([...charged.values()], deadline);
    return { legs: charges.map(({ leg }) => leg), outcomes: charges.map((one) => one.outcome) };
  }

  /** Remembers the links the buckets have shown; whether one is not what the legs were made from. */
  #linksChanged(charged: ReadonlyMap<string, Charged>): boolean {
    let changed = false;
    for (const { leg, outcome } of charged.values()) {
      this.#links.see(leg.entityId, leg.resource, outcome.link);
      changed ||= !sameLink(leg.link, outcome.link);
    }
    if (changed) {
      for (const entry of charged.values()) entry.leg = { ...entry.leg, link: entry.outcome.link };
    }
    return changed;
  }

  #refusal(seen: Seen, local: boolean): Refusal {
    const refusal = new Refusal(seen);
    if (!local && this.#options.events !== undefined) this.#asked.add(refusal);
    return refusal;
  }

  /** A failure on the way gives back what had been charged before it. */
  async #settleOnFailure<T>(
    charged: ReadonlyMap<string, Charged>,
    deadline: number,
    work: () => Promise<T>,
  ): Promise<T> {
    try {
      return await work();
    } catch (error) {
      await this.#giveBack([...charged.values()], deadline);
      throw error;
    }
  }

  /** Within the time of the call; what takes longer goes on behind it. */
  async #giveBack(charges: readonly Charged[], deadline: number): Promise<void> {
    for (const { leg } of charges) {
      if (leg.amountsMilli.some((amount) => amount > 0)) this.#onRestored?.(leg);
    }
    await Promise.all(
      charges
        .flatMap(({ leg, outcome }) => givingBack(leg, outcome.parts))
        .map((adjustment) => this.#internals.buckets.restore(adjustment, this.#left(deadline))),
    );
  }

  #legsOf(target: Target, deadline: number, forced: boolean): Promise<readonly [Leg, ...Leg[]]> {
    const legs = this.#legs.of(target, this.#left(deadline), forced);
    // What is in this process waits for locks at most, and ends that by itself.
    return this.#internals.buckets.embedded === true ? legs : this.#before(deadline, legs);
  }

  /** What a store does in time; afterwards it may go on, but nobody waits for it. */
  async #before<T>(deadline: number, work: Promise<T>): Promise<T> {
    const { timer } = this.#internals;
    const done = new AbortController();
    const leftMs = Math.max(0, deadline - timer.nowMs());
    const late = timer.sleep(leftMs, done.signal).then((): typeof LATE => LATE);
    try {
      const result: T | typeof LATE = await Promise.race([work, late]);
      if (result !== LATE) return result;
    } finally {
      // With a reason of its own, since Node.js would make an expensive one.
      done.abort(LATE);
    }
    throw new RateLimiterUnavailable("The store did not answer in time", {
      reason: "timeout",
      nothingWritten: true,
    });
  }

  #deadline(): number {
    return this.#internals.timer.nowMs() + this.#internals.timeoutMs;
  }

  #left(deadline: number): Required<BucketCallOptions> {
    return { timeoutMs: Math.max(1, deadline - this.#internals.timer.nowMs()) };
  }

  /** The call beats the limiter, the limiter beats what is stored. */
  #mode(request: LeaseTarget): OnUnavailable {
    return (
      request.onUnavailable ??
      this.#options.onUnavailable ??
      this.#internals.onUnavailable ??
      this.#internals.resolver.cache.lastOnUnavailable ??
      "block"
    );
  }

  #blocked(request: LeaseTarget, error: RateLimiterUnavailable): RateLimiterUnavailable {
    // The context comes last in a message, and more of it is known here.
    const message = error.message.replace(` [stack=${error.stackName}]`, "");
    return new RateLimiterUnavailable(message, {
      cause: error.cause ?? error,
      ...(error.reason === undefined ? {} : { reason: error.reason }),
      nothingWritten: error.nothingWritten,
      stackName: this.#internals.storeName,
      entityId: request.entityId,
      resource: request.resource,
    });
  }

  restored(target: LeaseTarget): void {
    this.#onRestored?.(target);
  }

  gaveBack(bucket: { entityId: string; resource: string }, tokens: AmountsByName): void {
    this.#options.gaveBack(bucket, tokens);
  }

  /** With `allow` a failed adjustment is no error of the call, but somebody must hear of it. */
  adjustmentFailed(request: LeaseTarget, cause: unknown): boolean {
    if (this.#mode(request) === "block") return false;
    const { entityId, resource } = request;
    this.warn({ kind: "adjustment_failed", entityId, resource, cause });
    return true;
  }

  warn(warning: LeaseWarning): void {
    this.#warnings.tell(warning);
  }

  checkNames(...names: Parameters<Legs["checkNames"]>): void {
    this.#legs.checkNames(...names);
  }
}
