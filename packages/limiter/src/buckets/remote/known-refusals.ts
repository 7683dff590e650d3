/**
 * The balances by which a server has refused calls within the last second, or within half a minute
 * where a quota is spent: a call that asks for more than a bucket can hold by now is refused
 * without a request.
 */

import { boundedMap } from "../../base/bounded-map.ts";
import { type Clock, isRecent } from "../../base/time.ts";
import { tokensAfter } from "../../core/bucket.ts";
import type { Limit } from "../../domain/limit.ts";
import { SCHEDULES } from "../../domain/schedules.ts";
import { bucketId } from "../../records/keys.ts";
import type { ConsumeResult, SeenBalances } from "../bucket-consumer.ts";
import { fits, type Leg, type SeenPeriods } from "../leg.ts";
import { hasPeriods } from "../periods.ts";
import { withoutSlots } from "../slots/slot-amounts.ts";
import { KNOWN_MS, SPENT_MS, spentOf } from "../spent.ts";

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

  /**
   * Returns the refusal of a call; `undefined`: the server decides. A call that `waits` is not
   * refused by what is known of a spent quota for longer than a second.
   */
  refusal(legs: readonly Leg[], waits = false): Refused | undefined {
    if (this.#shown.size === 0) return undefined;
    const nowMs = this.#clock();
    let shownAtMs = nowMs;
    const balancesMilli: (readonly number[])[] = [];
    const periods: (SeenPeriods | undefined)[] = [];
    for (const leg of legs) {
      const shown = this.#shown.get(bucketId(leg));
      if (shown === undefined || !isKnown(shown, leg, nowMs, waits ? KNOWN_MS : SPENT_MS)) {
        return undefined;
      }
      balancesMilli.push(balancesAt(shown, nowMs));
      periods.push(shown.periods?.map((period) => period && { ...period, atMs: nowMs }));
      shownAtMs = Math.min(shownAtMs, shown.atMs);
    }
    // After a second only a spent quota or session refuses.
    const isOld = nowMs - shownAtMs >= KNOWN_MS;
    const isRefused = legs.some(({ config, amountsMilli }, at) => {
      const balances = balancesMilli[at] as readonly number[];
      // Slots may come back at any time.
      const amounts = withoutSlots(config, amountsMilli);
      return !fits(config, amounts, isOld ? spentOf(config, balances) : balances);
    });
    if (!isRefused) return undefined;
    return { outcome: "refused", balancesMilli, periods, local: true, shownAtMs };
  }
}

/** Whether a bucket was shown within that time, for the limits of a leg and in their periods. */
function isKnown(
  { limits, periods, atMs }: ShownBalances,
  { config }: Leg,
  nowMs: number,
  withinMs: number,
): boolean {
  if (limits !== config.limits || !isRecent(atMs, nowMs, withinMs)) return false;
  return periods?.some((period) => period !== undefined && nowMs >= period.endMs) !== true;
}

/** Returns the most that the limits of a bucket can hold by now. */
function balancesAt({ limits, balancesMilli, atMs }: ShownBalances, nowMs: number): number[] {
  return limits.map(({ rate }, at) => {
    const milli = balancesMilli[at] as number;
    if (hasPeriods(rate)) return milli;
    const now = SCHEDULES.rateAt(rate, nowMs);
    return tokensAfter(now, milli, nowMs - atMs, now.periodMs - 1);
  });
}
