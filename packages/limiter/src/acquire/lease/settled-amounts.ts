/** The quick way to settle a lease: plain amounts of the one bucket that most leases hold. */

import type { OnlyBucket } from "../../buckets/fast-path.ts";
import { isLiteral, TOKENS_MAX } from "../../domain/check.ts";
import type { Limit } from "../../domain/limit.ts";
import { add, type Holding } from "./holding.ts";
import type { SettledAmounts } from "./lease.ts";

/**
 * Returns what is still to be written of each limit, in milli-tokens; `before` is what an earlier
 * call has returned. `undefined` where an amount is not plain or its limit is not there: warnings
 * and errors are made elsewhere.
 */
export function settledDeltas(
  bucket: OnlyBucket,
  amounts: SettledAmounts,
  before: readonly number[] | undefined,
): number[] | undefined {
  if (!isLiteral(amounts)) return undefined;
  const { limits } = bucket.config;
  const deltas = new Array<number>(limits.length);
  let unknown = 0;
  for (const _ in amounts) unknown += 1;
  for (let at = 0; at < limits.length; at += 1) {
    const amount = amounts[(limits[at] as Limit).name];
    if (amount === undefined) {
      deltas[at] = before?.[at] ?? 0;
      continue;
    }
    if (!Number.isInteger(amount) || (amount as number) < 0 || (amount as number) > TOKENS_MAX) {
      return undefined;
    }
    deltas[at] = (amount as number) * 1000 - bucket.consumedMilli(at);
    unknown -= 1;
  }
  return unknown === 0 ? deltas : undefined;
}

/** Adds them to what the lease holds: as written, or as pending. */
export function addSettled(holding: Holding, deltas: readonly number[], areWritten: boolean): void {
  const to = areWritten ? holding.heldMilli : holding.pendingMilli;
  for (let at = 0; at < deltas.length; at += 1) add(to, at, deltas[at] as number);
}
