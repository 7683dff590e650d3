/** The parts of buckets that a lease holds, and where refunds go. */

import type { Adjustment, BucketConfig, Leg, LegOutcome, ShardPart } from "../../buckets/leg.ts";

/** Consumes that were granted, leg by leg. */
export interface Granted {
  readonly legs: readonly Leg[];
  readonly outcomes: readonly LegOutcome[];
  /** Balances that are left, leg by leg, where they are known without the outcomes. */
  readonly balancesMilli?: readonly (readonly number[])[];
}

/** Returns the balances that are left, leg by leg. */
export function balancesIn(granted: Granted): readonly (readonly number[])[] {
  return granted.balancesMilli ?? granted.outcomes.map((outcome) => outcome.balancesMilli);
}

/** Returns when the store showed the oldest of them; `undefined`: just now. */
export function oldestShownMs({ outcomes }: Granted): number | undefined {
  let oldestMs: number | undefined;
  for (const { shownAtMs } of outcomes) {
    if (shownAtMs !== undefined) oldestMs = Math.min(oldestMs ?? shownAtMs, shownAtMs);
  }
  return oldestMs;
}

/** The part that a lease holds of one shard of one bucket. */
export interface Holding {
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
  readonly config: BucketConfig;
  /** Written to the store, aligned with `config.limits`. */
  readonly heldMilli: number[];
  /** Adjusted and not yet written. */
  readonly pendingMilli: number[];
  /**
   * Consumed as far as the caller knows, but perhaps never written: never refunded. An entry that
   * is missing is zero, as most are.
   */
  readonly unsureMilli: number[];
}

export function holdingsOf(granted: Granted): Holding[] {
  const { legs, outcomes } = granted;
  const parts = outcomes[0]?.parts;
  // Nearly always there is one, and a list that grows by `push` reserves room for seventeen.
  if (legs.length === 1 && parts?.length === 1) {
    return [partOf(legs[0] as Leg, parts[0] as ShardPart)];
  }
  return legs.flatMap((each, at) => (outcomes[at]?.parts ?? []).map((part) => partOf(each, part)));
}

function partOf(leg: Leg, { shard, amountsMilli }: ShardPart): Holding {
  return holdingOf(leg, shard, amountsMilli.slice());
}

function holdingOf(
  { entityId, resource, config }: Pick<Leg, "entityId" | "resource" | "config">,
  shard: number,
  heldMilli: number[],
): Holding {
  const pendingMilli = zeros(heldMilli.length);
  return { entityId, resource, shard, config, heldMilli, pendingMilli, unsureMilli: [] };
}

/** Returns a list of zeros. Most buckets have one limit or two. */
function zeros(count: number): number[] {
  if (count === 1) return [0];
  return count === 2 ? [0, 0] : new Array<number>(count).fill(0);
}

/** Groups holdings by bucket, in the order they were consumed. */
export function byBucket(holdings: readonly Holding[]): Iterable<readonly Holding[]> {
  if (holdings.length === 1) return [holdings];
  const groups = new Map<string, Holding[]>();
  for (const holding of holdings) {
    // No resource has a line break, so names cannot be mistaken for each other.
    const name = `${holding.resource}\n${holding.entityId}`;
    const known = groups.get(name);
    if (known === undefined) groups.set(name, [holding]);
    else known.push(holding);
  }
  return groups.values();
}

/**
 * Adds to what is pending. More is consumed from the first shard. Refunds go to the shards that the
 * tokens came from: a shard can hold only its share. A parent that joined later holds less than the
 * entity itself, and gets no more than that. Unsure amounts are used up first, since they cannot be
 * refunded.
 */
export function addPending(holdings: readonly Holding[], name: string, deltaMilli: number): void {
  if (deltaMilli >= 0) {
    const place = placeOf(holdings, name);
    if (place !== undefined) add(place.holding.pendingMilli, place.at, deltaMilli);
    return;
  }
  let leftMilli = -deltaMilli;
  for (const holding of holdings) {
    const at = limitAt(holding, name);
    if (at === -1) continue;
    const used = Math.min(leftMilli, holding.unsureMilli[at] ?? 0);
    add(holding.unsureMilli, at, -used);
    leftMilli -= used;
  }
  for (const holding of holdings) {
    const at = limitAt(holding, name);
    if (at === -1) continue;
    const back = Math.min(leftMilli, Math.max(0, countedMilli(holding, at)));
    add(holding.pendingMilli, at, -back);
    leftMilli -= back;
  }
}

/** Returns the index of a limit; -1 where the holding has none of that name. */
export function limitAt({ config: { limits } }: Holding, name: string): number {
  for (let at = 0; at < limits.length; at += 1) if (limits[at]?.name === name) return at;
  return -1;
}

/** Finds the first of the holdings that has a limit, and its index. */
export function placeOf(
  holdings: readonly Holding[],
  name: string,
): { readonly holding: Holding; readonly at: number } | undefined {
  for (const holding of holdings) {
    const at = limitAt(holding, name);
    if (at >= 0) return { holding, at };
  }
  return undefined;
}

/** Returns the milli-tokens of a limit that are counted, or will be. */
export function countedMilli({ heldMilli, pendingMilli }: Holding, at: number): number {
  return (heldMilli[at] ?? 0) + (pendingMilli[at] ?? 0);
}

/** Returns the milli-tokens of a limit that the caller has used. */
export function usedMilli(holding: Holding, at: number): number {
  return countedMilli(holding, at) + (holding.unsureMilli[at] ?? 0);
}

/** Sums amounts by limit name. */
export function sumsOf(
  holdings: readonly Holding[],
  milliOf: (holding: Holding, at: number) => number,
): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const holding of holdings) {
    holding.config.limits.forEach(({ name }, at) => {
      sums.set(name, (sums.get(name) ?? 0) + milliOf(holding, at));
    });
  }
  return sums;
}

/** Returns tokens by limit name. Shards hold parts of tokens: only their sum is whole. */
export function tokensOf(
  holdings: readonly Holding[],
  milliOf: (holding: Holding, at: number) => number,
): Record<string, number> {
  const tokens: Record<string, number> = {};
  const [only] = holdings;
  if (only === undefined || holdings.length > 1) {
    for (const [name, milli] of sumsOf(holdings, milliOf)) tokens[name] = milli / 1000;
    return tokens;
  }
  // Nearly always there is one, and no sums are needed.
  const { limits } = only.config;
  for (let at = 0; at < limits.length; at += 1) {
    tokens[limits[at]?.name ?? ""] = milliOf(only, at) / 1000;
  }
  return tokens;
}

/** Returns the milli-tokens that the store has written for the holding. */
export function writtenMilli({ heldMilli }: Holding, at: number): number {
  return heldMilli[at] ?? 0;
}

export function add(amountsMilli: number[], at: number, deltaMilli: number): void {
  amountsMilli[at] = (amountsMilli[at] ?? 0) + deltaMilli;
}

export function copyOf(holding: Holding): Holding {
  const { entityId, resource, shard, config } = holding;
  const heldMilli = [...holding.heldMilli];
  const pendingMilli = [...holding.pendingMilli];
  const unsureMilli = [...holding.unsureMilli];
  return { entityId, resource, shard, config, heldMilli, pendingMilli, unsureMilli };
}

/** Returns the holding with other amounts in place of the written ones. */
export function heldAs(holding: Holding, heldMilli: number[]): Holding {
  const { entityId, resource, shard, config, pendingMilli, unsureMilli } = holding;
  return { entityId, resource, shard, config, heldMilli, pendingMilli, unsureMilli };
}

/** Returns the change of the shard that the holding is of. */
export function adjustmentOf(
  { entityId, resource, shard, config }: Holding,
  deltasMilli: readonly number[],
): Adjustment {
  return { entityId, resource, shard, config, deltasMilli };
}

/** Whether two holdings are of one shard, and their amounts are of the same limits. */
export function sameBucket(left: Holding, right: Holding): boolean {
  const names = right.config.limits;
  return (
    left.entityId === right.entityId &&
    left.resource === right.resource &&
    left.shard === right.shard &&
    left.config.limits.length === names.length &&
    left.config.limits.every(({ name }, at) => name === names[at]?.name)
  );
}
