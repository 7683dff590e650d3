/**
 * Which consumes of a group share a write: all that fit, first come, first served. A consume that
 * does not fit waits for the answer of those that do, and is decided by it; a later one of the same
 * size never overtakes it.
 */

import { invariant } from "../../domain/check.ts";
import { gatesOf, takenOf } from "../gating.ts";
import type { BucketConfig } from "../leg.ts";
import { consumes, exceeds } from "./limit-plan.ts";

/** One consume of a group, in milli-tokens aligned with the limits of the group. */
export interface Part {
  readonly amountsMilli: readonly number[];
}

/**
 * So many consumes share a write at most: an answer that is lost makes all of them unknown, and
 * all of them stay consumed.
 */
export const GROUP_MAX = 256;

/** Those for which there is enough behind the ones before them. */
export function fitting<T extends Part>(
  parts: readonly T[],
  balancesMilli: readonly number[],
  config: BucketConfig,
): T[] {
  const left = [...balancesMilli];
  const fit: T[] = [];
  for (const part of parts) {
    if (exceeds(gatesOf(config, part.amountsMilli), left)) continue;
    fit.push(part);
    const takenMilli = takenOf(config, part.amountsMilli);
    for (let at = 0; at < left.length; at += 1) {
      left[at] = (left[at] as number) - (takenMilli[at] ?? 0);
    }
  }
  return fit;
}

/** What all of them consume together. */
export function sumOf(parts: readonly Part[]): readonly number[] {
  const [first] = parts;
  invariant(first !== undefined, "a group has a member");
  if (parts.length === 1) return first.amountsMilli;
  const sums = first.amountsMilli.map(() => 0);
  for (const { amountsMilli } of parts) {
    for (let at = 0; at < sums.length; at += 1) {
      sums[at] = (sums[at] as number) + (amountsMilli[at] ?? 0);
    }
  }
  return sums;
}

/** How many of them count as an acquire: those that consume anything. */
export function acquiresOf(parts: readonly Part[]): number {
  let acquires = 0;
  for (const { amountsMilli } of parts) if (consumes(amountsMilli)) acquires += 1;
  return acquires;
}

/** What each of them leaves behind, given what the last one leaves: they were served in order. */
export function balancesAfterEach(
  parts: readonly Part[],
  balancesMilli: readonly number[],
  config: BucketConfig,
): readonly (readonly number[])[] {
  if (parts.length === 1) return [balancesMilli];
  const after = new Array<readonly number[]>(parts.length);
  let left = balancesMilli;
  for (let at = parts.length - 1; at >= 0; at -= 1) {
    after[at] = left;
    const takenMilli = takenOf(config, (parts[at] as Part).amountsMilli);
    left = left.map((balance, limit) => balance + (takenMilli[limit] ?? 0));
  }
  return after;
}
