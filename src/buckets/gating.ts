/**
 * Which amounts of a call can be refused, and which leave a balance.
 *
 * A limit is a gate unless it is soft: a soft one is consumed into debt. Under bypass no limit is a
 * gate, and balances stay as they are: only what was consumed in total is counted.
 */

import type { BucketConfig } from "./leg.ts";

type Gated = Pick<BucketConfig, "limits" | "bypass">;

/** The amounts that need a balance; the given ones, unless some limit is no gate. */
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

/** What the balances lose: nothing under bypass. */
export function takenOf(config: Gated, amountsMilli: readonly number[]): readonly number[] {
  return config.bypass === true ? amountsMilli.map(() => 0) : amountsMilli;
}

/** The limits that an acquire may bring into debt; `undefined` when there is none. */
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
