/** Amounts of tokens by limit name: as callers write them, and as they are once checked. */

import { checkInteger, checkOptions, show, TOKENS_MAX } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import type { Limit } from "../domain/limit.ts";

/**
 * Whole tokens by limit name: of any names, or of those that are given.
 *
 * @example
 * ```ts
 * import type { Amounts } from 'zae-limiter';
 * const any: Amounts = { rpm: 1, tpm: 500 };
 * const checked: Amounts<'rpm' | 'tpm'> = { rpm: 1 }; // { rmp: 1 } would not compile
 * ```
 */
export type Amounts<Names extends string = string> = Readonly<AmountRecord<Names>>;

/** The same as a new object, which belongs to the caller. */
export type AmountRecord<Names extends string = string> = string extends Names
  ? Record<string, number>
  : Partial<Record<Names, number>>;

/** Checked amounts in whole tokens. */
export type AmountsByName = ReadonlyMap<string, number>;

const FORM = "an object like { rpm: 1, tpm: 500 }";

/** Whole tokens by name, each at least `min`. Names are checked against the limits later. */
export function checkAmounts(field: string, amounts: Amounts, min: number): AmountsByName {
  checkOptions(field, amounts, FORM);
  const checked = new Map<string, number>();
  for (const name of Object.keys(amounts)) {
    const amount = amounts[name] as number;
    // Most amounts are valid, and need no name for a message.
    const inOrder = Number.isInteger(amount) && amount >= min && amount <= TOKENS_MAX;
    if (!inOrder) checkInteger(`${field}.${name}`, amount, min, TOKENS_MAX);
    checked.set(name, amount);
  }
  return checked;
}

/**
 * Reads the amounts of a correction. What a call cost often comes from elsewhere, and an error here
 * would make `run` refund the whole call. So fractions round to the larger consumption, and an
 * amount that is missing or not finite is left out and reported. `sign` is -1 where a larger amount
 * is a smaller consumption.
 */
export function readCorrections(
  field: string,
  amounts: Readonly<Record<string, number | null | undefined>>,
  sign: 1 | -1,
  onMissing: (limitName: string, amount: unknown) => void,
): AmountsByName {
  checkOptions(field, amounts, FORM);
  const checked = new Map<string, number>();
  for (const name of Object.keys(amounts)) {
    const amount = amounts[name];
    if (isMissing(amount)) {
      onMissing(name, amount);
      continue;
    }
    if (typeof amount !== "number") {
      throw new ValidationError(
        `${field}.${name}`,
        amount,
        `expected a number, got ${show(amount)}`,
      );
    }
    const rounded = sign * Math.ceil(sign * amount);
    // Most amounts are valid, and need no name for a message.
    const inOrder = rounded >= -TOKENS_MAX && rounded <= TOKENS_MAX;
    if (!inOrder) checkInteger(`${field}.${name}`, rounded, -TOKENS_MAX, TOKENS_MAX);
    checked.set(name, rounded);
  }
  return checked;
}

/** Refuses names that none of the limits has. */
export function checkAmountNames(
  field: string,
  amounts: AmountsByName,
  limits: readonly Limit[],
): void {
  for (const name of amounts.keys()) {
    if (hasLimit(limits, name)) continue;
    const names = limits.map((limit) => limit.name).join(", ");
    throw new ValidationError(
      field,
      name,
      `there is no limit ${show(name)} here; the limits are ${names || "none"}`,
    );
  }
}

function hasLimit(limits: readonly Limit[], name: string): boolean {
  for (const limit of limits) if (limit.name === name) return true;
  return false;
}

function isMissing(amount: unknown): boolean {
  if (amount === undefined || amount === null) return true;
  return typeof amount === "number" && !Number.isFinite(amount);
}
