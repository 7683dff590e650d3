/** A lease on buckets that were charged. */

import type { BucketConfig, BucketStore, Leg, LegOutcome } from "../buckets/bucket-store.ts";
import { floorDiv } from "../core/integers.ts";
import { checkInteger, TOKENS_MAX } from "../domain/check.ts";
import { LeaseExpiredError, RateLimiterUnavailable, ValidationError } from "../domain/errors.ts";
import type { Limit } from "../domain/limit.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import type { OnUnavailable } from "../domain/unavailability.ts";
import { type Amounts, checkAmountNames, checkAmounts } from "./acquire-request.ts";
import { statusesAfter } from "./decision.ts";
import type { Lease } from "./lease.ts";

/** Charges that were granted, leg by leg. */
export interface Granted {
  readonly legs: readonly Leg[];
  readonly outcomes: readonly LegOutcome[];
}

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
  /** Charges more of the same entity and resource, or throws. */
  takeMore(target: LeaseTarget, amounts: Amounts): Promise<Granted>;
  /** What to do when an adjustment cannot be written: `true` lets it pass with a warning. */
  adjustmentFailed(target: LeaseTarget, cause: RateLimiterUnavailable): boolean;
  /** Everything the lease held is being given back. */
  restored(target: LeaseTarget): void;
  /** So many whole tokens of a bucket were given back. */
  gaveBack(bucket: { entityId: string; resource: string }, tokens: Amounts): void;
}

/** What the lease holds of one shard of one bucket. */
interface Holding {
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
  readonly config: BucketConfig;
  /** Written to the store, aligned with `config.limits`. */
  readonly heldMilli: number[];
  /** Adjusted and not yet written. */
  readonly pendingMilli: number[];
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
    const consumed: Record<string, number> = {};
    const sums = new Map<string, number>();
    for (const holding of this.#holdings) {
      if (holding.entityId !== this.#own.entityId) continue;
      holding.config.limits.forEach(({ name }, at) => {
        const milli = (holding.heldMilli[at] ?? 0) + (holding.pendingMilli[at] ?? 0);
        sums.set(name, (sums.get(name) ?? 0) + milli);
      });
    }
    // Shards hold parts of tokens: only their sum is whole.
    for (const [name, milli] of sums) if (milli !== 0) consumed[name] = milli / 1000;
    return consumed;
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
    if (!this.#settled) return this.#hold(granted);
    // Settled meanwhile: what came too late goes back at once.
    this.#host.restored(this.#target);
    await this.#restore(holdingsOf(granted));
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
      for (const { heldMilli, pendingMilli } of this.#holdings) {
        heldMilli.fill(0);
        pendingMilli.fill(0);
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
      taken.heldMilli.forEach((amount, at) => {
        same.heldMilli[at] = (same.heldMilli[at] ?? 0) + amount;
      });
    }
  }

  /** Applies to the entity and to every parent that has the limit. All amounts are checked first. */
  #adjust(field: string, amounts: Readonly<Record<string, number>>, sign: 1 | -1): void {
    this.#refuseSettled();
    const checked = checkAmounts(field, amounts, -TOKENS_MAX);
    checkAmountNames(field, checked, this.#own.config.limits);
    const { consumed } = this;
    this.#adjusted = true;
    for (const [name, amount] of checked) {
      const held = Object.hasOwn(consumed, name) ? (consumed[name] ?? 0) : 0;
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
    const settle = () => {
      deltasMilli.forEach((delta, at) => {
        holding.heldMilli[at] = (holding.heldMilli[at] ?? 0) + delta;
        holding.pendingMilli[at] = (holding.pendingMilli[at] ?? 0) - delta;
      });
    };
    const adjustment = { ...holding, deltasMilli };
    try {
      // Giving back may be repeated, so it goes the way that never fails.
      if (deltasMilli.every((delta) => delta <= 0)) await this.#host.buckets.restore(adjustment);
      else await this.#host.buckets.adjust(adjustment);
      settle();
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      // A write whose outcome is unknown must not be repeated: it counts as done.
      if (!error.nothingWritten) settle();
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
      for (const [name, milli] of heldOf(some)) {
        const back = floorDiv(sign * milli, 1000);
        if (back > 0) tokens.set(name, back);
      }
      if (tokens.size > 0) this.#host.gaveBack({ entityId, resource }, tokens);
    }
  }
}

function holdingsOf({ legs, outcomes }: Granted): Holding[] {
  return legs.flatMap((leg, at) =>
    (outcomes[at]?.parts ?? []).map(({ shard, amountsMilli }) => ({
      entityId: leg.entityId,
      resource: leg.resource,
      shard,
      config: leg.config,
      heldMilli: [...amountsMilli],
      pendingMilli: amountsMilli.map(() => 0),
    })),
  );
}

/** What is held of each entity, in the order it was taken. */
function byEntity(holdings: readonly Holding[]): Iterable<readonly Holding[]> {
  const groups = new Map<string, Holding[]>();
  for (const holding of holdings) {
    const known = groups.get(holding.entityId);
    if (known === undefined) groups.set(holding.entityId, [holding]);
    else known.push(holding);
  }
  return groups.values();
}

/** Milli-tokens by limit name. */
function heldOf(holdings: readonly Holding[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { config, heldMilli } of holdings) {
    config.limits.forEach(({ name }, at) => {
      sums.set(name, (sums.get(name) ?? 0) + (heldMilli[at] ?? 0));
    });
  }
  return sums;
}

/**
 * More is taken where the first was. What is given back goes where it was taken: a shard holds only
 * its share, and would lose what is beyond.
 */
function addPending(holdings: readonly Holding[], name: string, deltaMilli: number): void {
  let left = deltaMilli;
  let first: { pendingMilli: number[]; at: number } | undefined;
  for (const { config, heldMilli, pendingMilli } of holdings) {
    const at = config.limits.findIndex((limit) => limit.name === name);
    if (at < 0) continue;
    first ??= { pendingMilli, at };
    const held = (heldMilli[at] ?? 0) + (pendingMilli[at] ?? 0);
    const delta = left < 0 ? Math.max(left, -Math.max(0, held)) : left;
    pendingMilli[at] = (pendingMilli[at] ?? 0) + delta;
    left -= delta;
  }
  if (first !== undefined && left !== 0) {
    first.pendingMilli[first.at] = (first.pendingMilli[first.at] ?? 0) + left;
  }
}

function copyOf(holding: Holding): Holding {
  return {
    ...holding,
    heldMilli: [...holding.heldMilli],
    pendingMilli: [...holding.pendingMilli],
  };
}

/** Amounts are aligned with limits, so the limits must be the same by name. */
function sameBucket(left: Holding, right: Holding): boolean {
  const names = right.config.limits;
  return (
    left.entityId === right.entityId &&
    left.shard === right.shard &&
    left.config.limits.length === names.length &&
    left.config.limits.every(({ name }, at) => name === names[at]?.name)
  );
}
