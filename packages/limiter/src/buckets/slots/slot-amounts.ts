/** The slots among the amounts of a call: those of limits of the kind `concurrency`. */

import { hasSlots } from "../../core/bucket.ts";
import { type BucketConfig, exceeds, gatesOf, type Leg, type ShardPart } from "../leg.ts";

type Slotted = Pick<BucketConfig, "limits" | "bypass">;

/** Whether any amount of slots is not zero; under bypass nothing is held. */
export function movesSlots(config: Slotted, amountsMilli: readonly number[]): boolean {
  if (config.bypass === true) return false;
  const { limits } = config;
  for (let at = 0; at < limits.length; at += 1) {
    const limit = limits[at];
    if (limit !== undefined && hasSlots(limit.rate) && (amountsMilli[at] ?? 0) !== 0) return true;
  }
  return false;
}

/** Whether a leg takes slots. */
export function takesSlots({
  config,
  amountsMilli,
}: Pick<Leg, "config" | "amountsMilli">): boolean {
  return movesSlots(config, amountsMilli);
}

/** Whether a leg is refused for slots by some balances. */
export function lacksSlots(
  { config, amountsMilli }: Pick<Leg, "config" | "amountsMilli">,
  balancesMilli: readonly number[],
): boolean {
  return exceeds(slotsOnly(config, gatesOf(config, amountsMilli)), balancesMilli);
}

/** Whether a leg that was granted has left soft slots below zero. */
export function overdrawsSlots(
  { config, amountsMilli }: Pick<Leg, "config" | "amountsMilli">,
  leftMilli: readonly number[],
): boolean {
  if (config.bypass === true) return false;
  return slotsOnly(config, amountsMilli).some((milli, at) => milli > 0 && (leftMilli[at] ?? 0) < 0);
}

/** Returns the part that was consumed from a shard; it has an entry only where it takes slots. */
export function partOf(
  config: Slotted,
  shard: number,
  amountsMilli: readonly number[],
  entry: string | undefined,
): ShardPart {
  if (entry === undefined || !movesSlots(config, amountsMilli)) return { shard, amountsMilli };
  return { shard, amountsMilli, entry };
}

/** Returns the amounts of slots alone, in milli-slots; all others are zero. */
export function slotsOnly(
  { limits }: Pick<BucketConfig, "limits">,
  amountsMilli: readonly number[],
): readonly number[] {
  return limits.map(({ rate }, at) => (hasSlots(rate) ? (amountsMilli[at] ?? 0) : 0));
}

/** Returns how many milli-slots amounts move. */
export function slotsMilliIn(config: Pick<BucketConfig, "limits">, amounts: readonly number[]) {
  return slotsOnly(config, amounts).reduce((sum, milli) => sum + milli, 0);
}

/** Returns the amounts without those of slots. */
export function withoutSlots(
  { limits }: Pick<BucketConfig, "limits">,
  amountsMilli: readonly number[],
): readonly number[] {
  return limits.map(({ rate }, at) => (hasSlots(rate) ? 0 : (amountsMilli[at] ?? 0)));
}

/** Returns the amounts that usage counts: bypass counts no slots, since none are held. */
export function countedOf(config: Slotted, amountsMilli: readonly number[]): readonly number[] {
  return config.bypass === true ? withoutSlots(config, amountsMilli) : amountsMilli;
}
