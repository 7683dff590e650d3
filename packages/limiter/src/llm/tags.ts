/**
 * Tags: a call can name a cost centre, which is the entity `tag:NAME`. It counts with the call, and
 * never refuses it.
 */

import { show } from "../domain/check.ts";
import { counterOf } from "../domain/counter.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import type { Limit } from "../domain/limit.ts";
import { TAG_PREFIX } from "../domain/names.ts";
import type { Price } from "../domain/price.ts";

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

/** Checks the name of a cost centre. */
export function checkTag(field: string, name: unknown): string {
  if (typeof name === "string" && NAME.test(name)) return name;
  const reason = `expected 1 to 64 letters, digits and _ . -, got ${show(name)}`;
  throw new ValidationError(field, name, reason);
}

/** Returns the entity of the cost centre that a call names; `undefined` where it names none. */
export function tagEntityOf<C>(
  tag: string | ((call: C) => string | undefined) | undefined,
  call: C,
): string | undefined {
  const name = typeof tag === "function" ? tag(call) : tag;
  return name === undefined ? undefined : `${TAG_PREFIX}${checkTag("tag", name)}`;
}

/** The names of the limits that count requests, tokens and money. */
type Counted = Readonly<Record<"requests" | "tokens" | "money", readonly string[]>>;

/**
 * Returns what a cost centre counts of a call: requests, tokens, and money in the currency of its
 * price, each by one name.
 */
export function countersOf(
  { requests, tokens, money }: Counted,
  price: Price | undefined,
): readonly Limit[] {
  const paid = price === undefined ? undefined : money.find((name) => price.counts(name));
  return [requests[0], tokens[0], paid].flatMap((name) =>
    name === undefined ? [] : counterOf(name),
  );
}
