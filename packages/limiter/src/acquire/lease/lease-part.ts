/** The part of a lease that belongs to one resource, and its corrections. */

import { checkInteger, TOKENS_MAX } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import type { LimitStatus } from "../../domain/limit-status.ts";
import {
  type Amounts,
  type AmountsByName,
  checkAmounts,
  readCorrections,
} from "../acquire-request.ts";
import {
  add,
  addPending,
  byBucket,
  countedMilli,
  type Holding,
  limitAt,
  placeOf,
  tokensOf,
  usedMilli,
} from "./holding.ts";
import type { ResourceLease, SettledAmounts } from "./lease.ts";
import type { LeaseHost, LeaseTarget } from "./lease-host.ts";

type Correction = "adjust" | "release" | "settle";

/** Access of a part to its lease. One for all leases: functions per lease would cost more. */
export interface PartAccess<L> {
  /** Returns the holdings of all resources; a part selects its own. */
  holdings(lease: L): readonly Holding[];
  refuseEnded(lease: L): void;
  /** Consumes more from a part; false: passed uncounted. */
  consumeMore(lease: L, target: LeaseTarget, amounts: AmountsByName): Promise<boolean>;
}

export class LeasePart<L extends { readonly statuses: readonly LimitStatus[] }>
  implements ResourceLease
{
  readonly #host: LeaseHost;
  readonly #lease: L;
  readonly #access: PartAccess<L>;
  readonly #target: LeaseTarget;

  constructor(host: LeaseHost, lease: L, access: PartAccess<L>, target: LeaseTarget) {
    this.#host = host;
    this.#lease = lease;
    this.#access = access;
    this.#target = target;
  }

  get consumed(): Amounts {
    const { entityId } = this.#target;
    const holdings = this.#holdings();
    const isOne = holdings.length === 1 && holdings[0]?.entityId === entityId;
    const own = isOne ? holdings : holdings.filter((holding) => holding.entityId === entityId);
    const tokens = tokensOf(own, countedMilli);
    for (const name in tokens) if (tokens[name] === 0) return withoutZeros(tokens);
    return tokens;
  }

  get overdrawn(): readonly string[] {
    const { resource } = this.#target;
    const overdrawn = this.#lease.statuses.filter(
      (status) => status.resource === resource && status.overdrawn === true,
    );
    return [...new Set(overdrawn.map(({ limitName }) => limitName))];
  }

  get bypassed(): boolean {
    return this.#own().config.bypass === true;
  }

  async consume(amounts: Amounts): Promise<void> {
    this.#access.refuseEnded(this.#lease);
    const checked = checkAmounts("consume", amounts, 0);
    this.#checkNames("consume", checked);
    const isCounted = await this.#access.consumeMore(this.#lease, this.#target, checked);
    if (!isCounted) this.#believe(checked);
  }

  adjust(amounts: Amounts): void {
    this.#adjust("adjust", amounts, 1);
  }

  release(amounts: Amounts): void {
    this.#adjust("release", amounts, -1);
  }

  settle(amounts: SettledAmounts): void {
    this.#access.refuseEnded(this.#lease);
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

  #holdings(): readonly Holding[] {
    const { resource } = this.#target;
    const holdings = this.#access.holdings(this.#lease);
    // Nearly always there is one, and it is of this resource.
    if (holdings.length === 1 && holdings[0]?.resource === resource) return holdings;
    return holdings.filter((holding) => holding.resource === resource);
  }

  /** Returns the holding of the entity itself that was consumed from first. */
  #own(): Holding {
    return this.#holdings()[0] as Holding;
  }

  #checkNames(field: string, amounts: AmountsByName): void {
    this.#host.checkNames(this.#target, field, amounts, this.#own().config.limits);
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

  /** Counts amounts as used that passed without being counted in the store. */
  #believe(amounts: AmountsByName): void {
    for (const holdings of byBucket(this.#holdings())) {
      for (const [name, amount] of amounts) {
        const place = placeOf(holdings, name);
        if (place !== undefined) add(place.holding.unsureMilli, place.at, amount * 1000);
      }
    }
  }

  /** Checks all amounts before it applies any of them. */
  #adjust(operation: "adjust" | "release", amounts: Amounts, sign: 1 | -1): void {
    const deltas = new Map<string, number>();
    for (const [name, amount] of this.#read(operation, amounts, sign)) {
      const field = `${operation}.${name}`;
      const used = this.#used(name);
      if (used === undefined) continue;
      const delta = sign * amount;
      if (used + delta < 0) {
        const reason = `the lease has consumed ${used} of "${name}", so it cannot refund ${-delta}`;
        throw new ValidationError(field, amount, reason);
      }
      // A larger total would leave the safe integers, in milli-tokens.
      checkInteger(field, used + delta, 0, TOKENS_MAX);
      deltas.set(name, delta);
    }
    this.#apply(deltas);
  }

  #read(operation: Correction, amounts: SettledAmounts, sign: 1 | -1): AmountsByName {
    this.#access.refuseEnded(this.#lease);
    const { limits } = this.#own().config;
    // A provider may report no usage at all: then the amount of every limit is missing.
    const given = amounts ?? Object.fromEntries(limits.map(({ name }) => [name, amounts]));
    const read = readCorrections(operation, given, sign, (name, amount) => {
      this.#warn("amount_missing", operation, name, amount);
    });
    this.#checkNames(operation, read);
    return read;
  }

  /**
   * Returns the tokens of a limit that the caller has used: of the entity itself, or of the first
   * ancestor that has the limit where the entity has none. `undefined`: none of them has it.
   */
  #used(name: string): number | undefined {
    const holdings = this.#holdings();
    const holder = placeOf(holdings, name)?.holding.entityId;
    if (holder === undefined) return undefined;
    let used = 0;
    for (const holding of holdings) {
      const at = limitAt(holding, name);
      if (at >= 0 && holding.entityId === holder) used += usedMilli(holding, at);
    }
    return used / 1000;
  }

  /** Applies to the entity and to every ancestor that has the limit. */
  #apply(deltas: AmountsByName): void {
    for (const holdings of byBucket(this.#holdings())) {
      for (const [name, delta] of deltas) addPending(holdings, name, delta * 1000);
    }
  }
}

function withoutZeros(tokens: Amounts): Amounts {
  return Object.fromEntries(Object.entries(tokens).filter(([, amount]) => amount !== 0));
}
