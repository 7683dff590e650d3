/**
 * The port by which buckets are moved to another store: each one whole, however it is kept.
 *
 * `NamespaceCopy` is the only caller, for a namespace that its limiters do not use meanwhile:
 *
 * 1. It counts the usage that is still in the buckets of the source (`UncountedUsage`), then lists
 *    them with `all`, at the same time in each pass.
 * 2. It reads the same names from the target with `some`, and calls `put` with those that differ.
 * 3. It lists the target, and calls `remove` with the names that the source does not have.
 */

import { type Level, type Rate, refill } from "../core/bucket.ts";
import type { BucketName } from "../records/keys.ts";
import type { Value } from "../storage/item.ts";
import { sameRate } from "./config-match.ts";
import { type LimitSource, type Link, sameLink } from "./leg.ts";
import { allowanceOf, levelIn, type PeriodLevel } from "./periods.ts";

/** The state of one limit, whole: whatever a kind of limit keeps is in here. */
export interface WholeLimit {
  readonly name: string;
  readonly rate: Rate;
  readonly level: Level;
  /** The period of a quota or a session, with its balance; absent where tokens accrue. */
  readonly period?: PeriodLevel | undefined;
  /** Milli-tokens, all of them in the snapshots of usage. */
  readonly consumedMilli: number | bigint;
}

/** A limit with periods that waits for its period to end: it was removed, or has another kind. */
export interface WholePause {
  readonly name: string;
  readonly rate: Rate;
  readonly period: PeriodLevel;
}

/** A bucket, its shards joined. */
export interface WholeBucket extends BucketName {
  readonly version: number;
  readonly source: LimitSource;
  readonly link: Link;
  /** Epoch seconds; `undefined`: it stays. */
  readonly ttl: number | undefined;
  /** In the order of their names. */
  readonly limits: readonly WholeLimit[];
  /** Only limits whose period is not over at the time of the copy, in the order of their names. */
  readonly paused?: readonly WholePause[] | undefined;
  /** Stamps of the Python library, which only a table on DynamoDB keeps. */
  readonly stamps?: Readonly<Record<string, Value>> | undefined;
  /** Names of limits that only the Python library enforces: they stay behind. */
  readonly unsupported?: readonly string[] | undefined;
}

export interface BucketTransfer {
  /** Lists the buckets that have not expired at a time. Shards are joined as of that time. */
  all(atMs: number): AsyncIterable<WholeBucket>;
  /** Returns buckets in the order of their names; `undefined` where there is none. */
  some(names: readonly BucketName[], atMs: number): Promise<(WholeBucket | undefined)[]>;
  /** Writes buckets, whatever is there. None of it counts as usage. */
  put(buckets: readonly WholeBucket[]): Promise<void>;
  remove(names: readonly BucketName[]): Promise<void>;
}

/** Returns the level that a limit has at a later base time, so that limits can share one. */
export function levelAtBase(limit: WholeLimit, baseMs: number): Level {
  const { level, rate } = limit;
  const refilledAtMs = Math.max(baseMs, level.refilledAtMs);
  const period = periodAtBase(limit, refilledAtMs);
  if (period === undefined) return refill(level, rate, refilledAtMs);
  return { tokensMilli: period.tokensMilli, refilledAtMs, remainder: 0 };
}

/** Returns the period of a limit at a base time, which opens a quota that is due. */
export function periodAtBase(
  { rate, period }: WholeLimit,
  baseMs: number,
): PeriodLevel | undefined {
  if (period === undefined || rate.rule?.kind !== "quota") return period;
  return levelIn(period, allowanceOf(rate), baseMs);
}

/** Returns the time of the newest level of a bucket. */
export function baseOf({ limits }: WholeBucket): number {
  return Math.max(0, ...limits.map(({ level }) => level.refilledAtMs));
}

/** Whether two buckets behave alike from now on: stores keep the same level at different times. */
export function areAlike(one: WholeBucket, other: WholeBucket): boolean {
  return (
    one.version === other.version &&
    one.source === other.source &&
    one.ttl === other.ttl &&
    sameLink(one.link, other.link) &&
    one.limits.length === other.limits.length &&
    one.limits.every((limit, at) => isAlike(limit, other.limits[at] as WholeLimit)) &&
    samePaused(one.paused ?? [], other.paused ?? [])
  );
}

function samePaused(some: readonly WholePause[], others: readonly WholePause[]): boolean {
  return (
    some.length === others.length &&
    some.every(({ name, rate, period }, at) => {
      const other = others[at] as WholePause;
      return name === other.name && sameRate(rate, other.rate) && samePeriod(period, other.period);
    })
  );
}

function isAlike(one: WholeLimit, other: WholeLimit): boolean {
  if (one.name !== other.name || !sameRate(one.rate, other.rate)) return false;
  if (BigInt(one.consumedMilli) !== BigInt(other.consumedMilli)) return false;
  const baseMs = Math.max(one.level.refilledAtMs, other.level.refilledAtMs);
  if (!samePeriod(periodAtBase(one, baseMs), periodAtBase(other, baseMs))) return false;
  const [left, right] = [levelAtBase(one, baseMs), levelAtBase(other, baseMs)];
  return left.tokensMilli === right.tokensMilli && left.remainder === right.remainder;
}

function samePeriod(one: PeriodLevel | undefined, other: PeriodLevel | undefined): boolean {
  return (
    one?.endMs === other?.endMs &&
    one?.grantedMilli === other?.grantedMilli &&
    one?.leftMilli === other?.leftMilli
  );
}

/** Sorts limits by their names, so that two stores list them alike. */
export function inOrder<Limit extends { readonly name: string }>(
  limits: Iterable<Limit>,
): readonly Limit[] {
  return [...limits].sort((one, other) => (one.name < other.name ? -1 : 1));
}
