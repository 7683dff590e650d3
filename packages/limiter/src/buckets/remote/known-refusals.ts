/**
 * The balances by which a server has refused calls within the last second: a call that asks for
 * more than a bucket can hold by now is refused without a request.
 */

import { boundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/time.ts";
import { tokensAfter } from "../../core/bucket.ts";
import type { Limit } from "../../domain/limit.ts";
import { bucketId } from "../../records/keys.ts";
import type { ConsumeResult, SeenBalances } from "../bucket-consumer.ts";
import { fits, type Leg, type SeenPeriods } from "../leg.ts";
import { hasPeriods } from "../periods.ts";

/** How long other processes' refunds may stay unseen. */
const KNOWN_MS = 1000;
const BUCKETS_MAX = 10_000;

interface ShownBalances {
  readonly limits: readonly Limit[];
  readonly balancesMilli: readonly number[];
  readonly periods: SeenPeriods | undefined;
  readonly atMs: number;
}

type Refused = Extract<ConsumeResult, { outcome: "refused" }>;

export class KnownRefusals {
  readonly #clock: Clock;
  readonly #shown = boundedMap<ShownBalances>(BUCKETS_MAX);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Keeps the balances by which a call was refused. */
  see(legs: readonly Leg[], { balancesMilli, periods }: SeenBalances): void {
    const atMs = this.#clock();
    legs.forEach((leg, at) => {
      const { limits } = leg.config;
      const balances = balancesMilli[at] as readonly number[];
      const shown = { limits, balancesMilli: balances, periods: periods?.[at], atMs };
      this.#shown.set(bucketId(leg), shown);
    });
  }

  /** Forgets a bucket that has more than was shown. */
  forget(bucket: { readonly entityId: string; readonly resource: string }): void {
    this.#shown.delete(bucketId(bucket));
  }

  forgetAll(): void {
    this.#shown.clear();
  }

  /** Returns the refusal of a call; `undefined`: the server decides. */
  refusal(legs: readonly Leg[]): Refused | undefined {
    if (this.#shown.size === 0) return undefined;
    const nowMs = this.#clock();
    let shownAtMs = nowMs;
    let isRefused = false;
    const balancesMilli: (readonly number[])[] = [];
    const periods: (SeenPeriods | undefined)[] = [];
    for (const leg of legs) {
      const shown = this.#shown.get(bucketId(leg));
      const { config, amountsMilli } = leg;
      if (shown === undefined || shown.limits !== config.limits) return undefined;
      const elapsedMs = nowMs - shown.atMs;
      if (elapsedMs < 0 || elapsedMs >= KNOWN_MS) return undefined;
      if (shown.periods?.some((period) => period !== undefined && nowMs >= period.endMs)) {
        return undefined;
      }
      const balances = config.limits.map(({ rate }, at) => {
        const milli = shown.balancesMilli[at] as number;
        if (hasPeriods(rate)) return milli;
        return tokensAfter(rate, milli, elapsedMs, rate.periodMs - 1);
      });
      if (!fits(config, amountsMilli, balances)) isRefused = true;
      shownAtMs = Math.min(shownAtMs, shown.atMs);
      balancesMilli.push(balances);
      periods.push(shown.periods);
    }
    if (!isRefused) return undefined;
    return { outcome: "refused", balancesMilli, periods, local: true, shownAtMs };
  }
}
