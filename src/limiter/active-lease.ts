/** A lease on buckets that were charged. */

import type { BucketStore } from "../buckets/bucket-store.ts";
import { floorDiv } from "../core/integers.ts";
import { checkInteger, TOKENS_MAX } from "../domain/check.ts";
import { LeaseExpiredError, RateLimiterUnavailable, ValidationError } from "../domain/errors.ts";
import type { Limit } from "../domain/limit.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import type { OnUnavailable } from "../domain/unavailability.ts";
import { type Amounts, checkAmountNames, checkAmounts } from "./acquire-request.ts";
import { statusesAfter } from "./decision.ts";
import {
  add,
  addPending,
  byEntity,
  copyOf,
  countedMilli,
  type Granted,
  type Holding,
  holdingsOf,
  placeOf,
  sameBucket,
  sumsOf,
  usedMilli,
} from "./holding.ts";
import type { Lease } from "./lease.ts";

/** Whom a lease charges. */
export interface LeaseTarget {
  readonly entityId: string;
  readonly resource: string;
  readonly limits?: readonly Limit[] | undefined;
  readonly onUnavailable?: OnUnavailable | undefined;
}

/** What leases have in common. */
export interface LeaseHost {
  readonly buckets: BucketStore;
  /** Charges more of the same entity and resource, or throws; `undefined`: passed uncounted. */
  takeMore(target: LeaseTarget, amounts: Amounts): Promise<Granted | undefined>;
  /** What to do when an adjustment cannot be written: `true` lets it pass with a warning. */
  adjustmentFailed(target: LeaseTarget, cause: RateLimiterUnavailable): boolean;
  /** Everything the lease held is being given back. */
  restored(target: LeaseTarget): void;
  /** So many whole tokens of a bucket were given back. */
  gaveBack(bucket: { entityId: string; resource: string }, tokens: Amounts): void;
}

const DONE = Promise.resolve();

export class ActiveLease implements Lease {
  readonly degraded = false;
  readonly #host: LeaseHost;
  readonly #target: LeaseTarget;
  readonly #granted: Granted;
  /** Made when somebody needs them: most leases are committed as they are. */
  #made: Holding[] | undefined;
  #statuses: readonly LimitStatus[] | undefined;
  #settled = false;
  #adjusted = false;
  /** The write under way. Each one starts from what the one before it has written. */
  #lastWrite: Promise<void> | undefined;

  constructor(host: LeaseHost, target: LeaseTarget, granted: Granted) {
    this.#host = host;
    this.#target = target;
    this.#granted = granted;
  }

  get consumed(): Readonly<Record<string, number>> {
    const sums = sumsOf(this.#ownHoldings, countedMilli);
    // Shards hold parts of tokens: only their sum is whole.
    const tokens = [...sums].filter(([, milli]) => milli !== 0);
    return Object.fromEntries(tokens.map(([name, milli]) => [name, milli / 1000]));
  }

  get statuses(): readonly LimitStatus[] {
    const { legs, outcomes } = this.#granted;
    this.#statuses ??= statusesAfter(
      legs,
      outcomes.map((outcome) => outcome.balancesMilli),
    );
    return this.#statuses;
  }

  get isSettled(): boolean {
    return this.#settled;
  }

  async consume(amounts: Readonly<Record<string, number>>): Promise<void> {
    this.#refuseSettled();
    const checked = checkAmounts("consume", amounts, 0);
    checkAmountNames("consume", checked, this.#own.config.limits);
    const granted = await this.#host.takeMore(this.#target, checked);
    if (!this.#settled) {
      if (granted === undefined) this.#believe(checked);
      else this.#hold(granted);
      return;
    }
    // Settled meanwhile: what came too late goes back at once.
    if (granted !== undefined) {
      this.#host.restored(this.#target);
      await this.#restore(holdingsOf(granted));
    }
    throw new LeaseExpiredError();
  }

  adjust(amounts: Readonly<Record<string, number>>): void {
    this.#adjust("adjust", amounts, 1);
  }

  release(amounts: Readonly<Record<string, number>>): void {
    this.#adjust("release", amounts, -1);
  }

  async flush(): Promise<void> {
    this.#refuseSettled();
    await this.#inTurn(() => this.#writePending());
  }

  commit(): Promise<void> {
    if (this.#settled) return Promise.reject(new LeaseExpiredError());
    this.#settled = true;
    if (!this.#adjusted && this.#lastWrite === undefined) return DONE;
    return this.#inTurn(() => this.#writePending());
  }

  async rollback(): Promise<void> {
    this.#refuseSettled();
    this.#settled = true;
    this.#host.restored(this.#target);
    await this.#inTurn(async () => {
      const holdings = this.#holdings.map(copyOf);
      for (const { heldMilli, pendingMilli, unsureMilli } of this.#holdings) {
        heldMilli.fill(0);
        pendingMilli.fill(0);
        unsureMilli.fill(0);
      }
      await this.#restore(holdings);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#settled) await this.commit();
  }

  /** The first is the one of the entity itself that was charged first. */
  get #holdings(): Holding[] {
    this.#made ??= holdingsOf(this.#granted);
    return this.#made;
  }

  get #own(): Holding {
    return this.#holdings[0] as Holding;
  }

  get #ownHoldings(): Holding[] {
    return this.#holdings.filter(({ entityId }) => entityId === this.#own.entityId);
  }

  #refuseSettled(): void {
    if (this.#settled) throw new LeaseExpiredError();
  }

  /** One after the other, whether those before went well or not. */
  #inTurn(write: () => Promise<void>): Promise<void> {
    const written = (this.#lastWrite ?? DONE).then(write);
    this.#lastWrite = written.catch(() => {});
    return written;
  }

  /** What is held of one shard is one holding, so that it is settled by one write. */
  #hold(granted: Granted): void {
    for (const taken of holdingsOf(granted)) {
      const same = this.#holdings.find((holding) => sameBucket(holding, taken));
      if (same === undefined) {
        this.#holdings.push(taken);
        continue;
      }
      for (const [at, amount] of taken.heldMilli.entries()) add(same.heldMilli, at, amount);
    }
  }

  /** What nobody has counted is used up all the same. */
  #believe(amounts: Amounts): void {
    for (const holdings of byEntity(this.#holdings)) {
      for (const [name, amount] of amounts) {
        const place = placeOf(holdings, name);
        if (place !== undefined) add(place.holding.unsureMilli, place.at, amount * 1000);
      }
    }
  }

  /** Applies to the entity and to every parent that has the limit. All amounts are checked first. */
  #adjust(field: string, amounts: Readonly<Record<string, number>>, sign: 1 | -1): void {
    this.#refuseSettled();
    const checked = checkAmounts(field, amounts, -TOKENS_MAX);
    checkAmountNames(field, checked, this.#own.config.limits);
    const used = sumsOf(this.#ownHoldings, usedMilli);
    this.#adjusted = true;
    for (const [name, amount] of checked) {
      const held = (used.get(name) ?? 0) / 1000;
      if (held + sign * amount < 0) {
        throw new ValidationError(
          `${field}.${name}`,
          amount,
          `the lease holds ${held} of "${name}", so it cannot give back ${-sign * amount}`,
        );
      }
      // Beyond it milli-tokens would leave the safe integers, one adjustment at a time.
      checkInteger(`${field}.${name}`, held + sign * amount, 0, TOKENS_MAX);
    }
    for (const holdings of byEntity(this.#holdings)) {
      for (const [name, amount] of checked) addPending(holdings, name, sign * amount * 1000);
    }
  }

  async #writePending(): Promise<void> {
    const due = this.#holdings.filter(({ pendingMilli }) =>
      pendingMilli.some((delta) => delta !== 0),
    );
    const deltas = due.map((holding) => ({ ...holding, heldMilli: [...holding.pendingMilli] }));
    const results = await Promise.allSettled(due.map((holding) => this.#writeOne(holding)));
    this.#tellGivenBack(deltas, -1);
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  async #writeOne(holding: Holding): Promise<void> {
    const deltasMilli = [...holding.pendingMilli];
    const settle = (taken: number[]) => {
      deltasMilli.forEach((delta, at) => {
        add(delta > 0 ? taken : holding.heldMilli, at, delta);
        add(holding.pendingMilli, at, -delta);
      });
    };
    const adjustment = { ...holding, deltasMilli };
    try {
      // Giving back may be repeated, so it goes the way that never fails.
      if (deltasMilli.every((delta) => delta <= 0)) await this.#host.buckets.restore(adjustment);
      else await this.#host.buckets.adjust(adjustment);
      settle(holding.heldMilli);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      // A write whose outcome is unknown is neither repeated nor taken back.
      if (!error.nothingWritten) settle(holding.unsureMilli);
      if (!this.#host.adjustmentFailed(this.#target, error)) throw error;
    }
  }

  async #restore(holdings: readonly Holding[]): Promise<void> {
    const due = holdings.filter(({ heldMilli }) => heldMilli.some((held) => held !== 0));
    await Promise.all(
      due.map((holding) =>
        this.#host.buckets.restore({
          ...holding,
          deltasMilli: holding.heldMilli.map((held) => -held),
        }),
      ),
    );
    this.#tellGivenBack(due, 1);
  }

  /** Parts of tokens, of shards, are worth telling only as far as they add up. */
  #tellGivenBack(holdings: readonly Holding[], sign: 1 | -1): void {
    for (const some of byEntity(holdings)) {
      const { entityId, resource } = some[0] as Holding;
      const tokens = new Map<string, number>();
      for (const [name, milli] of sumsOf(some, ({ heldMilli }, at) => heldMilli[at] ?? 0)) {
        const back = floorDiv(sign * milli, 1000);
        if (back > 0) tokens.set(name, back);
      }
      if (tokens.size > 0) this.#host.gaveBack({ entityId, resource }, tokens);
    }
  }
}
