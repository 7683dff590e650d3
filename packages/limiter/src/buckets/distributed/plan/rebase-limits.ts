/** The limits of a bucket in a rebase: each is kept, replaced, started or removed. */

import { DEBT_MILLI_MAX, hasSlots, type Level, type Rate } from "../../../core/bucket.ts";
import { mulAddDiv } from "../../../core/integers.ts";
import { withRate } from "../../../core/rate-schedule.ts";
import { invariant } from "../../../domain/check.ts";
import { SCHEDULES } from "../../../domain/schedules.ts";
import type { StoredLimit } from "../../../records/bucket-item.ts";
import { VALID_UNTIL, windowAttributes } from "../../../records/period-attributes.ts";
import {
  PYTHON_LIMIT_SUFFIXES,
  softStamp,
  unscheduled,
} from "../../../records/python-attributes.ts";
import type { LeftOver } from "../../bucket-ttl.ts";
import { kindOf, sameRate, staleNames } from "../../config-match.ts";
import { type AmountsByName, type BucketConfig, NO_AMOUNTS } from "../../leg.ts";
import { hasPeriods, isTimed } from "../../periods.ts";
import { pausedName, pausedText, startPeriod } from "./paused-limits.ts";
import { foldPeriod, mustOpen, periodAttributeNames, storedAt } from "./period-plan.ts";
import {
  type BalanceAt,
  balanceAt,
  balanceOf,
  boundedChange,
  builtFrom,
  EPOCH_AHEAD_MS_MAX,
  hasPassed,
  isPinned,
  looksFull,
  type SeenBucket,
  shareAt,
} from "./seen-bucket.ts";
import { foldSlots, startSlots, stopSlots } from "./slot-plan.ts";
import { isGate, moveEpoch, type PlanContext, WritePlan } from "./write-plan.ts";
import { isMetered, moveMeter } from "./writes-meter.ts";

const SUFFIXES = ["tk", "cp", "ra", "rp", "tc", "rr"] as const;

/** A limit of another kind, whose place a new one takes. */
interface Replaced {
  readonly heldMilli: number;
  /** Whether its total of consumption stays. */
  readonly isCounted: boolean;
}

/** Collects the write, limit by limit. */
export class Rebase {
  readonly plan = new WritePlan();
  /** The present balances of the limits that stay. */
  readonly balances = new Map<string, BalanceAt>();
  readonly #bucket: SeenBucket;
  readonly #context: PlanContext;
  /** The old parameters count up to this time. */
  readonly #epochMs: number;
  /** The time by which periods are over. */
  readonly #periodMs: number;
  /** The base time stays, and balances are set relative to it. */
  readonly #pinned: boolean;
  /** The balances of all limits before the consume, by which a call is decided. */
  readonly #before = new Map<string, LeftOver>();

  constructor(bucket: SeenBucket, context: PlanContext) {
    const { nowMs } = context;
    const { refilledAtMs } = bucket;
    const farAhead = refilledAtMs - nowMs > EPOCH_AHEAD_MS_MAX;
    this.#bucket = bucket;
    this.#context = context;
    this.#periodMs = farAhead ? nowMs : Math.max(nowMs, refilledAtMs);
    // A new period moves it: by the base time the Python library knows that the quota was reset.
    this.#pinned = isPinned(bucket) && !mustOpen(bucket, NO_AMOUNTS, this.#periodMs);
    this.#epochMs = this.#pinned ? refilledAtMs : this.#periodMs;
    invariant(
      farAhead || this.#epochMs >= refilledAtMs,
      "only a base time that is far ahead is moved back",
    );
  }

  moveEpoch(): void {
    moveEpoch(this.plan, this.#bucket, this.#epochMs);
    if (!isMetered(this.#context)) return;
    moveMeter(this.plan, this.#bucket, this.#epochMs, this.#context.costMs);
  }

  /** Keeps the limits as they are. */
  keep(amounts: AmountsByName): void {
    this.#dropPaused();
    for (const [name, stored] of this.#bucket.limits) {
      this.#keepLimit(name, stored, stored.rate, amounts.get(name) ?? 0);
    }
  }

  /** Replaces the limits by those of the config. */
  apply(config: BucketConfig, amounts: AmountsByName): void {
    this.#dropPaused();
    const { limits } = this.#bucket;
    const wanted = new Map(config.limits.map(({ name, rate }) => [name, rate]));
    const stale = new Set(staleNames(builtFrom(this.#bucket), config));
    for (const name of stale) this.#stop(name);
    for (const [name, stored] of limits) {
      if (stale.has(name)) continue;
      this.#keepLimit(name, stored, wanted.get(name) ?? stored.rate, amounts.get(name) ?? 0);
    }
    for (const [name, rate] of wanted) {
      if (!limits.has(name)) this.#start(name, rate, amounts.get(name) ?? 0);
    }
    if (this.#context.rules.isSharedWithPython) this.#hintSoft(config);
  }

  #keepLimit(name: string, stored: StoredLimit, rate: Rate, amount: number): void {
    if (kindOf(rate) !== kindOf(stored.rate)) this.#replaceKind(name, stored, rate, amount);
    else if (hasSlots(rate)) this.#foldSlots(name, stored, rate, amount);
    else if (stored.period !== undefined) this.#foldPeriod(name, stored, rate, amount);
    else if (this.#pinned) this.#foldPinned(name, stored, rate, amount);
    else if (hasPassed(this.#bucket, stored, this.#epochMs)) this.#walk(name, stored, rate, amount);
    else this.#fold(name, stored, rate, amount);
  }

  /**
   * Stamps soft limits: to the Python library one without a stamp is hard, also if that is over.
   */
  #hintSoft({ limits, source }: BucketConfig): void {
    const { python, limits: known } = this.#bucket;
    for (const { name, soft, rate } of limits) {
      if (hasSlots(rate)) continue;
      const stamp = softStamp(name);
      const isKnown = known.has(name);
      const isMissing = !isKnown || python?.stamps[stamp] === undefined;
      if (soft && isMissing && source !== "override") this.plan.set(stamp, this.#context.nowMs);
      else if (!isKnown && python !== undefined) this.plan.remove(stamp);
    }
  }

  /** Moves one limit to the new base time, capped by both capacities, less the amount. */
  #fold(name: string, stored: StoredLimit, rate: Rate, amount: number): void {
    const { plan } = this;
    const { nowMs } = this.#context;
    const taken = this.#taken(amount);
    const now = balanceAt(this.#bucket, stored, nowMs);
    const balance = balanceAt(this.#bucket, stored, this.#epochMs);
    const share = this.#shareOf(rate);
    const capacityMilli = Math.min(balance.share.capacityMilli, share.capacityMilli);
    const full = looksFull({ ...balance, share: { ...share, capacityMilli } });
    const remainder = full
      ? 0
      : mulAddDiv(balance.remainder, share.periodMs, 0, balance.share.periodMs);
    const tokens = `b_${name}_tk`;
    if (full) {
      plan.set(tokens, capacityMilli - taken);
      plan.requireFull(name, balance, capacityMilli);
    } else {
      plan.add(tokens, boundedChange(stored.tokensMilli, balance.accruedMilli - taken));
      plan.requireLow(name, balance, capacityMilli);
      plan.requireRemainder(name, balance);
    }
    if (taken > 0 && isGate(this.#context, name)) plan.requireEnough(name, now, taken);
    plan.add(`b_${name}_tc`, amount);
    if (!sameRate(rate, stored.rate)) setParameters(plan, name, rate, stored.rate);
    plan.setRemainder(name, balance, remainder);
    const balanceMilli = Math.min(balanceOf(now), share.capacityMilli);
    this.#noteBefore(name, rate, share, balanceMilli);
    this.balances.set(name, { ...now, share });
  }

  #noteBefore(name: string, rate: Rate, share: Rate, balanceMilli: number): void {
    if (rate.schedule === undefined) this.#before.set(name, { rate: share, balanceMilli });
    else
      this.#before.set(name, { rate, balanceMilli, endMs: SCHEDULES.endAt(rate, this.#epochMs) });
  }

  /**
   * Moves a limit with windows through the boundaries until the new base time. No other client may
   * write meanwhile: what it has then depends on what it had at each of them.
   */
  #walk(name: string, stored: StoredLimit, rate: Rate, amount: number): void {
    const { plan } = this;
    const balance = balanceAt(this.#bucket, stored, this.#epochMs);
    const share = this.#shareOf(rate);
    const held = { refilledAtMs: this.#epochMs, ...heldIn(balance) };
    const level = withRate(held, balance.share, share, this.#epochMs);
    plan.requireBalance(name, stored);
    plan.set(`b_${name}_tk`, Math.max(-DEBT_MILLI_MAX, level.tokensMilli - this.#taken(amount)));
    plan.replaceRemainder(name, level.remainder);
    plan.add(`b_${name}_tc`, amount);
    if (!sameRate(rate, stored.rate)) setParameters(plan, name, rate, stored.rate);
    this.#noteBefore(name, rate, share, level.tokensMilli);
    this.balances.set(name, { ...balance, share });
  }

  /** Moves one limit with periods, and opens the period that is due. */
  #foldPeriod(name: string, stored: StoredLimit, rate: Rate, countedMilli: number): void {
    const { fromEndsMs, rules } = this.#context;
    const fold = {
      name,
      stored,
      rate,
      countedMilli,
      takenMilli: this.#taken(countedMilli),
      fromEndMs: fromEndsMs?.get(name),
      isGate: isGate(this.#context, name),
      epochMs: this.#periodMs,
    };
    const level = foldPeriod(this.plan, this.#bucket, fold, rules);
    if (!sameRate(rate, stored.rate)) setParameters(this.plan, name, rate);
    const share = this.#shareOf(rate);
    const { tokensMilli, endMs, leftMilli } = level;
    this.#before.set(name, { rate: share, balanceMilli: tokensMilli, endMs });
    const period = { endMs, leftMilli, toppedUpMilli: 0, isStored: true };
    const now = balanceAt(this.#bucket, { ...stored, tokensMilli, rate, period }, 0);
    this.balances.set(name, { ...now, share });
  }

  #foldSlots(name: string, stored: StoredLimit, rate: Rate, amount: number): void {
    const gate = isGate(this.#context, name);
    const fold = { name, stored, rate, takenMilli: this.#taken(amount), isGate: gate };
    const balanceMilli = foldSlots(this.plan, this.#bucket, fold);
    this.#before.set(name, { rate, balanceMilli });
    this.balances.set(name, balanceAt(this.#bucket, stored, this.#periodMs));
  }

  /** Removes the paused limits whose period is over. */
  #dropPaused(): void {
    for (const [name, { level }] of this.#bucket.paused ?? []) {
      if (this.#periodMs >= level.endMs) this.plan.remove(name);
    }
  }

  /** Removes a limit; one with periods waits for the end of its period, in case it comes back. */
  #stop(name: string): void {
    const stored = this.#bucket.limits.get(name);
    if (stored !== undefined && hasSlots(stored.rate)) {
      stopSlots(this.plan, name, stored);
      return;
    }
    this.plan.remove(...SUFFIXES.map((suffix) => `b_${name}_${suffix}`));
    if (stored?.rate.schedule !== undefined) this.plan.remove(`b_${name}_sched`, `b_${name}_tz`);
    if (stored?.period === undefined) return;
    this.plan.remove(...periodAttributeNames(name));
    this.#pause(name, stored);
  }

  #pause(name: string, stored: StoredLimit): void {
    const now = storedAt(this.#bucket, stored, this.#periodMs, this.#context.rules);
    const text = pausedText(now, this.#periodMs);
    if (text === undefined) return;
    this.plan.set(pausedName(name, stored.rate), text);
    const { tokensMilli: value } = stored;
    this.plan.require({ is: "=", name: `b_${name}_tk`, value });
  }

  /** Starts a limit of another kind in place of one: nothing is granted that was not there. */
  #replaceKind(name: string, stored: StoredLimit, rate: Rate, amount: number): void {
    const heldMilli = Math.max(0, balanceOf(balanceAt(this.#bucket, stored, this.#context.nowMs)));
    if (hasSlots(stored.rate) || hasSlots(rate)) {
      this.#stop(name);
    } else if (stored.period !== undefined) {
      this.#pause(name, stored);
      this.plan.remove(...periodAttributeNames(name));
    }
    this.#start(name, rate, amount, { heldMilli, isCounted: !hasSlots(stored.rate) });
  }

  /** Gives one limit a new rate from now on, while the base time stays where it is. */
  #foldPinned(name: string, stored: StoredLimit, rate: Rate, amount: number): void {
    const { plan } = this;
    const { nowMs } = this.#context;
    const now = balanceAt(this.#bucket, stored, nowMs);
    const share = this.#shareOf(rate);
    const balanceMilli = Math.min(balanceOf(now), share.capacityMilli);
    this.#before.set(name, { rate: share, balanceMilli });
    this.balances.set(name, { ...now, share });
    if (amount === 0 && sameRate(rate, stored.rate)) return;
    plan.require({ is: "=", name: `b_${name}_tk`, value: stored.tokensMilli });
    plan.set(`b_${name}_tk`, balanceMilli - this.#accruedMilli(rate) - this.#taken(amount));
    plan.add(`b_${name}_tc`, amount);
    plan.remove(`b_${name}_rr`);
    setParameters(plan, name, rate);
  }

  /** Returns what a rate accrues from the base time until now; 0 where the base time is now. */
  #accruedMilli(rate: Rate): number {
    if (!this.#pinned) return 0;
    const { nowMs } = this.#context;
    const fresh = { tokensMilli: 0, rate, totalConsumedMilli: 0, remainder: 0 };
    return balanceAt(this.#bucket, fresh, nowMs).accruedMilli;
  }

  #startSlots(name: string, rate: Rate, amount: number): void {
    if (this.#bucket.python?.unsupported.has(name) === true) this.#stop(name);
    const balanceMilli = startSlots(this.plan, this.#bucket, name, rate, this.#taken(amount));
    this.#before.set(name, { rate, balanceMilli });
  }

  /** Starts a limit: full, or with what the limit holds that it replaces. */
  #start(name: string, rate: Rate, amount: number, replaced: Partial<Replaced> = {}): void {
    if (hasSlots(rate)) {
      this.#startSlots(name, rate, amount);
      return;
    }
    const { plan } = this;
    const { python } = this.#bucket;
    const { heldMilli = Number.POSITIVE_INFINITY, isCounted = false } = replaced;
    const share = this.#shareOf(rate);
    const started = { name, rate, takenMilli: this.#taken(amount), nowMs: this.#periodMs };
    const { rules } = this.#context;
    const level = hasPeriods(rate) ? startPeriod(plan, this.#bucket, started, rules) : undefined;
    const fullMilli = level?.tokensMilli ?? Math.min(share.capacityMilli, heldMilli);
    plan.set(`b_${name}_tk`, fullMilli - this.#accruedMilli(rate) - this.#taken(amount));
    // A limit with an invalid remainder counts as absent, and would go on doing so.
    plan.remove(`b_${name}_rr`);
    if (isCounted || python?.unsupported.has(name) === true) {
      // Its consumption so far was counted for usage, and stays.
      plan.add(`b_${name}_tc`, amount);
    } else {
      plan.set(`b_${name}_tc`, amount);
    }
    const kept = level === undefined ? unscheduled(python, name) : level.attributes;
    for (const [attribute, value] of Object.entries(kept)) plan.set(attribute, value);
    const others = PYTHON_LIMIT_SUFFIXES.map((suffix) => `b_${name}_${suffix}`);
    const isOwn = (one: string) => Object.hasOwn(kept, one) || one === softStamp(name);
    if (python !== undefined && !isCounted) plan.remove(...others.filter((one) => !isOwn(one)));
    setParameters(plan, name, rate, this.#bucket.limits.get(name)?.rate);
    if (level === undefined) this.#noteBefore(name, rate, share, fullMilli);
    else this.#before.set(name, { rate: share, balanceMilli: fullMilli, endMs: level.endMs });
  }

  /** Sets until when clients of the Python library may write by the item that they have seen. */
  setValidUntil(): void {
    let untilMs = Number.POSITIVE_INFINITY;
    for (const { rate, endMs = 0 } of this.#before.values()) {
      if (isTimed(rate) && endMs > this.#periodMs) untilMs = Math.min(untilMs, endMs);
    }
    if (untilMs !== Number.POSITIVE_INFINITY) this.plan.set(VALID_UNTIL, untilMs);
  }

  /** Returns the balances before the consume; a limit that is not in the bucket is full. */
  balancesBefore({ limits }: BucketConfig): readonly number[] {
    return limits.map(
      ({ name, rate }) =>
        this.#before.get(name)?.balanceMilli ?? SCHEDULES.rateAt(rate, this.#epochMs).capacityMilli,
    );
  }

  *leftOver(amounts: AmountsByName): Generator<LeftOver> {
    for (const [name, { rate, balanceMilli, endMs = 0 }] of this.#before) {
      yield { rate, balanceMilli: balanceMilli - (amounts.get(name) ?? 0), endMs };
    }
    for (const { rate, level } of this.#bucket.paused?.values() ?? []) {
      yield { rate, balanceMilli: level.tokensMilli, endMs: level.endMs };
    }
  }

  /** Returns the milli-tokens that the balance loses. */
  #taken(amount: number): number {
    return this.#context.bypass === true ? 0 : amount;
  }

  #shareOf(rate: Rate): Rate {
    return shareAt(this.#bucket, rate, this.#epochMs);
  }
}

function heldIn(balance: BalanceAt): Pick<Level, "tokensMilli" | "remainder"> {
  const isFull = looksFull(balance);
  return { tokensMilli: balanceOf(balance), remainder: isFull ? 0 : balance.remainder };
}

function setParameters(plan: WritePlan, name: string, rate: Rate, before?: Rate): void {
  plan.set(`b_${name}_cp`, rate.capacityMilli);
  plan.set(`b_${name}_ra`, rate.refillMilli);
  plan.set(`b_${name}_rp`, rate.periodMs);
  const { schedule } = rate;
  if (schedule === undefined && before?.schedule === undefined) return;
  if (schedule === undefined && rate.rule === undefined) plan.remove(`b_${name}_tz`);
  const written = windowAttributes(name, schedule);
  for (const [attribute, value] of Object.entries(written)) plan.set(attribute, value);
}
