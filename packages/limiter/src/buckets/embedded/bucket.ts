/**
 * A bucket of the embedded stores: one writer at a time, so it is refilled as it is used.
 *
 * Usage is counted in the acquire's own step. A bucket has its total consumption, and how much of
 * it the snapshots contain already; the difference belongs to one hour, since all larger windows
 * are made of whole hours. It is added to the snapshots when the hour is over, when the bucket is
 * deleted, and when usage is read: consumption that is not in the snapshots yet is in the bucket.
 */

import { hasSlots, type Rate } from "../../core/bucket.ts";
import { SCHEDULES } from "../../domain/schedules.ts";
import type { ClosedPeriod } from "../../records/usage/period-item.ts";
import type { LeftOver } from "../bucket-ttl.ts";
import { kindOf, staleNames } from "../config-match.ts";
import type { BucketConfig, Link, PeriodEnds, SeenPeriod } from "../leg.ts";
import { hasPeriods, isTimed } from "../periods.ts";
import { seenWindow } from "../rates-in-time.ts";
import { movedSlots, NO_SLOTS, type SlotEntry } from "../slots/slot-entries.ts";
import { beginPeaks, peaksOf, seePeakAt, totalAt } from "../slots/slot-peaks.ts";
import {
  closedPeriod,
  earliestEndMs,
  isUnused,
  leftIn,
  type PausedLimit,
  seenPeriodAt,
} from "./bucket-periods.ts";
import { Build } from "./build.ts";
import {
  addTokens,
  changeRate,
  consumeAt,
  copyLimit,
  countAt,
  countLateAt,
  fill,
  heldAt,
  lateAt,
  markCountedAt,
  type Numbers,
  numbersFor,
  openDueAt,
  periodAt,
  refilledAtMs,
  refundAt,
  setLevelAt,
  setPeriodAt,
  uncountedAt,
  walkAt,
} from "./limit-numbers.ts";
import type { Terms } from "./ordinary-call.ts";
import type { PendingUsage } from "./usage-book.ts";
import { hourOf, hourStartMs } from "./usage-hour.ts";

/** The state that few buckets have, in one field: a process may keep a million buckets. */
interface Rare {
  readonly paused: readonly PausedLimit[];
  /** The slots that are held, by limit and holder. */
  readonly slots: readonly SlotEntry[];
  /** Periods that this copy has closed, and that have no statement yet. */
  readonly closed: readonly ClosedPeriod[];
}

const NOTHING_RARE: Rare = Object.freeze({ paused: [], slots: NO_SLOTS, closed: [] });

/** Changed in place: a table hands out copies, and takes over what a step writes. */
export class Bucket {
  build: Build;
  link: Link;
  /** Epoch seconds after which the bucket may be removed; `undefined`: it stays. */
  ttl: number | undefined;
  /** The hour, since 1970, of all consumption that is not in the snapshots yet. */
  usageHour: number;
  /** Acquires that are not in the snapshots yet. */
  events: number;
  readonly numbers: Numbers;
  rare: Rare = NOTHING_RARE;
  /** The limits that ordinary calls go by, until the slow path writes the bucket again. */
  terms: Terms | undefined = undefined;
  /** Epoch seconds until which calls by the terms may be ordinary, in the hour of usage. */
  ordinaryUntil = 0;

  constructor(
    build: Build,
    link: Link,
    ttl: number | undefined,
    usageHour: number,
    events: number,
    numbers: Numbers,
  ) {
    this.build = build;
    this.link = link;
    this.ttl = ttl;
    this.usageHour = usageHour;
    this.events = events;
    this.numbers = numbers;
  }

  /** Returns a new bucket, in which every limit is full. */
  static full(config: BucketConfig, link: Link, nowMs: number): Bucket {
    const names = config.limits.map(({ name }) => name);
    const rates = config.limits.map(({ rate }) => rate);
    const build = new Build(config.version, config.source, names, rates);
    const numbers = numbersFor(rates);
    rates.forEach((rate, at) => {
      fill(numbers, at, rate, nowMs);
    });
    return new Bucket(build, link, undefined, hourOf(nowMs), 0, numbers);
  }

  /** Changes fields that few buckets have. */
  keep(change: Partial<Rare>): void {
    const rare = { ...this.rare, ...change };
    const { paused, slots, closed } = rare;
    this.rare = paused.length + slots.length + closed.length === 0 ? NOTHING_RARE : rare;
  }

  /** Returns a copy for the slow path, which ordinary calls do not go by. */
  copy(): Bucket {
    const { build, link, ttl, usageHour, events, numbers } = this;
    const copy = new Bucket(build, link, ttl, usageHour, events, numbers.slice());
    copy.rare = this.rare;
    return copy;
  }

  /** Whether a limit of it has periods. */
  get hasPeriods(): boolean {
    return this.build.rates.some(hasPeriods);
  }

  /** Opens the periods of quotas that are due, and ends sessions that are over. */
  openDue(nowMs: number): void {
    this.build.rates.forEach((rate, at) => {
      if (hasPeriods(rate)) this.#open(at, rate, nowMs);
      else walkAt(this.numbers, at, rate, nowMs);
    });
    for (const { name, rate, level, lateMilli } of this.rare.paused) {
      if (nowMs >= level.endMs) this.#close(closedPeriod(name, rate, level, lateMilli, nowMs));
    }
    if (this.rare.paused.length === 0) return;
    this.keep({ paused: this.rare.paused.filter(({ level }) => nowMs < level.endMs) });
  }

  /** Opens the period of a limit that is due. */
  #open(at: number, rate: Rate, nowMs: number): void {
    const { endMs } = periodAt(this.numbers, at);
    if (nowMs < endMs) return;
    if (endMs > 0) this.#closeAt(at, rate, nowMs);
    openDueAt(this.numbers, at, rate, nowMs);
  }

  #closeAt(at: number, rate: Rate, nowMs: number): void {
    const name = this.build.names[at] as string;
    const level = periodAt(this.numbers, at);
    this.#close(closedPeriod(name, rate, level, lateAt(this.numbers, at), nowMs));
  }

  #close(period: ClosedPeriod): void {
    this.keep({ closed: [...this.rare.closed, period] });
  }

  /** Returns the periods that were closed since the last time, each of which leaves a statement. */
  takeClosed(): readonly ClosedPeriod[] {
    const { closed } = this.rare;
    if (closed.length > 0) this.keep({ closed: [] });
    return closed;
  }

  /**
   * Adds tokens to a limit that no call has consumed before, and returns how many. `Infinity` fills
   * it up, and ends a session.
   */
  add(at: number, amount: number, nowMs: number): number {
    const rate = this.build.rates[at] as Rate;
    if (hasPeriods(rate)) {
      this.#open(at, rate, nowMs);
      const isEnded = rate.rule?.kind === "session" && !Number.isFinite(amount);
      if (isEnded && periodAt(this.numbers, at).endMs > 0) this.#closeAt(at, rate, nowMs);
    }
    return addTokens(this.numbers, at, rate, amount, nowMs);
  }

  /** Returns the earliest end of a period in force; `Infinity` where none is. */
  periodsEndMs(nowMs: number): number {
    return earliestEndMs(this.build.rates, this.numbers, nowMs);
  }

  /** Returns the periods that some limits are in; `undefined` where none has periods. */
  periodsOf(
    { limits }: Pick<BucketConfig, "limits">,
    nowMs: number,
  ): readonly (SeenPeriod | undefined)[] | undefined {
    if (!limits.some(({ rate }) => isTimed(rate))) return undefined;
    return limits.map(({ name, rate }) => {
      const at = this.build.names.indexOf(name);
      if (rate.schedule !== undefined) return seenWindow(rate, nowMs);
      if (!hasPeriods(rate) || at < 0) return undefined;
      return seenPeriodAt(this.numbers, at, this.build.rates[at] as Rate, nowMs);
    });
  }

  /** Whether its time is over: then it would be full again, and counts as removed. */
  isExpired(nowMs: number): boolean {
    return this.ttl !== undefined && this.ttl * 1000 <= nowMs && this.rare.slots.length === 0;
  }

  /** Returns the bucket with the limits of a config: balances stay, capped; new ones are full. */
  withConfig(config: BucketConfig, nowMs: number): Bucket {
    const { names, rates } = this.build;
    const { limits, source } = config;
    const stale = new Set(staleNames(this.build, config));
    const applied = new Set(limits.map(({ name }) => name));
    const kept = names.filter((name) => !stale.has(name) && !applied.has(name));
    const build = new Build(
      source === "override" ? this.build.version : config.version,
      source,
      [...applied, ...kept],
      [...limits.map(({ rate }) => rate), ...kept.map((name) => this.build.rateOf(name) as Rate)],
    );
    const numbers = numbersFor(build.rates);
    const paused = this.#pausedWith(build, nowMs);
    build.names.forEach((name, at) => {
      const rate = build.rates[at] as Rate;
      const from = names.indexOf(name);
      const before = rates[from];
      if (before !== undefined && kindOf(before) === kindOf(rate)) {
        copyLimit(this.numbers, from, numbers, at);
        if (hasPeriods(rate)) {
          setPeriodAt(numbers, at, periodAt(this.numbers, from));
          countLateAt(numbers, at, lateAt(this.numbers, from));
        }
        if (applied.has(name)) changeRate(numbers, at, before, rate, nowMs);
        return;
      }
      fill(numbers, at, rate, nowMs);
      if (before !== undefined) this.#replaceKind(numbers, at, rate, from, nowMs);
      const known = paused.find(
        (limit) => limit.name === name && kindOf(limit.rate) === kindOf(rate),
      );
      if (known === undefined) return;
      setPeriodAt(numbers, at, known.level);
      countLateAt(numbers, at, known.lateMilli);
      changeRate(numbers, at, known.rate, rate, nowMs);
    });
    const bucket = new Bucket(build, this.link, this.ttl, this.usageHour, this.events, numbers);
    const isPaused = ({ name, rate }: PausedLimit) => kindOf(build.rateOf(name)) !== kindOf(rate);
    bucket.keep({
      paused: paused.filter(isPaused),
      slots: this.rare.slots.filter(
        ({ limitName }) => kindOf(build.rateOf(limitName)) === "concurrency",
      ),
      closed: this.rare.closed,
    });
    return bucket;
  }

  /** Starts a limit of another kind in place of one: nothing is granted that was not there. */
  #replaceKind(numbers: Numbers, at: number, rate: Rate, from: number, nowMs: number): void {
    const heldMilli = Math.max(0, this.balanceMilli(from, nowMs));
    const level = { tokensMilli: heldMilli, refilledAtMs: nowMs, remainder: 0 };
    const isLess =
      kindOf(rate) === "rate" && heldMilli < SCHEDULES.rateAt(rate, nowMs).capacityMilli;
    if (isLess) setLevelAt(numbers, at, level);
    countAt(numbers, at, totalAt(this.numbers, from, this.build.rates[from] as Rate));
  }

  /** Returns the limits that wait for their period to end, once the bucket has other limits. */
  #pausedWith(build: Build, nowMs: number): readonly PausedLimit[] {
    const { names, rates } = this.build;
    const paused = this.rare.paused.filter(({ level }) => nowMs < level.endMs);
    rates.forEach((rate, at) => {
      const name = names[at] as string;
      if (!hasPeriods(rate) || kindOf(build.rateOf(name)) === kindOf(rate)) return;
      const level = periodAt(this.numbers, at);
      const lateMilli = lateAt(this.numbers, at);
      if (nowMs < level.endMs) paused.push({ name, rate, level, lateMilli });
    });
    return paused;
  }

  /** Returns the balance of a limit in milli-tokens. */
  balanceMilli(at: number, nowMs: number): number {
    return heldAt(this.numbers, at, this.build.rates[at] as Rate, nowMs);
  }

  /** Returns the balances of some limits; one that the bucket does not have is full. */
  balancesOf({ limits }: Pick<BucketConfig, "limits">, nowMs: number): readonly number[] {
    return limits.map(({ name, rate }) => {
      const at = this.build.names.indexOf(name);
      if (at >= 0) return this.balanceMilli(at, nowMs);
      return SCHEDULES.rateAt(rate, nowMs).capacityMilli;
    });
  }

  /**
   * Consumes amounts that are aligned with the limits of a config, without a check; a negative one
   * is refunded. Under bypass they are only counted. `fromEndsMs`: the ends of the periods that
   * were consumed in before. `entry`: the one that slots are taken under, or given back from.
   */
  consume(
    config: BucketConfig,
    amountsMilli: readonly number[],
    nowMs: number,
    fromEndsMs?: PeriodEnds,
    entry?: string,
  ): void {
    const { numbers, build } = this;
    config.limits.forEach(({ name }, index) => {
      const amount = amountsMilli[index] ?? 0;
      const at = build.names.indexOf(name);
      if (at < 0 || amount === 0) return;
      const fromEndMs = fromEndsMs?.[index];
      if (hasSlots(build.rates[at] as Rate)) this.#moveSlots(at, amount, nowMs, entry);
      else if (config.bypass === true) countAt(numbers, at, amount);
      else if (amount < 0) refundAt(numbers, at, build.rates[at] as Rate, -amount, fromEndMs);
      else this.#consumeAt(at, amount, nowMs, fromEndMs);
    });
  }

  /** Takes slots, or gives them back; without an entry that has them it does nothing. */
  #moveSlots(at: number, amount: number, nowMs: number, entry: string | undefined): void {
    const { numbers, build } = this;
    const rate = build.rates[at] as Rate;
    if (entry === undefined) return;
    const moved = movedSlots(this.rare.slots, build.names[at] as string, entry, amount);
    if (moved === undefined) return;
    this.keep({ slots: moved });
    if (amount < 0) refundAt(numbers, at, rate, -amount);
    else consumeAt(numbers, at, rate, heldAt(numbers, at, rate, nowMs), amount, nowMs);
    seePeakAt(numbers, at, rate);
  }

  /** Gives back the slots of an entry whose holder is dead. */
  giveBack({ limitName, entry, milli }: SlotEntry): void {
    this.#moveSlots(this.build.names.indexOf(limitName), -milli, 0, entry);
  }

  #consumeAt(at: number, amount: number, nowMs: number, fromEndMs: number | undefined): void {
    const { numbers } = this;
    const rate = this.build.rates[at] as Rate;
    if (hasPeriods(rate)) this.#open(at, rate, nowMs);
    consumeAt(numbers, at, rate, heldAt(numbers, at, rate, nowMs), amount, nowMs);
    const isLate = fromEndMs !== undefined && hasPeriods(rate);
    if (isLate && fromEndMs < periodAt(numbers, at).endMs) countLateAt(numbers, at, amount);
  }

  /** Returns what is left of every limit, by which a time to live is chosen. */
  left(nowMs: number): readonly LeftOver[] {
    return leftIn(this.build.rates, this.numbers, this.rare.paused, nowMs);
  }

  /** Returns the usage that is not in the snapshots yet; `undefined` when there is none. */
  pendingUsage(): PendingUsage | undefined {
    const { build, numbers, events } = this;
    const amountsMilli = build.names.flatMap((name, at) => {
      const milli = uncountedAt(numbers, at);
      return Number(milli) === 0 ? [] : [[name, milli] as const];
    });
    if (amountsMilli.length === 0 && events === 0) return undefined;
    return { atMs: hourStartMs(this.usageHour), amountsMilli, events, ...peaksOf(build, numbers) };
  }

  /** Returns all that is to be counted before the row goes; `undefined` when nothing is. */
  lastUsage(nowMs: number): PendingUsage | undefined {
    this.openDue(nowMs);
    const usage = this.pendingUsage();
    const closed = this.takeClosed();
    if (closed.length === 0) return usage;
    return { atMs: nowMs, amountsMilli: [], events: 0, ...usage, closed };
  }

  /** Records that the snapshots have all usage, and that an hour begins. */
  markCounted(hour: number): void {
    this.build.names.forEach((_, at) => {
      markCountedAt(this.numbers, at);
    });
    beginPeaks(this.build, this.numbers);
    this.usageHour = hour;
    this.events = 0;
  }

  /** Whether a new bucket would hold just as much of every limit. */
  isFull(nowMs: number): boolean {
    if (this.rare.paused.length > 0) return false;
    return this.build.rates.every((rate, at) =>
      hasPeriods(rate)
        ? isUnused(periodAt(this.numbers, at), rate, nowMs)
        : this.balanceMilli(at, nowMs) >= SCHEDULES.rateAt(rate, nowMs).capacityMilli,
    );
  }

  /** Returns the time since the last consume, in milliseconds. */
  idleMs(nowMs: number): number {
    const times = this.build.names.map((_, at) => refilledAtMs(this.numbers, at));
    return nowMs - Math.max(0, ...times);
  }
}
