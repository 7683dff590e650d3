/**
 * The buckets of one namespace as items of a step table, which may be behind a network. A row is an
 * item with the text that SQLite has in a column; it is not logged, and has no `ttl` of the store:
 * its usage is counted before it goes.
 */

import type { Clock } from "../../base/time.ts";
import { hasSlots } from "../../core/bucket.ts";
import { WINDOW_TYPES, windowStartMs } from "../../core/windows.ts";
import { invariant } from "../../domain/check.ts";
import { DamagedRecordError } from "../../domain/errors/errors.ts";
import { periodKey } from "../../records/usage/period-item.ts";
import { usageKey } from "../../records/usage/usage-item.ts";
import { applyChange } from "../../storage/evaluate.ts";
import { type Item, type Key, keyOf, type Value } from "../../storage/item.ts";
import type { PageRange } from "../../storage/item-table.ts";
import { halfOpenRange } from "../../storage/sort-range.ts";
import type { ListedRows, StepOptions, StepTable } from "../../storage/step-table.ts";
import { WARM_ROW, type WarmRow } from "../../storage/warm-buckets.ts";
import type { Link } from "../leg.ts";
import type { Bucket } from "./bucket.ts";
import { decodeRow, encodeRow } from "./bucket-row.ts";
import type { BucketId, BucketRow, BucketTable } from "./bucket-table.ts";
import type { StepItems } from "./row-operation.ts";
import { SweepClock } from "./sweep-clock.ts";
import {
  type CountUsage,
  hasCounts,
  type PendingUsage,
  type SnapshotItems,
  type StepEvents,
} from "./usage-book.ts";
import { applyWarmRow, warmRowOf } from "./warm-row.ts";

/** Rows of a list that are read together, and then compared together. */
const PAGE = 25;
/** Keys that are listed at once. */
const KEYS = 1000;
/** Resources that are listed at once; each is a request. */
const RESOURCES = 20;
/** Expired rows are removed once in this many steps, at most `SWEPT` at once. */
const STEPS_PER_SWEEP = 64;
const SWEPT = 64;
/** Expired rows of which slots are held are visited again after this time. */
const HELD_SECONDS = 3600;
/** Digits of an epoch second as text that sorts. */
const SECOND_DIGITS = 12;

/** The rows of the step that is running; a step is synchronous, so there is one at a time. */
export class RunningStep implements StepEvents {
  #rows: ListedRows | undefined;
  readonly #onRun: (() => void)[] = [];
  readonly #onDone: (() => void)[] = [];

  get rows(): ListedRows {
    invariant(this.#rows !== undefined, "rows are read outside of a step");
    return this.#rows;
  }

  onRun(listener: () => void): void {
    this.#onRun.push(listener);
  }

  onDone(listener: () => void): void {
    this.#onDone.push(listener);
  }

  /** Runs a step, as often as it must run. */
  async step<Result>(
    steps: StepTable<ListedRows>,
    work: () => Result,
    options: StepOptions<Result>,
  ): Promise<Result> {
    const result = await steps.step((rows) => this.during(rows, work), options);
    for (const listener of this.#onDone) listener();
    return result;
  }

  during<Result>(rows: ListedRows, work: () => Result): Result {
    for (const listener of this.#onRun) listener();
    this.#rows = rows;
    try {
      return work();
    } finally {
      this.#rows = undefined;
    }
  }
}

/** Returns the snapshots of usage among the items of a step table. */
export function stepSnapshots(running: RunningStep): SnapshotItems {
  const read = (key: Key, along?: readonly Key[]) => running.rows.get(key, along);
  return {
    read,
    update: (key, change) => running.rows.set(key, applyChange(key, read(key), change)),
    remove: (key) => running.rows.set(key, undefined),
    count: ({ partition, prefix }) => {
      const range = rangeIn("GSI2", partition, {
        ...halfOpenRange({ beginsWith: prefix }),
        limit: KEYS,
      });
      return everyPage(running, range).length;
    },
  };
}

export interface StepBucketsOptions {
  readonly steps: StepTable<ListedRows>;
  readonly running: RunningStep;
  readonly namespaceId: string;
  readonly clock: Clock;
  readonly items: StepItems;
  readonly countUsage: CountUsage;
  readonly recordedLink: (entityId: string) => Link;
  readonly wasDeleted: (entityId: string) => boolean;
  /** Rows that a bucket is created by; absent where most steps find their buckets. */
  readonly recordKeys?: ((entityId: string) => readonly Key[]) | undefined;
  /** The multiplier by which times to live are kept, for a server that decides warm calls. */
  readonly warmTtlMultiplier?: number | undefined;
}

export class StepBuckets implements BucketTable {
  readonly namespaceId: string;
  readonly items: StepItems;
  readonly recordedLink: (entityId: string) => Link;
  readonly wasDeleted: (entityId: string) => boolean;
  readonly #steps: StepTable<ListedRows>;
  readonly #running: RunningStep;
  readonly #countUsage: CountUsage;
  readonly #clock: Clock;
  readonly #sweepClock: SweepClock;
  readonly #recordKeys: StepBucketsOptions["recordKeys"];
  readonly #warmTtlMultiplier: number | undefined;
  #stepCount = 0;

  constructor(options: StepBucketsOptions) {
    this.namespaceId = options.namespaceId;
    this.items = options.items;
    this.recordedLink = options.recordedLink;
    this.wasDeleted = options.wasDeleted;
    this.#steps = options.steps;
    this.#running = options.running;
    this.#countUsage = options.countUsage;
    this.#clock = options.clock;
    this.#sweepClock = new SweepClock(options.clock);
    this.#recordKeys = options.recordKeys;
    this.#warmTtlMultiplier = options.warmTtlMultiplier;
  }

  get(entityId: string, resource: string): Bucket | undefined {
    const item = this.#running.rows.get(this.#keyOf(entityId, resource));
    return item === undefined ? undefined : bucketOf(item);
  }

  set(entityId: string, resource: string, bucket: Bucket): void {
    const key = this.#keyOf(entityId, resource);
    const { ttl } = bucket;
    const item: Item = {
      ...key,
      entity_id: entityId,
      resource,
      state: encodeRow(bucket),
      GSI2PK: this.#resourcePartition(resource),
      GSI2SK: entityId,
      GSI3PK: this.#allPartition,
      GSI3SK: resource,
      ...(ttl === undefined
        ? {}
        : { expires: ttl, GSI1PK: this.#expiringPartition, GSI1SK: secondText(ttl) }),
      ...(this.#warmTtlMultiplier === undefined
        ? {}
        : { [WARM_ROW]: warmRowOf(bucket, this.#warmTtlMultiplier) as unknown as Value }),
    };
    this.#running.rows.setUnlogged(key, item, bucket.build.rates.some(hasSlots));
  }

  delete(entityId: string, resource: string): void {
    this.#running.rows.setUnlogged(this.#keyOf(entityId, resource), undefined);
  }

  deleteEntity(entityId: string): void {
    const keys = everyPage(this.#running, this.#entityRange(entityId, KEYS)).map(keyOf);
    const [first, ...along] = keys;
    if (first !== undefined) this.#running.rows.get(first, along);
    for (const key of keys) this.#running.rows.setUnlogged(key, undefined);
  }

  clear(): boolean {
    const { rows } = this.#running;
    const range = rangeIn("GSI3", this.#allPartition, { limit: PAGE });
    for (const item of rows.page(range)) rows.setUnlogged(keyOf(item), undefined);
    return rows.keys(range).length === PAGE;
  }

  ofEntity(entityId: string, counts = false): readonly BucketRow[] {
    const rows: BucketRow[] = [];
    for (let after: Item | undefined; ; ) {
      const range = { ...this.#entityRange(entityId, PAGE), after };
      rows.push(...this.#listed(range, counts));
      const keys = this.#running.rows.keys(range);
      if (keys.length < PAGE) return rows;
      after = placeOf(keys.at(-1));
    }
  }

  /** Skips pages on which no row can be read: the caller takes an empty page for the last one. */
  ofResource(resource: string, after: string | undefined, counts = false): readonly BucketRow[] {
    const partition = this.#resourcePartition(resource);
    const key = after === undefined ? undefined : this.#keyOf(after, resource);
    let last = key && { ...key, GSI2PK: partition, GSI2SK: after as string };
    for (;;) {
      const range = rangeIn("GSI2", partition, { after: last, limit: PAGE });
      const rows = this.#listed(range, counts);
      const keys = this.#running.rows.keys(range);
      if (rows.length > 0 || keys.length < PAGE) return rows;
      last = placeOf(keys.at(-1)) as typeof last;
    }
  }

  /** Goes from one resource to the next in the index, however many buckets each has. */
  resources(after: string | undefined): readonly string[] {
    const found: string[] = [];
    for (let last = after; found.length < RESOURCES; last = found.at(-1)) {
      const from = last === undefined ? undefined : `${last}\u0001`;
      const range = rangeIn("GSI3", this.#allPartition, { from, limit: 1 });
      const [next] = this.#running.rows.keys(range);
      if (next === undefined) return found;
      found.push(String(next["GSI3SK"]));
    }
    return found;
  }

  countUsage(entityId: string, resource: string, usage: PendingUsage): void {
    const subject = { namespaceId: this.namespaceId, entityId, resource };
    const [first, ...along] = usageKeys(subject, usage);
    if (first !== undefined) this.#running.rows.get(first, along);
    this.#countUsage(subject, usage);
  }

  async step<T>(
    work: () => T,
    timeoutMs: number | undefined,
    first: readonly BucketId[] = [],
    token?: string,
  ): Promise<T> {
    const once =
      token === undefined ? undefined : { token, repeated: undefined as T, mayFail: false };
    const options = { timeoutMs, once, ...this.#rowsOf(first) };
    const result = await this.#running.step(this.#steps, work, options);
    this.#stepCount += 1;
    // Not awaited: the step is done, and neither the time nor an error of a sweep is its caller's.
    if (this.#stepCount % STEPS_PER_SWEEP === 0) void this.#sweep().catch(() => undefined);
    return result;
  }

  peek<T>(
    work: () => T,
    timeoutMs: number | undefined,
    first: readonly BucketId[] = [],
  ): Promise<T> {
    const options = { timeoutMs, ...this.#rowsOf(first) };
    return this.#steps.peek((rows) => this.#running.during(rows, work), options);
  }

  /** Returns the rows of buckets, and the records that they would be created by. */
  #rowsOf(first: readonly BucketId[]): Required<Pick<StepOptions<unknown>, "keys" | "along">> {
    const recordKeys = this.#recordKeys ?? (() => []);
    return {
      keys: first.map((bucket) => this.keyOf(bucket)),
      along: first.flatMap(({ entityId }) => recordKeys(entityId)),
    };
  }

  /** Removes buckets whose time is over, once their usage is counted. */
  async #sweep(): Promise<void> {
    const nowMs = this.#sweepClock.nowMs();
    if (nowMs === undefined) return;
    const nowSeconds = Math.floor(nowMs / 1000);
    const place = { before: secondText(nowSeconds + 1), limit: SWEPT };
    const range = rangeIn("GSI1", this.#expiringPartition, place);
    const work = () => {
      for (const item of this.#running.rows.page(range, (row) => this.#usageKeysOf(row, nowMs))) {
        const { expires } = item;
        if (typeof expires !== "number" || expires > nowSeconds) continue;
        const [row] = listedRow(item);
        if (row !== undefined && row.bucket.rare.slots.length > 0) {
          row.bucket.ttl = nowSeconds + HELD_SECONDS;
          this.set(row.entityId, row.resource, row.bucket);
          continue;
        }
        const usage = row?.bucket.lastUsage(nowMs);
        if (row !== undefined && usage !== undefined) {
          this.countUsage(row.entityId, row.resource, usage);
        }
        this.#running.rows.setUnlogged(keyOf(item), undefined);
      }
    };
    await this.#running.step(this.#steps, work, {});
  }

  #listed(range: PageRange, counts: boolean): BucketRow[] {
    const nowMs = counts ? this.#clock() : 0;
    const alongOf = counts ? (item: Item) => this.#usageKeysOf(item, nowMs) : undefined;
    return this.#running.rows.page(range, alongOf).flatMap(listedRow);
  }

  /** Returns the snapshots and statements that a row is counted in, when there is something. */
  #usageKeysOf(item: Item, nowMs: number): readonly Key[] {
    const [row] = listedRow(item);
    const usage = row?.bucket.lastUsage(nowMs);
    if (row === undefined || usage === undefined) return [];
    const { entityId, resource } = row;
    return usageKeys({ namespaceId: this.namespaceId, entityId, resource }, usage);
  }

  get #allPartition(): string {
    return `${this.namespaceId}/ROWS`;
  }

  get #expiringPartition(): string {
    return `${this.namespaceId}/ROWS#EXPIRING`;
  }

  #resourcePartition(resource: string): string {
    return `${this.namespaceId}/ROWS#RESOURCE#${resource}`;
  }

  #entityRange(entityId: string, limit: number): PageRange {
    return rangeIn(undefined, `${this.namespaceId}/ROW#${entityId}`, { limit });
  }

  /** Returns the key of a bucket's row. */
  keyOf({ entityId, resource }: BucketId): Key {
    return this.#keyOf(entityId, resource);
  }

  #keyOf(entityId: string, resource: string): Key {
    return { PK: `${this.namespaceId}/ROW#${entityId}`, SK: `#ROW#${resource}` };
  }
}

function usageKeys(subject: Parameters<CountUsage>[0], usage: PendingUsage): readonly Key[] {
  const { atMs, closed = [] } = usage;
  const types = hasCounts(usage) ? WINDOW_TYPES : [];
  return [
    ...types.map((type) => usageKey(subject, type, windowStartMs(type, atMs))),
    ...closed.map((period) => periodKey(subject, period)),
  ];
}

/** Returns the keys of a range, page by page. */
function everyPage(running: RunningStep, range: PageRange): readonly Item[] {
  const found: Item[] = [];
  for (let { after } = range; ; ) {
    const page = running.rows.keys({ ...range, after });
    found.push(...page);
    if (page.length < range.limit) return found;
    after = placeOf(page.at(-1));
  }
}

function rangeIn(
  index: PageRange["index"],
  partition: string,
  { from, before, after, limit }: Partial<PageRange> & Pick<PageRange, "limit">,
): PageRange {
  return { index, partition, from, before, descending: false, after, limit };
}

/** Returns the place of an item in the table and in all indexes. */
function placeOf(item: Item | undefined): Item | undefined {
  if (item === undefined) return undefined;
  const names = Object.keys(item).filter((name) => /^(?:GSI\d)?[PS]K$/.test(name));
  return Object.fromEntries(names.map((name) => [name, item[name]])) as unknown as Item;
}

function secondText(seconds: number): string {
  return String(seconds).padStart(SECOND_DIGITS, "0");
}

/** Returns a row of a list, or none where it is damaged, so that it does not hide all others. */
function listedRow(item: Item): BucketRow[] {
  try {
    const bucket = bucketOf(item);
    return [{ entityId: String(item["entity_id"]), resource: String(item["resource"]), bucket }];
  } catch (error) {
    if (!(error instanceof DamagedRecordError)) throw error;
    return [];
  }
}

function bucketOf({ entity_id, resource, state, expires, [WARM_ROW]: warm }: Item): Bucket {
  const where = `the bucket ${String(resource)} ${String(entity_id)}`;
  const bucket = decodeRow(String(state), typeof expires === "number" ? expires : null, where);
  if (warm !== undefined) applyWarmRow(bucket, warm as unknown as WarmRow);
  return bucket;
}
