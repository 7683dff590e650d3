/**
 * Which shard to consume from: of a few at random, the one that is most likely to have enough. One
 * that is full goes first, because it loses what would come in.
 *
 * One at random would empty some shards while others are full; the fullest of all by cached state
 * would send all clients to the same one. A few choices come close to even, and need no
 * coordination.
 */

import type { Random } from "../../../base/random.ts";
import type { BucketName } from "../../../records/keys.ts";
import { type BucketConfig, gatesOf } from "../../leg.ts";
import { shareAt } from "../plan/seen-bucket.ts";
import { isSaturated } from "../plan/writes-meter.ts";
import type { BucketStates } from "../state/bucket-states.ts";
import { balancesOf } from "../state/shard-balances.ts";

/** How many shards are tried one by one before all are read: at least this many, or this share. */
const TRIES_MIN = 3;
const TRIED_PART = 1 / 8;

/** How well a shard would do. */
type Score = number;
const NONE: Score = -1;
const THROTTLED: Score = 0;
const UNSURE = 0.001;
/** The number of shards that are compared. */
const CHOICES = 8;

export interface ShardWanted {
  readonly name: BucketName;
  readonly config: BucketConfig;
  readonly amountsMilli: readonly number[];
  readonly count: number;
  readonly tried: ReadonlySet<number>;
}

/** Picks a shard that was not tried and could hold the amounts; `undefined`: read them all. */
export function pickShard(
  wanted: ShardWanted,
  states: BucketStates,
  nowMs: number,
  random: Random,
): number | undefined {
  const { count, tried } = wanted;
  if (tried.size >= Math.max(TRIES_MIN, count * TRIED_PART)) return undefined;
  const open: number[] = [];
  for (let shard = 0; shard < count; shard += 1) {
    if (tried.has(shard) || !holds(wanted, shard, nowMs)) continue;
    if (!states.isMerged(wanted.name, shard)) open.push(shard);
  }
  const best = bestOf(some(open, random), (shard) => scoreOf(wanted, shard, states, nowMs));
  if (best !== undefined) return best;
  // These are known to have too little. Another one may have enough.
  return open.find((shard) => scoreOf(wanted, shard, states, nowMs) > NONE);
}

/**
 * Returns the first of those with the highest score; `undefined` when all are known to have too
 * little.
 */
function bestOf(shards: readonly number[], score: (shard: number) => Score): number | undefined {
  let best: number | undefined;
  let most: Score = NONE;
  for (const shard of shards) {
    const found = score(shard);
    if (found > most) [best, most] = [shard, found];
  }
  return best;
}

/** Returns a few at random, in a random order. */
function some(open: readonly number[], random: Random): readonly number[] {
  if (open.length <= 1) return open;
  const first = Math.floor(random() * open.length);
  const chosen = [open[first] as number];
  const left = open.filter((_, at) => at !== first);
  while (chosen.length < CHOICES && left.length > 0) {
    const [next] = left.splice(Math.floor(random() * left.length), 1);
    chosen.push(next as number);
  }
  return chosen;
}

/** Returns the part of its share that the scarcest limit would have left; unknown: full. */
function scoreOf(
  { name, config, amountsMilli }: ShardWanted,
  shard: number,
  states: BucketStates,
  nowMs: number,
): Score {
  const state = states.of(name, shard);
  const bucket = state?.bucket;
  const throttled = states.isThrottled(name, shard, nowMs);
  if (bucket === undefined) return throttled ? THROTTLED : 1;
  const balances = balancesOf(bucket, config, nowMs);
  const before = balancesOf(bucket, config, Math.min(nowMs, state?.asOfMs ?? nowMs));
  let score: Score = 1;
  const gatesMilli = gatesOf(config, amountsMilli);
  config.limits.forEach(({ rate }, at) => {
    const amount = gatesMilli[at] ?? 0;
    const balance = balances[at] as number;
    if (amount <= 0) return;
    const { capacityMilli } = shareAt(bucket, rate, nowMs);
    // Other clients may have consumed what came in since: it makes a shard eligible, hardly better.
    const sure = ((before[at] as number) - amount) / capacityMilli;
    const unsure = (balance - amount) / capacityMilli;
    // A full shard loses what would come in: it goes before all others.
    const fill = balance >= capacityMilli ? 1 : Math.max(sure, UNSURE * unsure);
    score = Math.min(score, balance < amount ? NONE : fill);
  });
  return score > THROTTLED && (throttled || isSaturated(bucket, nowMs)) ? THROTTLED : score;
}

/** Whether the share of a shard could ever hold the amounts. */
function holds(
  { config, amountsMilli, count }: ShardWanted,
  shard: number,
  nowMs: number,
): boolean {
  const gatesMilli = gatesOf(config, amountsMilli);
  const place = { shard, shardCount: count };
  return config.limits.every(
    ({ rate }, at) => (gatesMilli[at] ?? 0) <= shareAt(place, rate, nowMs).capacityMilli,
  );
}
