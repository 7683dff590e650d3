/** One part of a lease, of an entity and resource, and its corrections. */

import { checkInteger, TOKENS_MAX } from "../../domain/check.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import type { Limit } from "../../domain/limit.ts";
import type { LimitStatus } from "../../domain/limit-status.ts";
import { TOTAL } from "../../domain/names.ts";
import {
  type Amounts,
  type AmountsByName,
  checkAmounts,
  readCorrections,
} from "../acquire-request.ts";
import {
  areSlots,
  countedMilli,
  type Holding,
  limitAt,
  ownTokens,
  placeOf,
  usedMilli,
} from "./holding.ts";
import type { ResourceLease, SettledAmounts } from "./lease.ts";
import type { LeaseHoldings } from "./lease-holdings.ts";
import type { LeaseHost, LeaseTarget } from "./lease-host.ts";

type Correction = "adjust" | "release" | "settle";

/** Access of a part to its lease. One for all leases: functions per lease would cost more. */
export interface PartAccess<L> {
  /** Returns what the lease holds; a part selects its own. */
  holdings(lease: L): LeaseHoldings;
  refuseEnded(lease: L): void;
  /** Consumes more for a part; false: passed uncounted. */
  consumeMore(
    lease: L,
    target: LeaseTarget,
    part: number,
    amounts: AmountsByName,
  ): Promise<boolean>;
  /** Writes what was adjusted so far, in the background. */
  flush(lease: L): void;
}

export class LeasePart<L extends { readonly statuses: readonly LimitStatus[] }>
  implements ResourceLease
{
  readonly #host: LeaseHost;
  readonly #lease: L;
  readonly #access: PartAccess<L>;
  readonly #target: LeaseTarget;
  readonly #part: number;

  constructor(host: LeaseHost, lease: L, access: PartAccess<L>, target: LeaseTarget, part: number) {
    this.#host = host;
    this.#lease = lease;
    this.#access = access;
    this.#target = target;
    this.#part = part;
  }

  get consumed(): Amounts {
    const tokens = ownTokens(this.#holdings(), this.#target, countedMilli);
    for (const name in tokens) if (tokens[name] === 0) return withoutZeros(tokens);
    return tokens;
  }

  get overdrawn(): readonly string[] {
    const overdrawn = this.#lease.statuses.filter((status) => {
      const isOf = (holding: Holding) =>
        holding.entityId === status.entityId && holding.resource === status.resource;
      return status.overdrawn === true && this.#holdings().some(isOf);
    });
    return [...new Set(overdrawn.map(({ limitName }) => limitName))];
  }

  get bypassed(): boolean {
    const { entityId, resource } = this.#target;
    const own = this.#holdings().filter((holding) => holding.entityId === entityId);
    // Without limits of the resource, the total alone decides.
    const first = own.find((holding) => holding.resource === resource) ?? own[0];
    return first?.config.bypass === true;
  }

  async consume(amounts: Amounts): Promise<void> {
    this.#access.refuseEnded(this.#lease);
    const checked = checkAmounts("consume", amounts);
    this.#checkNames("consume", checked);
    const target = this.#target;
    const isCounted = await this.#access.consumeMore(this.#lease, target, this.#part, checked);
    if (!isCounted) this.#access.holdings(this.#lease).believe(this.#part, checked);
  }

  adjust(amounts: Amounts): void {
    this.#adjust("adjust", amounts, 1);
  }

  release(amounts: Amounts): void {
    this.#adjust("release", amounts, -1);
    // The next call waits for the slot, and not for the tokens of this one.
    const names = Object.keys(amounts ?? {});
    if (names.some((name) => this.#areSlots(name))) this.#access.flush(this.#lease);
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
    this.#access.holdings(this.#lease).correct(this.#part, deltas);
  }

  #holdings(): readonly Holding[] {
    return this.#access.holdings(this.#lease).of(this.#part);
  }

  /** Returns the limits that corrections may name: of the entity itself, and of totals. */
  #limits(): readonly Limit[] {
    const { entityId } = this.#target;
    const holdings = this.#holdings();
    const [first] = holdings;
    if (holdings.length === 1 && first !== undefined) return first.config.limits;
    const known = new Map<string, Limit>();
    for (const holding of holdings) {
      if (holding.entityId !== entityId && holding.resource !== TOTAL) continue;
      for (const limit of holding.config.limits) known.set(limit.name, limit);
    }
    return [...known.values()];
  }

  #areSlots(name: string): boolean {
    for (const holding of this.#holdings()) {
      if (areSlots(holding, limitAt(holding, name))) return true;
    }
    return false;
  }

  /** Refuses to correct slots: a lease holds them or has given them back. */
  #refuseSlots(operation: Correction, name: string, amount: number): void {
    const isRelease = operation === "release";
    if ((isRelease && amount >= 0) || !this.#areSlots(name)) return;
    const reason = isRelease
      ? `"${name}" are slots, of which a release takes none: use consume, got ${amount}`
      : `"${name}" are slots, which are held until the lease ends: release them instead`;
    throw new ValidationError(`${operation}.${name}`, isRelease ? amount : name, reason);
  }

  #checkNames(field: string, amounts: AmountsByName): void {
    this.#host.checkNames(this.#target, field, amounts, this.#limits());
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
    this.#access.holdings(this.#lease).correct(this.#part, deltas);
  }

  #read(operation: Correction, amounts: SettledAmounts, sign: 1 | -1): AmountsByName {
    this.#access.refuseEnded(this.#lease);
    // A provider may report no usage at all: then the amount of every limit is missing.
    const used = () => this.#limits().filter(({ kind }) => kind !== "concurrency");
    const given = amounts ?? Object.fromEntries(used().map(({ name }) => [name, amounts]));
    const read = readCorrections(operation, given, sign, (name, amount) => {
      this.#warn("amount_missing", operation, name, amount);
    });
    this.#checkNames(operation, read);
    for (const [name, amount] of read) this.#refuseSlots(operation, name, amount);
    return read;
  }

  /**
   * Returns the tokens of a limit that the caller has used: of the entity itself, or of the first
   * ancestor that has the limit where the entity has none. `undefined`: none of them has it.
   */
  #used(name: string): number | undefined {
    const holdings = this.#holdings();
    const holder = placeOf(holdings, name)?.holding;
    if (holder === undefined) return undefined;
    let used = 0;
    for (const holding of holdings) {
      const at = limitAt(holding, name);
      const isOf = holding.entityId === holder.entityId && holding.resource === holder.resource;
      if (at >= 0 && isOf) used += usedMilli(holding, at);
    }
    return used / 1000;
  }
}

function withoutZeros(tokens: Amounts): Amounts {
  return Object.fromEntries(Object.entries(tokens).filter(([, amount]) => amount !== 0));
}
