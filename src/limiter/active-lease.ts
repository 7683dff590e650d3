/** A lease on buckets that were charged. */

import type { BucketStore } from "../buckets/bucket-store.ts";
import { floorDiv } from "../core/integers.ts";
import { checkInteger, TOKENS_MAX } from "../domain/check.ts";
import { LeaseExpiredError, RateLimiterUnavailable, ValidationError } from "../domain/errors.ts";
import { INSPECT, type InspectStyle, inspected } from "../domain/inspect.ts";
import type { Limit } from "../domain/limit.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import type { OnUnavailable } from "../domain/unavailability.ts";
import { type Amounts, type AmountsByName, checkAmounts, readCorrections } from "./amounts.ts";
import { statusesAfter } from "./decision.ts";
import type { LeaseWarning, LimiterEvent } from "./events.ts";
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
import type { Lease, SettledAmounts } from "./lease.ts";
import type { MissingLimits } from "./missing-limits.ts";

/** What a lease consumes from. */
export interface LeaseTarget {
  readonly entityId: string;
  readonly resource: string;
  readonly limits?: readonly Limit[] | undefined;
  readonly onUnavailable?: OnUnavailable | undefined;
  readonly missingLimits?: MissingLimits | undefined;
}

/** What leases have in common. */
export interface LeaseHost {
  readonly buckets: BucketStore;
  /** Charges more of the same entity and resource, or throws; `undefined`: passed uncounted. */
  takeMore(
    target: LeaseTarget,
    amounts: AmountsByName,
    acquireId: string | undefined,
  ): Promise<Granted | undefined>;
  /** What to do when an adjustment cannot be written: `true` lets it pass with a warning. */
  adjustmentFailed(target: LeaseTarget, cause: RateLimiterUnavailable): boolean;
  /** Whether an event would reach a listener. */
  readonly isHeard: boolean;
  tell(event: LimiterEvent): void;
  /** So many whole tokens of a bucket were given back. */
  gaveBack(bucket: { entityId: string; resource: string }, tokens: AmountsByName): void;
  /** Refuses names that none of the limits has, unless the target ignores those. */
  checkNames(
    target: LeaseTarget,
    field: string,
    amounts: AmountsByName,
    limits: readonly Limit[],
  ): void;
  /** Tells of amounts that could not be applied as they were given. */
  warn(warning: LeaseWarning): void;
}

type Correction = "adjust" | "release" | "settle";

const DONE = Promise.resolve();

export class ActiveLease implements Lease {
  readonly degraded = false;
  readonly #host: LeaseHost;
  readonly #target: LeaseTarget;
  readonly #granted: Granted;
  /** Names the acquire in events; `undefined` where nothing listened to it. */
  readonly #acquireId: string | undefined;
  /** Made when somebody needs them: most leases are committed as they are. */
  #made: Holding[] | undefined;
  #statuses: readonly LimitStatus[] | undefined;
  #ended: "committed" | "rolled back" | undefined;
  #adjusted = false;
  /** The write under way. Each one starts from what the one before it has written. */
  #lastWrite: Promise<void> | undefined;

  constructor(host: LeaseHost, target: LeaseTarget, granted: Granted, acquireId?: string) {
    this.#host = host;
    this.#target = target;
    this.#granted = granted;
    this.#acquireId = acquireId;
  }

  get consumed(): Amounts {
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

  get overdrawn(): readonly string[] {
    const overdrawn = this.statuses.filter((status) => status.overdrawn === true);
    return [...new Set(overdrawn.map(({ limitName }) => limitName))];
  }

  get bypassed(): boolean {
    return this.#granted.legs[0]?.config.bypass === true;
  }

  get isEnded(): boolean {
    return this.#ended !== undefined;
  }

  async consume(amounts: Amounts): Promise<void> {
    this.#refuseEnded();
    const checked = checkAmounts("consume", amounts, 0);
    this.#checkNames("consume", checked);
    const granted = await this.#host.takeMore(this.#target, checked, this.#acquireId);
    if (!this.isEnded) {
      if (granted === undefined) this.#believe(checked);
      else this.#hold(granted);
      return;
    }
    // The lease has ended meanwhile: what came too late is refunded at once.
    if (granted !== undefined) {
      const late = holdingsOf(granted);
      this.#tellRefund(late);
      await this.#restore(late);
    }
    throw new LeaseExpiredError();
  }

  adjust(amounts: Amounts): void {
    this.#adjust("adjust", amounts, 1);
  }

  release(amounts: Amounts): void {
    this.#adjust("release", amounts, -1);
  }

  settle(amounts: SettledAmounts): void {
    const totals = this.#read("settle", amounts, 1);
    const deltas = new Map<string, number>();
    for (const [name, total] of totals) {
      const used = this.#used(name);
      if (used === undefined) continue;
      if (total < 0) this.#warn("amount_negative", "settle", name, total);
      deltas.set(name, Math.max(0, total) - used);
    }
    this.#apply(deltas);
  }

  async flush(): Promise<void> {
    this.#refuseEnded();
    await this.#inTurn(() => this.#writePending());
  }

  commit(): Promise<void> {
    if (this.isEnded) return Promise.reject(new LeaseExpiredError());
    this.#ended = "committed";
    if (!this.#adjusted && this.#lastWrite === undefined) return DONE;
    return this.#inTurn(() => this.#writePending());
  }

  async rollback(): Promise<void> {
    this.#refuseEnded();
    this.#ended = "rolled back";
    await this.#inTurn(async () => {
      const holdings = this.#holdings.map(copyOf);
      for (const { heldMilli, pendingMilli, unsureMilli } of this.#holdings) {
        heldMilli.fill(0);
        pendingMilli.fill(0);
        unsureMilli.fill(0);
      }
      this.#tellRefund(holdings);
      await this.#restore(holdings);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.isEnded) await this.commit();
  }

  [INSPECT](...style: InspectStyle): string {
    const { entityId, resource } = this.#target;
    const { consumed, degraded } = this;
    const state = this.#ended ?? "open";
    return inspected("Lease", { entityId, resource, state, consumed, degraded }, style);
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

  #refuseEnded(): void {
    if (this.isEnded) throw new LeaseExpiredError();
  }

  #checkNames(field: string, amounts: AmountsByName): void {
    this.#host.checkNames(this.#target, field, amounts, this.#own.config.limits);
  }

  #warn(
    kind: "amount_missing" | "amount_negative",
    operation: Correction,
    limitName: string,
    amount: unknown,
  ): void {
    const { entityId, resource } = this.#target;
    this.#host.warn({ kind, entityId, resource, limitName, operation, amount });
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
  #believe(amounts: AmountsByName): void {
    for (const holdings of byEntity(this.#holdings)) {
      for (const [name, amount] of amounts) {
        const place = placeOf(holdings, name);
        if (place !== undefined) add(place.holding.unsureMilli, place.at, amount * 1000);
      }
    }
  }

  /** All amounts are checked before any of them is applied. */
  #adjust(operation: "adjust" | "release", amounts: Amounts, sign: 1 | -1): void {
    const deltas = new Map<string, number>();
    for (const [name, amount] of this.#read(operation, amounts, sign)) {
      const field = `${operation}.${name}`;
      const used = this.#used(name);
      if (used === undefined) continue;
      const delta = sign * amount;
      if (used + delta < 0) {
        const reason = `the lease holds ${used} of "${name}", so it cannot give back ${-delta}`;
        throw new ValidationError(field, amount, reason);
      }
      // Beyond it milli-tokens would leave the safe integers, one adjustment at a time.
      checkInteger(field, used + delta, 0, TOKENS_MAX);
      deltas.set(name, delta);
    }
    this.#apply(deltas);
  }

  #read(operation: Correction, amounts: SettledAmounts, sign: 1 | -1): AmountsByName {
    this.#refuseEnded();
    const read = readCorrections(operation, amounts, sign, (name, amount) => {
      this.#warn("amount_missing", operation, name, amount);
    });
    this.#checkNames(operation, read);
    return read;
  }

  /**
   * What the caller has used of a limit, in tokens: of the entity itself, or of the first ancestor
   * that has the limit where the entity has none. `undefined` where a missing limit is ignored.
   */
  #used(name: string): number | undefined {
    const holder = placeOf(this.#holdings, name)?.holding.entityId;
    if (holder === undefined) return undefined;
    let used = 0;
    for (const holding of this.#holdings) {
      const at = holding.config.limits.findIndex((limit) => limit.name === name);
      if (at >= 0 && holding.entityId === holder) used += usedMilli(holding, at);
    }
    return used / 1000;
  }

  /** Applies to the entity and to every ancestor that has the limit. */
  #apply(deltas: AmountsByName): void {
    this.#adjusted = true;
    for (const holdings of byEntity(this.#holdings)) {
      for (const [name, delta] of deltas) addPending(holdings, name, delta * 1000);
    }
  }

  async #writePending(): Promise<void> {
    const due = this.#holdings.filter(({ pendingMilli }) =>
      pendingMilli.some((delta) => delta !== 0),
    );
    const deltas = due.map((holding) => ({ ...holding, heldMilli: [...holding.pendingMilli] }));
    const results = await Promise.allSettled(due.map((holding) => this.#writeOne(holding)));
    this.#tellGivenBack(deltas, -1);
    this.#tellAdjusted(deltas.filter((_, at) => isWritten(results[at])));
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  /** Returns whether it was written; throws where the caller must know that it was not. */
  async #writeOne(holding: Holding): Promise<boolean> {
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
      return true;
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      // A write whose outcome is unknown is neither repeated nor taken back.
      if (!error.nothingWritten) settle(holding.unsureMilli);
      if (!this.#host.adjustmentFailed(this.#target, error)) throw error;
      return false;
    }
  }

  #tellRefund(holdings: readonly Holding[]): void {
    if (!this.#host.isHeard) return;
    const facts = this.#facts(holdings);
    this.#host.tell({ type: "restored", ...facts, reason: "rollback" });
  }

  #tellAdjusted(deltas: readonly Holding[]): void {
    if (!this.#host.isHeard || deltas.length === 0) return;
    this.#host.tell({ type: "adjusted", ...this.#facts(deltas) });
  }

  /** What an event tells of the lease, with the amounts of the entity itself. */
  #facts(holdings: readonly Holding[]) {
    const { entityId, resource } = this.#target;
    const own = holdings.filter((holding) => holding.entityId === entityId);
    const sums = [...sumsOf(own, ({ heldMilli }, at) => heldMilli[at] ?? 0)];
    const amounts = Object.fromEntries(sums.map(([name, milli]) => [name, milli / 1000]));
    return { acquireId: this.#acquireId, entityId, resource, amounts };
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

function isWritten(result: PromiseSettledResult<boolean> | undefined): boolean {
  return result?.status === "fulfilled" && result.value;
}
