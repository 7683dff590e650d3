/**
 * The need of a bucket with several shards in the last hour, kept on its first shard and
 * written along with consumes that happen anyway.
 *
 * `wn` counts the writes to the first shard. `nd` holds the highest level of each of the last seven
 * windows of ten minutes, newest first, and the mark that the next measurement starts from: when
 * ten seconds have passed since the mark, the next write to the first shard measures. Clients
 * spread their consumes evenly, so all shards together take as many writes as the first one, times
 * their number. A window without a record has had no write to the first shard: nothing was needed.
 *
 * Levels double: level 0 is a quarter of what one shard serves, level 2 one shard, level 8 all 64.
 * Two clients that measure at once may overwrite each other: the record decides only when to merge,
 * and the next measurement corrects it.
 */

import { invariant } from "../../../domain/check.ts";
import { NEED, type SeenBucket, WRITES } from "../plan/seen-bucket.ts";
import type { WritePlan } from "../plan/write-plan.ts";

const WINDOW_MS = 600_000;
/** The window that has begun, and the hour before it. */
const WINDOWS = 7;
/** The window that has begun, and the one before: ten minutes at least. */
const RECENT_WINDOWS = 2;
const MEASURE_MS = 10_000;
/** Writes per second of level 0; a shard that takes four times as many is well used. */
const LEVEL_WRITES_PER_SECOND = 125;
const LEVEL_MAX = 9;
const PATTERN = /^(\d{1,12})\.(\d{7})\.(\d{1,16})\.(\d{1,16})$/;

export interface Need {
  /** The number of the newest window, counted from the epoch. */
  readonly window: number;
  /** The highest level of each window, newest first. */
  readonly levels: readonly number[];
  readonly markMs: number;
  /** Value of `wn` at the mark. */
  readonly markWrites: number;
}

/**
 * Returns the need that a first shard has on record; `undefined` where there is none that can be
 * read.
 */
export function needOf({ need }: SeenBucket): Need | undefined {
  const [, window, levels, markMs, markWrites] = PATTERN.exec(need ?? "") ?? [];
  if (levels === undefined) return undefined;
  return {
    window: Number(window),
    levels: [...levels].map(Number),
    markMs: Number(markMs),
    markWrites: Number(markWrites),
  };
}

export function encodeNeed({ window, levels, markMs, markWrites }: Need): string {
  invariant(levels.length === WINDOWS, "a need has a level for each window");
  invariant(
    levels.every((level) => level >= 0 && level <= LEVEL_MAX),
    "a level is a digit",
  );
  return `${window}.${levels.join("")}.${markMs}.${markWrites}`;
}

/** Returns the level at which `count` shards are well used: each takes 500 writes a second. */
export function levelOfShards(count: number): number {
  return Math.log2(count) + 2;
}

function levelOfRate(writesPerSecond: number): number {
  if (writesPerSecond <= LEVEL_WRITES_PER_SECOND) return 0;
  return Math.min(LEVEL_MAX, Math.ceil(Math.log2(writesPerSecond / LEVEL_WRITES_PER_SECOND)));
}

/** Returns the highest level of the last ten minutes, and that of the last hour. */
export function peaksOf(need: Need, nowMs: number): { recent: number; hour: number } {
  const { levels } = rolled(need, nowMs);
  return { recent: Math.max(...levels.slice(0, RECENT_WINDOWS)), hour: Math.max(...levels) };
}

/** Counts a planned write to the first of several shards, and measures when that is due. */
export function countNeed(plan: WritePlan, bucket: SeenBucket, nowMs: number): void {
  if (bucket.shard !== 0 || bucket.shardCount === 1) return;
  plan.add(WRITES, 1);
  const due = measured(bucket, nowMs);
  if (due !== undefined) plan.set(NEED, encodeNeed(due));
}

/** Returns the record after a measurement; `undefined` when none is due. */
function measured(bucket: SeenBucket, nowMs: number): Need | undefined {
  const need = needOf(bucket);
  // Nothing is known of the last hour, so all shards may have been needed.
  if (need === undefined) return begun(bucket, levelOfShards(bucket.shardCount), nowMs);
  const elapsedMs = nowMs - need.markMs;
  if (elapsedMs < MEASURE_MS) return undefined;
  const writes = Math.max(0, bucket.writesCounted - need.markWrites);
  const rate = (writes * bucket.shardCount * 1000) / elapsedMs;
  return { ...raised(need, levelOfRate(rate), nowMs), ...markOf(bucket, nowMs) };
}

/**
 * Returns the record of a first shard that splits: half of the new shards count as needed in this
 * window, so that none are merged before they were measured.
 */
export function needAfterSplit(bucket: SeenBucket, count: number, nowMs: number): string {
  const level = levelOfShards(count) - 1;
  const need = needOf(bucket);
  if (need === undefined) return encodeNeed(begun(bucket, level, nowMs));
  return encodeNeed({ ...raised(need, level, nowMs), ...markOf(bucket, nowMs) });
}

function begun(bucket: SeenBucket, level: number, nowMs: number): Need {
  const levels = Array.from({ length: WINDOWS }, () => level);
  return { window: windowOf(nowMs), levels, ...markOf(bucket, nowMs) };
}

function markOf({ writesCounted }: SeenBucket, nowMs: number) {
  return { markMs: nowMs, markWrites: writesCounted };
}

function raised(need: Need, level: number, nowMs: number): Need {
  const { window, levels, ...mark } = rolled(need, nowMs);
  const [newest = 0, ...older] = levels;
  return { window, levels: [Math.max(newest, level), ...older], ...mark };
}

/** Returns the record now, with windows that began since. A clock that is behind adds none. */
function rolled(need: Need, nowMs: number): Need {
  const since = Math.min(WINDOWS, windowOf(nowMs) - need.window);
  if (since <= 0) return need;
  const levels = [...Array.from({ length: since }, () => 0), ...need.levels].slice(0, WINDOWS);
  return { ...need, window: windowOf(nowMs), levels };
}

function windowOf(nowMs: number): number {
  return Math.floor(nowMs / WINDOW_MS);
}
