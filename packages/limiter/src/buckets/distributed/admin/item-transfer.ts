/** Moves whole buckets in and out of bucket items, whose shards it joins. */

import { randomToken } from "../../../base/random.ts";
import type { Deadline } from "../../../base/time.ts";
import { fullLevel, hasSlots, type Rate } from "../../../core/bucket.ts";
import { SCHEDULES } from "../../../domain/schedules.ts";
import { MOVED, type StoredBucket, type StoredLimit } from "../../../records/bucket-item.ts";
import { type BucketName, bucketKey, parseBucketKey } from "../../../records/keys.ts";
import { stamped } from "../../../records/python-attributes.ts";
import { queryRecords } from "../../../records/query-records.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import type { Item } from "../../../storage/item.ts";
import {
  type BucketTransfer,
  baseOf,
  inOrder,
  levelAtBase,
  periodAtBase,
  type WholeBucket,
  type WholeLimit,
  type WholePause,
} from "../../bucket-transfer.ts";
import { kindOf } from "../../config-match.ts";
import type { LimitSource } from "../../leg.ts";
import { allowanceOf, hasPeriods, type PeriodLevel, unusedLevel } from "../../periods.ts";
import { FULL_PYTHON_METER } from "../plan/new-bucket.ts";
import { pausedName, pausedOf, pausedText, resumed } from "../plan/paused-limits.ts";
import { allowanceAt, storedAt, storedFrom, storedLevel } from "../plan/period-plan.ts";
import {
  balanceAt,
  balanceOf,
  decoded,
  encodeShard,
  looksFull,
  type SeenBucket,
  UNSHARDED,
} from "../plan/seen-bucket.ts";
import type { BucketItems } from "../state/bucket-items.ts";
import type { TableTraits } from "../table-traits.ts";

const PAGE = 100;
const STAMP_BYTES = 9;

export interface ItemTransferOptions extends Pick<TableTraits, "isSharedWithPython"> {
  readonly items: BucketItems;
  /** Returns the deadline of a read. */
  readonly deadline: () => Deadline;
}

export class ItemTransfer implements BucketTransfer {
  readonly #context: RecordContext;
  readonly #options: ItemTransferOptions;

  constructor(context: RecordContext, options: ItemTransferOptions) {
    this.#context = context;
    this.#options = options;
  }

  async *all(atMs: number): AsyncGenerator<WholeBucket> {
    let page: BucketName[] = [];
    for await (const name of this.#names()) {
      page.push(name);
      if (page.length < PAGE) continue;
      yield* await this.#found(page, atMs);
      page = [];
    }
    yield* await this.#found(page, atMs);
  }

  async some(names: readonly BucketName[], atMs: number): Promise<(WholeBucket | undefined)[]> {
    const { store, namespaceId } = this.#context;
    const keys = names.map(({ entityId, resource }) =>
      bucketKey(namespaceId, entityId, resource, 0),
    );
    const items = await store.getMany(keys, { consistent: true });
    return Promise.all(items.map((item) => this.#wholeOf(item, atMs)));
  }

  async put(buckets: readonly WholeBucket[]): Promise<void> {
    const moved = randomToken(this.#context.random, STAMP_BYTES);
    const puts = buckets.map((bucket) => ({ ...this.#itemOf(bucket), [MOVED]: moved }));
    if (puts.length > 0) await this.#context.store.writeMany({ puts });
  }

  async remove(names: readonly BucketName[]): Promise<void> {
    const { store, namespaceId } = this.#context;
    const deletes = names.map(({ entityId, resource }) =>
      bucketKey(namespaceId, entityId, resource, 0),
    );
    if (deletes.length > 0) await store.writeMany({ deletes });
  }

  /** Returns the name of each bucket once: its shards follow each other in the index. */
  async *#names(): AsyncGenerator<BucketName> {
    let last: string | undefined;
    for await (const { PK } of queryRecords(this.#context, this.#options.items.allOf())) {
      const place = parseBucketKey(PK);
      const bucket = PK.slice(0, PK.lastIndexOf("#"));
      if (place === undefined || bucket === last) continue;
      last = bucket;
      yield { entityId: place.entityId, resource: place.resource };
    }
  }

  async #found(names: readonly BucketName[], atMs: number): Promise<WholeBucket[]> {
    if (names.length === 0) return [];
    return (await this.some(names, atMs)).filter((bucket) => bucket !== undefined);
  }

  async #wholeOf(item: Item | undefined, atMs: number): Promise<WholeBucket | undefined> {
    const first = decoded(item);
    if (first === undefined || isExpired(first, atMs)) return undefined;
    const { items, deadline } = this.#options;
    return joined(first, await items.shardsOf(first, deadline()), atMs);
  }

  #itemOf(whole: WholeBucket): Item {
    const { entityId, resource, version, source, link, ttl, limits, stamps = {} } = whole;
    const { isSharedWithPython } = this.#options;
    const refilledAtMs = baseOf(whole);
    const bucket = encodeShard(this.#context.namespaceId, {
      entityId,
      resource,
      shard: 0,
      shardCount: 1,
      rebases: 0,
      ...UNSHARDED,
      refilledAtMs,
      cascade: link.cascade,
      parentId: link.parentId,
      ttl,
      configVersion: version,
      configSource: source,
      limits: new Map(limits.map((limit) => [limit.name, storedOf(limit, refilledAtMs)])),
      writes: isSharedWithPython ? FULL_PYTHON_METER : undefined,
      meterMs: undefined,
      python: isSharedWithPython ? stamped(stamps) : undefined,
    });
    return { ...bucket, ...pausedAttributes(whole) };
  }
}

/** Returns a limit as an item has it: all limits of an item share one base time. */
function storedOf(limit: WholeLimit, baseMs: number): StoredLimit {
  const { rate, consumedMilli } = limit;
  const { tokensMilli, remainder } = levelAtBase(limit, baseMs);
  const stored = { tokensMilli, rate, totalConsumedMilli: consumedMilli, remainder };
  const period = periodAtBase(limit, baseMs);
  if (period === undefined) return stored;
  return { ...stored, period: storedFrom(period, allowanceOf(rate)) };
}

/** Returns the attributes of limits that wait for the end of their period. */
function pausedAttributes({ paused = [] }: WholeBucket): Record<string, string> {
  const attributes: Record<string, string> = {};
  for (const { name, rate, period } of paused) {
    const { tokensMilli } = period;
    const known = { tokensMilli, rate, totalConsumedMilli: 0, remainder: 0 };
    const text = pausedText({ ...known, period: storedFrom(period, allowanceOf(rate)) }, 0);
    if (text !== undefined) attributes[pausedName(name, rate)] = text;
  }
  return attributes;
}

/**
 * Joins the shards of a bucket at a time, or at a later base time that one of them has. A bucket of
 * one shard stays at its own base time, and is the same to the last part of a milli-token.
 */
function joined(first: SeenBucket, shards: readonly SeenBucket[], atMs: number): WholeBucket {
  const times = shards.map(({ refilledAtMs }) => refilledAtMs);
  const baseMs = shards.length === 1 ? first.refilledAtMs : Math.max(atMs, ...times);
  const newest = shards.toSorted((one, other) => other.configVersion - one.configVersion);
  const rates = new Map<string, Rate>();
  for (const { limits } of newest.toReversed()) {
    for (const [name, { rate }] of limits) rates.set(name, rate);
  }
  const ttls = shards.map(({ ttl }) => ttl ?? Number.POSITIVE_INFINITY);
  const ttl = Math.max(...ttls);
  const { entityId, resource, cascade, parentId, python } = first;
  return {
    entityId,
    resource,
    version: newest[0]?.configVersion ?? 0,
    source: (newest[0]?.configSource ?? "system") as LimitSource,
    link: { cascade, parentId },
    ttl: ttl === Number.POSITIVE_INFINITY ? undefined : ttl,
    limits: inOrder(
      [...rates].map(([name, rate]) =>
        hasPeriods(rate)
          ? periodLimitOf(shards, name, rate, baseMs)
          : limitOf(shards, name, rate, baseMs),
      ),
    ),
    paused: inOrder(pausesOf(shards, rates, atMs)),
    stamps: python?.stamps,
    unsupported: python === undefined ? undefined : [...python.unsupported.keys()],
  };
}

/**
 * Sums a limit. The balance is that of the shards together, and never more: parts of a milli-token
 * that would be a whole one together stay below it.
 */
function limitOf(
  shards: readonly StoredBucket[],
  name: string,
  rate: Rate,
  baseMs: number,
): WholeLimit {
  // Leases end on the store that they were granted on.
  if (hasSlots(rate)) return { name, rate, level: fullLevel(rate, baseMs), consumedMilli: 0 };
  const now = SCHEDULES.rateAt(rate, baseMs);
  let tokens = 0;
  let parts = 0;
  let consumed = 0n;
  for (const shard of shards) {
    const stored = shard.limits.get(name);
    // A limit that a shard does not have would start full in it.
    const missing = { tokensMilli: now.capacityMilli, rate, totalConsumedMilli: 0, remainder: 0 };
    const balance = balanceAt(shard, stored ?? missing, baseMs);
    tokens += balanceOf(balance);
    parts += looksFull(balance) ? 0 : balance.remainder;
    consumed += BigInt(stored?.totalConsumedMilli ?? 0);
  }
  const tokensMilli = Math.min(now.capacityMilli, tokens);
  const isFull = tokensMilli === now.capacityMilli;
  const remainder = Math.min(Math.floor(parts / shards.length), now.periodMs - 1);
  return {
    name,
    rate,
    level: { tokensMilli, refilledAtMs: baseMs, remainder: isFull ? 0 : remainder },
    consumedMilli: exactly(consumed),
  };
}

/** Sums a limit with periods. A quota is in the same period in all shards; a session has one. */
function periodLimitOf(
  shards: readonly SeenBucket[],
  name: string,
  rate: Rate,
  baseMs: number,
): WholeLimit {
  const period = periodOf(shards, name, rate, baseMs);
  let consumed = 0n;
  for (const { limits } of shards) consumed += BigInt(limits.get(name)?.totalConsumedMilli ?? 0);
  const level = { tokensMilli: period.tokensMilli, refilledAtMs: baseMs, remainder: 0 };
  return { name, rate, level, period, consumedMilli: exactly(consumed) };
}

/** Sums the period of a limit; a shard that has none gets an unused one with its next call. */
function periodOf(
  shards: readonly SeenBucket[],
  name: string,
  rate: Rate,
  atMs: number,
): PeriodLevel {
  const sum = { tokensMilli: 0, endMs: 0, grantedMilli: 0, leftMilli: 0 };
  for (const shard of shards) {
    const stored = shard.limits.get(name);
    const isThere = stored !== undefined && kindOf(stored.rate) === kindOf(rate);
    const known = isThere ? storedLevel(shard, storedAt(shard, stored, atMs)) : undefined;
    const level =
      known ?? pausedLevel(shard, name, rate, atMs) ?? unusedLevel(allowanceAt(shard, rate), atMs);
    sum.tokensMilli += level.tokensMilli;
    sum.grantedMilli += level.grantedMilli;
    sum.leftMilli += level.leftMilli;
    sum.endMs = Math.max(sum.endMs, level.endMs);
  }
  return sum;
}

/** Returns the level that a limit of a shard goes on with, when it comes back. */
function pausedLevel(
  shard: SeenBucket,
  name: string,
  rate: Rate,
  atMs: number,
): PeriodLevel | undefined {
  const paused = pausedOf(shard, name, rate, atMs);
  if (paused === undefined) return undefined;
  return resumed(paused, allowanceAt(shard, paused.rate), allowanceAt(shard, rate), atMs);
}

/** Returns the limits that wait in some shard, and that none has in the same kind. */
function pausesOf(
  shards: readonly SeenBucket[],
  rates: ReadonlyMap<string, Rate>,
  atMs: number,
): WholePause[] {
  const pauses = new Map<string, WholePause>();
  for (const { paused } of shards) {
    for (const [id, { limitName: name, rate, level }] of paused ?? []) {
      const isBack = kindOf(rates.get(name)) === kindOf(rate);
      if (isBack || pauses.has(id) || atMs >= level.endMs) continue;
      pauses.set(id, { name, rate, period: periodOf(shards, name, rate, atMs) });
    }
  }
  return [...pauses.values()];
}

/** Returns a total as a number where that holds it. */
function exactly(total: bigint): number | bigint {
  return Number.isSafeInteger(Number(total)) ? Number(total) : total;
}

function isExpired({ ttl }: StoredBucket, atMs: number): boolean {
  return ttl !== undefined && ttl * 1000 <= atMs;
}
