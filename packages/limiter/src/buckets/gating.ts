/**
 * The amounts of a call, in milli-tokens aligned with its limits: which of them can be refused,
 * which leave a balance, and whether there is enough.
 *
 * A limit is a gate unless it is soft: a soft one is consumed into debt. Under bypass no limit is a
 * gate, and balances stay as they are: only what was consumed in total is counted.
 */

import { invariant } from "../domain/check.ts";
import type { BucketConfig } from "./leg.ts";

/** Milli-tokens by the name of the limit. */
export type AmountsByName = ReadonlyMap<string, number>;

type Gated = Pick<BucketConfig, "limits" | "bypass">;

/** Returns the amounts that need a balance; the given ones, unless some limit is no gate. */
export function gatesOf(config: Gated, amountsMilli: readonly number[]): readonly number[] {
  if (config.bypass === true) return amountsMilli.map(() => 0);
  const { limits } = config;
  for (let at = 0; at < limits.length; at += 1) {
    if (limits[at]?.soft === true) {
      return amountsMilli.map((amount, place) => (limits[place]?.soft === true ? 0 : amount));
    }
  }
  return amountsMilli;
}

/** Returns the amounts that balances lose: nothing under bypass. */
export function takenOf(config: Gated, amountsMilli: readonly number[]): readonly number[] {
  return config.bypass === true ? amountsMilli.map(() => 0) : amountsMilli;
}

/** Returns the limits that an acquire may bring into debt; `undefined` when there is none. */
export function softNames({
  limits,
}: Pick<BucketConfig, "limits">): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  for (const { name, soft } of limits) {
    if (!soft) continue;
    names ??= new Set();
    names.add(name);
  }
  return names;
}

/** Returns the soft limits that were consumed from and are below zero now, each once. */
export function overdrawnOf(
  config: Gated,
  amountsMilli: readonly number[],
  balancesMilli: readonly number[],
): ReadonlyMap<string, number> | undefined {
  if (config.bypass === true || softNames(config) === undefined) return undefined;
  const overdrawn = config.limits.filter(
    ({ soft }, at) => soft && (amountsMilli[at] ?? 0) > 0 && (balancesMilli[at] as number) < 0,
  );
  return overdrawn.length === 0 ? undefined : new Map(overdrawn.map(({ name }) => [name, 1]));
}

/** Returns the amounts by the names of their limits. */
export function amountsByName(
  { limits }: Pick<BucketConfig, "limits">,
  amountsMilli: readonly number[],
): AmountsByName {
  const amounts = new Map<string, number>();
  for (let at = 0; at < limits.length; at += 1) {
    amounts.set((limits[at] as (typeof limits)[number]).name, amountsMilli[at] ?? 0);
  }
  return amounts;
}

/** Whether an amount above zero is more than there is. */
export function exceeds(
  amountsMilli: readonly number[],
  balancesMilli: readonly number[],
): boolean {
  return amountsMilli.some((amount, at) => amount > 0 && amount > (balancesMilli[at] as number));
}

/** Whether there is enough of what can be refused. */
export function fits(
  config: Gated,
  amountsMilli: readonly number[],
  balancesMilli: readonly number[],
): boolean {
  return !exceeds(gatesOf(config, amountsMilli), balancesMilli);
}

/** Whether anything is consumed. */
export function consumes(amountsMilli: readonly number[]): boolean {
  return amountsMilli.some((amount) => amount > 0);
}

/** Returns what all parts consume together; there is one at least. */
export function sumOf(
  parts: readonly { readonly amountsMilli: readonly number[] }[],
): readonly number[] {
  const [first] = parts;
  invariant(first !== undefined, "a sum has a part");
  if (parts.length === 1) return first.amountsMilli;
  const sums = first.amountsMilli.map(() => 0);
  for (const { amountsMilli } of parts) {
    for (let at = 0; at < sums.length; at += 1) {
      sums[at] = (sums[at] as number) + (amountsMilli[at] ?? 0);
    }
  }
  return sums;
}
