/** The parts of buckets that a lease holds, and where refunds go. */

import type { SeenBalances } from "../../buckets/bucket-consumer.ts";
import {
  type Adjustment,
  type BucketConfig,
  endsOf,
  type Leg,
  type LegOutcome,
  type PeriodEnds,
  type SeenPeriods,
  type ShardPart,
  sameEnds,
} from "../../buckets/leg.ts";
import type { BucketName } from "../../records/keys.ts";
import type { Share, Shares } from "../call-legs.ts";

/** Consumes that were granted, leg by leg. */
export interface Granted {
  readonly legs: readonly Leg[];
  readonly shares?: Shares;
  readonly outcomes: readonly LegOutcome[];
  /** When it took slots, by the timer; absent where it took none. */
  readonly heldFromMs?: number | undefined;
  /** Balances that are left, leg by leg, where they are known without the outcomes. */
  readonly balancesMilli?: readonly (readonly number[])[];
  /** The periods of limits, leg by leg, where they are known without the outcomes. */
  readonly periods?: readonly (SeenPeriods | undefined)[] | undefined;
}

/** Whether slots were taken for a leg. */
export function hasEntry({ parts }: LegOutcome): boolean {
  return parts.some(({ entry }) => entry !== undefined);
}

/** Returns the balances that are left, leg by leg. */
export function seenIn({ balancesMilli, periods, outcomes }: Granted): SeenBalances {
  if (balancesMilli !== undefined) return { balancesMilli, periods };
  return {
    balancesMilli: outcomes.map((outcome) => outcome.balancesMilli),
    periods: outcomes.map((outcome) => outcome.periods),
  };
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
  /** The part of the call that it was consumed for; 0: the request itself. */
  readonly part: number;
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
  /** The ends of the periods that were consumed in; absent where no limit has any. */
  readonly endsMs: PeriodEnds | undefined;
  /** The entry of its slots; absent where it holds none. */
  readonly entry: string | undefined;
}

/** Returns the holdings of a grant. `part`: the one that all of it is for, unless it has shares. */
export function holdingsOf(granted: Granted, part = 0): Holding[] {
  const { legs, shares, outcomes } = granted;
  const [first] = outcomes;
  const parts = first?.parts;
  // Nearly always there is one, and a list that grows by `push` reserves room for seventeen.
  if (legs.length === 1 && parts?.length === 1) {
    const [only] = parts as readonly [ShardPart];
    const endsMs = endsOf(first?.periods);
    return [holdingOf(legs[0] as Leg, part, only, only.amountsMilli.slice(), endsMs)];
  }
  return legs.flatMap((leg, at) => {
    const ofShards = outcomes[at]?.parts ?? [];
    const ends = endsOf(outcomes[at]?.periods);
    const ofParts = shares?.[at] ?? [{ part, amountsMilli: leg.amountsMilli }];
    return ofParts.length === 1
      ? ofShards.map((ofShard) => {
          const { amountsMilli, endsMs = ends } = ofShard;
          return holdingOf(leg, ofParts[0]?.part ?? part, ofShard, amountsMilli.slice(), endsMs);
        })
      : shared(leg, ofParts, ofShards, ends);
  });
}

/** Divides what was consumed from the shards of one bucket among the parts of the call. */
function shared(
  leg: Leg,
  shares: readonly Share[],
  shards: readonly ShardPart[],
  ends: PeriodEnds | undefined,
): Holding[] {
  const openMilli = shares.map(({ amountsMilli }) => [...amountsMilli]);
  return shards.flatMap((ofShard) => {
    const { amountsMilli, endsMs = ends } = ofShard;
    const restMilli = [...amountsMilli];
    return shares.map(({ part }, index) => {
      const open = openMilli[index] as number[];
      const heldMilli = restMilli.map((rest, at) => Math.min(rest, open[at] ?? 0));
      heldMilli.forEach((held, at) => {
        add(restMilli, at, -held);
        add(open, at, -held);
      });
      return holdingOf(leg, part, ofShard, heldMilli, endsMs);
    });
  });
}

function holdingOf(
  { entityId, resource, config }: Pick<Leg, "entityId" | "resource" | "config">,
  part: number,
  { shard, entry }: ShardPart,
  heldMilli: number[],
  endsMs: PeriodEnds | undefined,
): Holding {
  const pendingMilli = zeros(heldMilli.length);
  const unsureMilli: number[] = [];
  return {
    part,
    entityId,
    resource,
    shard,
    config,
    heldMilli,
    pendingMilli,
    unsureMilli,
    endsMs,
    entry,
  };
}

/** Whether a limit is of slots, which are held and not used up. */
export function areSlots({ config: { limits } }: Holding, at: number): boolean {
  return limits[at]?.kind === "concurrency";
}

/** Returns the slots that a holding still has, as an adjustment that gives them back. */
export function slotsMilli(holding: Holding): readonly number[] | undefined {
  if (holding.entry === undefined) return undefined;
  const deltasMilli = holding.heldMilli.map((_, at) =>
    areSlots(holding, at) ? -Math.max(0, countedMilli(holding, at)) : 0,
  );
  return deltasMilli.some((delta) => delta !== 0) ? deltasMilli : undefined;
}

/** Returns the milli-slots of a limit that a holding is about to give back. */
export function freedMilli(holding: Holding, at: number): number {
  if (holding.entry === undefined || !areSlots(holding, at)) return 0;
  return Math.max(0, -(holding.pendingMilli[at] ?? 0));
}

/** Returns the milli-slots of a limit that a holding has. */
export function slotMilli(holding: Holding, at: number): number {
  return holding.entry !== undefined && areSlots(holding, at) ? (holding.heldMilli[at] ?? 0) : 0;
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

/**
 * Returns the tokens of the entity itself, each name once: of its resource, and of its total where
 * the resource has no such limit.
 */
export function ownTokens(
  holdings: readonly Holding[],
  { entityId, resource }: BucketName,
  milliOf: (holding: Holding, at: number) => number,
): Record<string, number> {
  const [only] = holdings;
  const isOne = holdings.length === 1 && only?.entityId === entityId;
  if (isOne) return tokensOf(holdings, milliOf);
  const own = holdings.filter((holding) => holding.entityId === entityId);
  const ofResource = own.filter((holding) => holding.resource === resource);
  const tokens = tokensOf(ofResource, milliOf);
  if (ofResource.length === own.length) return tokens;
  const total = tokensOf(
    own.filter((holding) => holding.resource !== resource),
    milliOf,
  );
  for (const name of Object.keys(total)) tokens[name] ??= total[name] as number;
  return tokens;
}

/** Returns the milli-tokens that the store has written as used up; slots are not. */
export function usedUpMilli(holding: Holding, at: number): number {
  return areSlots(holding, at) ? 0 : (holding.heldMilli[at] ?? 0);
}

/** Returns the milli-tokens that the store has written for the holding. */
export function writtenMilli({ heldMilli }: Holding, at: number): number {
  return heldMilli[at] ?? 0;
}

export function add(amountsMilli: number[], at: number, deltaMilli: number): void {
  amountsMilli[at] = (amountsMilli[at] ?? 0) + deltaMilli;
}

export function copyOf(holding: Holding): Holding {
  const { heldMilli, pendingMilli, unsureMilli } = holding;
  return withAmounts(holding, [...heldMilli], [...pendingMilli], [...unsureMilli]);
}

/** Returns the holding with other amounts in place of the written ones. */
export function heldAs(holding: Holding, heldMilli: number[]): Holding {
  return withAmounts(holding, heldMilli, holding.pendingMilli, holding.unsureMilli);
}

function withAmounts(
  { part, entityId, resource, shard, config, endsMs, entry }: Holding,
  heldMilli: number[],
  pendingMilli: number[],
  unsureMilli: number[],
): Holding {
  return {
    part,
    entityId,
    resource,
    shard,
    config,
    heldMilli,
    pendingMilli,
    unsureMilli,
    endsMs,
    entry,
  };
}

/** Returns the change of the shard that the holding is of. */
export function adjustmentOf(
  { entityId, resource, shard, config, endsMs, entry }: Holding,
  deltasMilli: readonly number[],
): Adjustment {
  return { entityId, resource, shard, config, deltasMilli, endsMs, entry };
}

/**
 * Returns whether two holdings are of one part and shard, their amounts are of the same limits, and
 * both or none of them bypass these: what was consumed under bypass has left no balance.
 */
export function sameBucket(left: Holding, right: Holding): boolean {
  const names = right.config.limits;
  return (
    left.part === right.part &&
    left.entityId === right.entityId &&
    left.resource === right.resource &&
    left.shard === right.shard &&
    left.entry === right.entry &&
    (left.config.bypass === true) === (right.config.bypass === true) &&
    left.config.limits.length === names.length &&
    left.config.limits.every(({ name }, at) => name === names[at]?.name) &&
    sameEnds(left.endsMs, right.endsMs)
  );
}
