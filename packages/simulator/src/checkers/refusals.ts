/**
 * Which refusals are right. A library that refuses half of everything admits nothing too much, so
 * each refusal is compared with an ideal bucket: one for all shards, fed by what `tc` says.
 *
 * A call may be refused when one of the limits that its refusal names had too little at some moment
 * between one second before the call and its answer:
 * - one second, because a cached state may refuse for so long without a request;
 * - tokens that other calls hold and will refund count as consumed, because they are in the store;
 * - so do blocks that other processes have reserved: they are consumed in the store as well;
 * - tokens that calls of the same process wait for, or are about to consume, which go first; those
 *   that wait keep their tokens even where a full bucket does not hold enough for both;
 * - what accrues in one round trip, and in the time by which clocks differ: the second is longer by
 *   that time, too;
 * - shards are read one by one: what was refunded meanwhile may be missing in their sum, and one
 *   that is full gains nothing while the others do.
 * Every other refusal is wrong. A process that knows of a change refuses by limits that the bucket
 * does not have yet, and finds in it at most their capacity. Limits whose parameters have changed
 * in the bucket are not judged: processes learn of that at different times. Nor are those of a
 * bucket for which another library has announced shards: its tokens are spread over shards that do
 * not exist yet. Nor are limits with windows, of which clocks that differ see different numbers. A
 * bucket that was deleted and created again is judged once all knowledge of the
 * old one is too old.
 */

import type { LimitOfShard, ShardImage } from "./bucket-image.ts";
import { type BucketLanding, isAnnouncement } from "./ledger.ts";
import { LevelHistory } from "./level-history.ts";
import { PeriodHistory, periodLevelOf } from "./period-history.ts";
import { shareRate } from "./share.ts";

/** For so long a cached state may refuse without a request. */
const KNOWLEDGE_MS = 1000;
/** A generous round trip, with the rounding of clocks. */
const ROUND_TRIP_MS = 100;
/** Splits give up parts of a milli-token, and refusals are rounded. */
const ROUNDING_MILLI = 10;
/** A waiter is woken by a refund of its own process long before this time is over. */
const WAKE_UP_MS = 1000;

/** One limit that a refusal names, or that a waiter waits for. */
export interface Wanted {
  readonly bucket: string;
  readonly limitName: string;
  readonly amountMilli: number;
  /** The capacity of the limit that the process goes by; that of the bucket when absent. */
  readonly capacityMilli?: number;
}

/** A call that asks or waits for a bucket. */
interface Wait {
  readonly wanted: readonly Wanted[];
  readonly mayWait: boolean;
  readonly startMs: number;
  endMs: number;
  /** Ends it; also the identity of the call. */
  readonly stop: () => void;
}

/** A limit of a bucket: what all its shards hold. */
class Followed {
  readonly limit: LimitOfShard;
  readonly history: LevelHistory | PeriodHistory;
  /** Several shards are read one by one. */
  isSharded = false;
  readonly #judgedFromMs: number;
  /** Balance of each shard at a time, in milli-tokens. */
  readonly #levels = new Map<number, (nowMs: number) => number>();

  /** `replaces`: another bucket was there before, and a cached state may be of that one. */
  constructor(limit: LimitOfShard, nowMs: number, replaces: boolean) {
    this.limit = limit;
    this.history =
      limit.quota === undefined
        ? new LevelHistory(limit, nowMs)
        : new PeriodHistory(limit.capacity, nowMs);
    this.#judgedFromMs = replaces ? nowMs : Number.NEGATIVE_INFINITY;
  }

  /** Whether everything known since then is about this bucket. */
  isJudgedFrom(fromMs: number): boolean {
    return fromMs >= this.#judgedFromMs;
  }

  hasRateOf({ capacity, refill, period }: LimitOfShard): boolean {
    const { limit } = this;
    return capacity === limit.capacity && refill === limit.refill && period === limit.period;
  }

  /** Records the state of a shard after a write; `merged` is the shard that it has taken in. */
  show(
    limit: LimitOfShard,
    image: ShardImage,
    merged: BucketLanding["merged"],
    skewMs: number,
  ): void {
    this.isSharded ||= image.count > 1;
    const { quota } = limit;
    const level =
      quota === undefined ? levelOf(limit, image) : periodLevelOf(limit, quota, image, skewMs);
    this.#levels.set(image.shard, level);
    if (merged !== undefined) this.#levels.delete(merged.image.shard);
    if (!(this.history instanceof PeriodHistory)) return;
    this.history.show(image.shard, quota?.endMs ?? 0);
    if (merged !== undefined) this.history.drop(merged.image.shard);
  }

  /** Returns since when a process may have known what it refuses by at a time. */
  knownSinceMs(ms: number, skewMs: number): number {
    const recentMs = ms - KNOWLEDGE_MS - skewMs;
    if (!(this.history instanceof PeriodHistory)) return recentMs;
    return Math.min(recentMs, this.history.knownSinceMs(ms, skewMs));
  }

  /** Returns the lowest balance in a time. */
  least(fromMs: number, nowMs: number): number {
    const { history } = this;
    if (!this.isSharded) return history.least(fromMs, nowMs);
    const seen = history.leastSeen(fromMs, nowMs);
    // A full shard gains nothing, however long another one needs to come out of its debt.
    const isRate = history instanceof LevelHistory;
    return isRate ? Math.min(seen, sumOf(this.#levels.values(), fromMs)) : seen;
  }

  take(amountMilli: number, nowMs: number): void {
    if (this.history instanceof PeriodHistory) {
      this.history.take(amountMilli, nowMs, [...this.#levels.values()]);
      return;
    }
    const level = this.isSharded ? sumOf(this.#levels.values(), nowMs) : undefined;
    this.history.take(amountMilli, nowMs, level);
  }
}

export class Refusals {
  /** Limits that are followed, by bucket and name; `undefined` once its parameters changed. */
  readonly #followed = new Map<string, Followed | undefined>();
  /** Amounts that calls ask or wait for, by process, bucket and limit. */
  readonly #asked = new Map<string, number>();
  /** Amounts of calls that may wait, and therefore are in a queue. */
  readonly #queued = new Map<string, number>();
  /** Recent calls that asked or waited, by process and bucket, in the order of their start. */
  readonly #waits = new Map<string, Wait[]>();
  readonly #skewMs: number;
  judged = 0;
  wrong = 0;

  /** `skewMs`: by how much clocks differ. */
  constructor(skewMs: number) {
    this.#skewMs = skewMs;
  }

  landed(landings: readonly BucketLanding[], nowMs: number): void {
    // A transaction moves balances between shards: all of them count before any is judged.
    for (const landing of landings) {
      const { before, after } = landing;
      if (after === undefined) this.#forget(before);
      else for (const limit of after.limits) this.#follow(landing, after, limit, nowMs);
    }
    for (const { after, charged } of landings) {
      for (const { name } of after?.limits ?? []) {
        const amountMilli = Number(charged.get(name) ?? 0n);
        this.#followed.get(`${after?.bucket} ${name}`)?.take(amountMilli, nowMs);
      }
    }
  }

  /**
   * Records that a call of the process asks for these, and waits for them if `mayWait`. Call the
   * result when it ends.
   */
  asks(
    process: number,
    wanted: readonly Wanted[],
    mayWait: boolean,
    now: () => number,
  ): () => void {
    const one: Wait = { wanted, mayWait, startMs: now(), endMs: Number.POSITIVE_INFINITY, stop };
    for (const bucket of new Set(wanted.map((each) => each.bucket))) {
      const waits = this.#waits.get(`${process} ${bucket}`) ?? [];
      const recent = waits.filter(({ endMs }) => endMs > now() - WAKE_UP_MS);
      this.#waits.set(`${process} ${bucket}`, [...recent, one]);
    }
    const sums = mayWait ? [this.#asked, this.#queued] : [this.#asked];
    for (const each of sums) count(each, process, wanted, 1);
    function stop(): void {
      one.endMs = now();
      for (const each of sums) count(each, process, wanted, -1);
    }
    return stop;
  }

  /**
   * Returns why the refusal of a call that began at `sinceMs` is wrong; `undefined` when it is
   * right. `own` is what `asks` has returned for it.
   */
  whyWrong(
    process: number,
    named: readonly Wanted[],
    sinceMs: number,
    nowMs: number,
    own?: () => void,
  ): string | undefined {
    const least = named.map((wanted) => {
      const beyond = this.#leastBeyond(process, wanted, sinceMs, nowMs);
      return beyond === undefined
        ? undefined
        : beyond - this.#justEnded(process, wanted, nowMs, own);
    });
    if (least.includes(undefined)) return undefined;
    this.judged += 1;
    if (least.some((milli) => (milli as number) < 0)) return undefined;
    this.wrong += 1;
    return named
      .map(({ bucket, limitName, amountMilli }, at) => {
        const has = amountMilli + (least[at] as number);
        return `"${limitName}" of ${bucket} had at least ${has} milli of ${amountMilli}`;
      })
      .join(", ");
  }

  /**
   * Whether a waiter slept although what it waits for was there for long, besides what those need
   * that came before it. It is not held up by calls that wait for limits it does not need.
   */
  isLate(process: number, wanted: readonly Wanted[], sinceMs: number, nowMs: number): boolean {
    const fromMs = nowMs - WAKE_UP_MS;
    if (fromMs <= sinceMs) return false;
    return wanted.every((one) => {
      const followed = this.#followed.get(`${one.bucket} ${one.limitName}`);
      const seenMs = fromMs - this.#skewMs;
      if (followed === undefined || !followed.isJudgedFrom(seenMs)) return false;
      const { capacity } = followed.limit;
      if (one.amountMilli > capacity) return false;
      const own = Math.min(capacity, one.amountMilli + this.#slackMilli(followed));
      const needed = own + this.#wantedBefore(process, one, sinceMs, fromMs);
      return followed.least(seenMs, nowMs - ROUND_TRIP_MS) >= needed;
    });
  }

  /** Sums up what earlier calls of the process wanted that asked or waited at that time. */
  #wantedBefore(
    process: number,
    { bucket, limitName }: Wanted,
    sinceMs: number,
    fromMs: number,
  ): number {
    let sum = 0;
    for (const { wanted, startMs, endMs } of this.#waits.get(`${process} ${bucket}`) ?? []) {
      if (startMs >= sinceMs || endMs <= fromMs) continue;
      for (const one of wanted) {
        if (one.bucket === bucket && one.limitName === limitName) sum += one.amountMilli;
      }
    }
    return sum;
  }

  /**
   * Sums up what other waiters of the process wanted that ended at this instant: whether they
   * ended before or after a refusal of that instant is random.
   */
  #justEnded(
    process: number,
    { bucket, limitName }: Wanted,
    nowMs: number,
    own: (() => void) | undefined,
  ): number {
    let sum = 0;
    for (const { wanted, mayWait, endMs, stop } of this.#waits.get(`${process} ${bucket}`) ?? []) {
      if (!mayWait || endMs !== nowMs || stop === own) continue;
      for (const one of wanted) {
        if (one.bucket === bucket && one.limitName === limitName) sum += one.amountMilli;
      }
    }
    return sum;
  }

  /** Returns the lowest balance of the window minus what a call needed; below 0: too little. */
  #leastBeyond(
    process: number,
    { bucket, limitName, amountMilli, capacityMilli = Number.POSITIVE_INFINITY }: Wanted,
    sinceMs: number,
    nowMs: number,
  ): number | undefined {
    const id = `${bucket} ${limitName}`;
    const followed = this.#followed.get(id);
    if (followed === undefined) return undefined;
    // A process whose clock is behind sees the bucket as it was by the clocks of the others.
    const fromMs = followed.knownSinceMs(sinceMs, this.#skewMs);
    if (!followed.isJudgedFrom(fromMs)) return undefined;
    const capacity = Math.min(followed.limit.capacity, capacityMilli);
    if (amountMilli > capacity) return -1;
    const asked = this.#asked.get(`${process} ${id}`) ?? 0;
    const queued = this.#queued.get(`${process} ${id}`) ?? 0;
    // A full bucket refuses no call but for the sake of waiters, or by a clock that is behind that
    // of its last write.
    const needed = Math.max(
      amountMilli + queued,
      Math.min(capacity, amountMilli + asked + this.#slackMilli(followed)),
      amountMilli + this.#behindMilli(followed, fromMs),
    );
    return Math.floor(Math.min(capacity, followed.least(fromMs, nowMs)) - needed);
  }

  /** Returns what accrues in one round trip, and in the time by which clocks differ. */
  #slackMilli({ limit }: Followed): number {
    const slackMs = ROUND_TRIP_MS + this.#skewMs;
    return ROUNDING_MILLI + (slackMs * limit.refill) / limit.period;
  }

  /** Returns what a full bucket lacks by a clock that is behind the clock of its last write. */
  #behindMilli({ limit, history }: Followed, fromMs: number): number {
    if (this.#skewMs === 0 || !history.hasChangedSince(fromMs)) return 0;
    return Math.ceil((this.#skewMs * limit.refill) / limit.period);
  }

  #follow(
    { before, merged }: BucketLanding,
    after: ShardImage,
    limit: LimitOfShard,
    nowMs: number,
  ): void {
    const id = `${after.bucket} ${limit.name}`;
    const replaces = this.#followed.has(id);
    if (!replaces || (before === undefined && after.shard === 0)) {
      this.#followed.set(id, new Followed(limit, nowMs, replaces));
    }
    const followed = this.#followed.get(id);
    const isAnnounced = before !== undefined && isAnnouncement(before, after);
    const isJudged = limit.windows === undefined && followed?.hasRateOf(limit) !== false;
    if (isAnnounced || !isJudged) this.#followed.set(id, undefined);
    else followed?.show(limit, after, merged, this.#skewMs);
  }

  #forget(before: ShardImage | undefined): void {
    for (const { name } of before?.limits ?? []) {
      this.#followed.set(`${before?.bucket} ${name}`, undefined);
    }
  }
}

function count(
  sums: Map<string, number>,
  process: number,
  wanted: readonly Wanted[],
  sign: 1 | -1,
): void {
  for (const { bucket, limitName, amountMilli } of wanted) {
    const id = `${process} ${bucket} ${limitName}`;
    sums.set(id, (sums.get(id) ?? 0) + sign * amountMilli);
  }
}

/** Returns the level of a shard as a function of time. A full shard gains nothing. */
function levelOf(limit: LimitOfShard, { shard, count, epochMs }: ShardImage) {
  const { capacity, refill, period } = shareRate(limit, shard, count);
  const [most, perMs] = [Number(capacity), Number(refill) / Number(period)];
  return (nowMs: number) => Math.min(most, Number(limit.tokens) + (nowMs - epochMs) * perMs);
}

function sumOf(levels: Iterable<(nowMs: number) => number>, nowMs: number): number {
  let sum = 0;
  for (const level of levels) sum += level(nowMs);
  return sum;
}
