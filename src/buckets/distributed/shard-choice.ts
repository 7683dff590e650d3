/**
 * Which shard to charge: of two at random, the one that is more likely to have enough.
 *
 * One at random would let shards run dry while others are full; the fullest by view would send all
 * clients to the same one. Two choices come close to even, and need no coordination.
 */

import { shardRate } from "../../core/shares.ts";
import type { Random } from "../../domain/chance.ts";
import type { Leg } from "../bucket-store.ts";
import type { LegViews } from "./leg-views.ts";
import { balancesOf } from "./shard-charger.ts";
import { isSaturated } from "./writes-meter.ts";

/** How well a shard would do. */
type Score = number;
const NONE: Score = -1;
const BUSY: Score = 0;
const UNSURE = 0.001;

export class ShardChoice {
  readonly #views: LegViews;
  readonly #random: Random;

  constructor(views: LegViews, random: Random) {
    this.#views = views;
    this.#random = random;
  }

  /** One of the shards that were not tried and could hold the amounts; `undefined` when none could. */
  pick(leg: Leg, count: number, tried: ReadonlySet<number>, nowMs: number): number | undefined {
    const open: number[] = [];
    for (let shard = 0; shard < count; shard += 1) {
      if (!tried.has(shard) && holds(leg, shard, count)) open.push(shard);
    }
    const [one, other] = this.#two(open);
    if (one === undefined) return undefined;
    const scores = [one, other ?? one].map((shard) => this.#score(leg, shard, nowMs));
    const better = (scores[1] as Score) > (scores[0] as Score) ? (other as number) : one;
    if (Math.max(...scores) > NONE) return better;
    // Both are known to have too little. Another one may have enough.
    return open.find((shard) => this.#score(leg, shard, nowMs) > NONE);
  }

  #two(open: number[]): [number | undefined, number | undefined] {
    if (open.length <= 1) return [open[0], undefined];
    const first = Math.floor(this.#random() * open.length);
    const step = 1 + Math.floor(this.#random() * (open.length - 1));
    return [open[first], open[(first + step) % open.length]];
  }

  /** How much of its share the scarcest limit of the shard would have left; unknown counts as full. */
  #score(leg: Leg, shard: number, nowMs: number): Score {
    const view = this.#views.of(leg, shard);
    const bucket = view?.bucket;
    const hot = this.#views.isHot(leg, shard, nowMs);
    if (bucket === undefined) return hot ? BUSY : 1;
    const balances = balancesOf(bucket, leg, nowMs);
    const before = balancesOf(bucket, leg, Math.min(nowMs, view?.asOfMs ?? nowMs));
    let score: Score = 1;
    leg.config.limits.forEach(({ rate }, at) => {
      const amount = leg.amountsMilli[at] ?? 0;
      const balance = balances[at] as number;
      if (amount <= 0) return;
      const { capacityMilli } = shardRate(rate, shard, bucket.shardCount);
      // What has come in since others may have taken: it makes a shard eligible, and hardly better.
      const sure = ((before[at] as number) - amount) / capacityMilli;
      const unsure = (balance - amount) / capacityMilli;
      score = Math.min(score, balance < amount ? NONE : Math.max(sure, UNSURE * unsure));
    });
    return score > BUSY && (hot || isSaturated(bucket, nowMs)) ? BUSY : score;
  }
}

/** Whether the share of a shard could ever hold the amounts. */
function holds(leg: Leg, shard: number, count: number): boolean {
  return leg.config.limits.every(
    ({ rate }, at) => (leg.amountsMilli[at] ?? 0) <= shardRate(rate, shard, count).capacityMilli,
  );
}
