/** The buckets of one namespace in a SQLite file: one packed row each. */

import { boundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/time.ts";
import { DamagedRecordError } from "../../domain/errors/errors.ts";
import type { SqliteDatabase } from "../../storage/sqlite/database.ts";
import type { PlainRequest } from "../bucket-consumer.ts";
import type { Adjustment, Link } from "../leg.ts";
import type { Bucket } from "./bucket.ts";
import { decodeRow, encodeRow } from "./bucket-row.ts";
import type { BucketRow, OrdinaryTable } from "./bucket-table.ts";
import { SharedBuilds } from "./build.ts";
import { CombinedChanges, type Decided, type RowGroup } from "./combined-changes.ts";
import {
  adjustOne,
  cascades,
  consumeOne,
  isOrdinary,
  type OrdinaryOutcome,
} from "./ordinary-call.ts";
import type { StepItems } from "./row-operation.ts";
import { SweepClock } from "./sweep-clock.ts";
import type { CountUsage, PendingUsage } from "./usage-book.ts";

const PAGE = 500;
/** Expired rows are removed once in this many writes, at most `SWEPT` at once. */
const WRITES_PER_SWEEP = 64;
const SWEPT = 128;
const CONSUMES_PER_SWEEP = 1024;
const CACHED_MAX = 20_000;
/** Expired rows of which slots are held are visited again after this time. */
const HELD_SECONDS = 3600;

const SQL = {
  get: "SELECT state, ttl FROM buckets WHERE namespace = ? AND entity = ? AND resource = ?",
  set: `INSERT INTO buckets (namespace, entity, resource, state, ttl) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (namespace, entity, resource) DO UPDATE SET state = excluded.state, ttl = excluded.ttl`,
  // Leaves the index on ttl alone, which most writes do not change.
  setState: "UPDATE buckets SET state = ? WHERE namespace = ? AND entity = ? AND resource = ?",
  setTtl: "UPDATE buckets SET ttl = ? WHERE namespace = ? AND entity = ? AND resource = ?",
  /** Replaces a row only if it is unchanged since it was read. */
  swap: `UPDATE buckets SET state = ?
    WHERE namespace = ? AND entity = ? AND resource = ? AND state = ?`,
  delete: "DELETE FROM buckets WHERE namespace = ? AND entity = ? AND resource = ?",
  clear: "DELETE FROM buckets WHERE namespace = ?",
  ofEntity: `SELECT resource, state, ttl FROM buckets
    WHERE namespace = ? AND entity = ? ORDER BY resource`,
  ofResource: `SELECT entity, state, ttl FROM buckets
    WHERE namespace = ? AND resource = ? AND entity > ? ORDER BY entity LIMIT ${PAGE}`,
  // Goes from one resource to the next in the index, however many buckets each has.
  nextResource: `SELECT resource FROM buckets
    WHERE namespace = ? AND resource > ? ORDER BY resource LIMIT 1`,
  deleteEntity: "DELETE FROM buckets WHERE namespace = ? AND entity = ?",
  expired: `SELECT namespace, entity, resource, state, ttl FROM buckets
    WHERE ttl <= ? LIMIT ${SWEPT}`,
} as const;

const ADJUSTED = { granted: true } as const;

/** A row of a SQLite file as this process last saw it, and the changes that wait to be written. */
export class CachedRow {
  readonly entityId: string;
  readonly resource: string;
  bucket: Bucket;
  /** The row in the file, unless another process has written it. */
  text: string;
  /** Changes that are in `bucket` and not yet in `text`. */
  group: RowGroup | undefined = undefined;

  constructor(entityId: string, resource: string, bucket: Bucket, text: string) {
    this.entityId = entityId;
    this.resource = resource;
    this.bucket = bucket;
    this.text = text;
  }

  /** Takes over a bucket that the slow path has written. It lacks the changes that wait. */
  replace(bucket: Bucket, text: string): void {
    if (this.group !== undefined) this.group.isVoid = true;
    this.group = undefined;
    this.bucket = bucket;
    this.text = text;
  }
}

export class SqliteBucketTable implements OrdinaryTable {
  readonly isShared = true;
  readonly recordedLink: (entityId: string) => Link;
  readonly wasDeleted: (entityId: string) => boolean;
  readonly #database: SqliteDatabase;
  readonly namespaceId: string;
  readonly items: StepItems;
  readonly #clock: Clock;
  readonly #sweepClock: SweepClock;
  readonly #countUsage: CountUsage;
  readonly #builds = new SharedBuilds();
  /** A hint: each write on the fast path checks that the file still holds the row. */
  readonly #cached = boundedMap<CachedRow>(CACHED_MAX);
  readonly #combined: CombinedChanges;
  #writes = 0;
  #consumes = 0;
  /** The ttl column of rows that were read, so that a write can leave its index alone. */
  readonly #ttls = new WeakMap<Bucket, number | undefined>();
  /** Whether a write of this turn of the event loop was made: further ones share a transaction. */
  #isTurn = false;
  /** Whether changes wait to be written together. */
  #changesWait = false;
  readonly #endTurn = () => {
    this.#isTurn = false;
  };

  constructor(options: {
    database: SqliteDatabase;
    namespaceId: string;
    clock: Clock;
    countUsage: CountUsage;
    recordedLink: (entityId: string) => Link;
    wasDeleted: (entityId: string) => boolean;
    items: StepItems;
  }) {
    this.#database = options.database;
    this.namespaceId = options.namespaceId;
    this.items = options.items;
    this.#clock = options.clock;
    this.#sweepClock = new SweepClock(options.clock);
    this.#countUsage = options.countUsage;
    this.recordedLink = options.recordedLink;
    this.wasDeleted = options.wasDeleted;
    this.#combined = new CombinedChanges({
      database: this.#database,
      write: (row, before, after) => this.#writeCombined(row, before, after),
      forget: (row) => this.#forget(row),
      onWritten: () => {
        this.#changesWait = false;
      },
    });
  }

  get(entityId: string, resource: string): Bucket | undefined {
    const row = this.#database.prepare(SQL.get).get(this.namespaceId, entityId, resource);
    return row === undefined ? undefined : this.#bucketOf(row, nameOf(entityId, resource));
  }

  tryConsume(
    request: PlainRequest,
    generation: number,
    ignoresMissing: boolean,
    totals: boolean,
  ): OrdinaryOutcome | Promise<OrdinaryOutcome | undefined> | undefined {
    const { entityId, resource, limits } = request;
    const row = this.#cached.get(nameOf(entityId, resource));
    if (row === undefined || this.#isSweepDue()) return undefined;
    const nowMs = this.#clock();
    // Several rows need a transaction.
    if (cascades(row.bucket) || !isOrdinary(row.bucket, limits, totals, generation, nowMs)) {
      return undefined;
    }
    const outcome = consumeOne(row.bucket, request, ignoresMissing, nowMs);
    return outcome === undefined ? undefined : this.#write(row, outcome);
  }

  tryAdjust(adjustment: Adjustment): boolean | Promise<boolean> {
    const row = this.#cached.get(nameOf(adjustment.entityId, adjustment.resource));
    if (row === undefined || !adjustOne(row.bucket, adjustment, this.#clock())) return false;
    const written = this.#write(row, ADJUSTED);
    return written instanceof Promise ? written.then(isPresent) : isPresent(written);
  }

  /**
   * Writes a cached row as its bucket is now, in one statement, which checks that the file still
   * has the row that the change was decided by. Further changes of the same turn, and those that
   * find the file busy, share a transaction. `undefined`: not written, the slow path decides.
   */
  #write<Change extends Decided>(
    row: CachedRow,
    change: Change,
  ): Change | Promise<Change | undefined> | undefined {
    if (this.#isTurn || this.#changesWait) return this.#writeTogether(row, change);
    this.#isTurn = true;
    queueMicrotask(this.#endTurn);
    const after = change.granted ? encodeRow(row.bucket) : undefined;
    const isWritten = this.#writeAlone(row, after);
    if (isWritten === undefined) return this.#writeTogether(row, change);
    if (isWritten) {
      row.text = after ?? row.text;
      return change;
    }
    // The cached bucket has a change that was not written, or is not what the file has.
    this.#forget(row);
    return undefined;
  }

  #writeTogether<Change extends Decided>(
    row: CachedRow,
    change: Change,
  ): Promise<Change | undefined> {
    this.#changesWait = true;
    return this.#combined.add(row, change);
  }

  /** Returns whether the row was unchanged and is written; `undefined` when the file is busy. */
  #writeAlone(row: CachedRow, after: string | undefined): boolean | undefined {
    const { entityId, resource, text } = row;
    const id = [this.namespaceId, entityId, resource] as const;
    try {
      if (after === undefined) return this.#database.tryGet(SQL.get, ...id)?.state === text;
      const changes = this.#database.tryRun(SQL.swap, after, ...id, text);
      return typeof changes === "symbol" ? undefined : changes === 1;
    } catch {
      // The slow path gets the same error, and reports it.
      return false;
    }
  }

  /** Writes a row within the transaction of several rows. */
  #writeCombined(row: CachedRow, before: string, after: string | undefined): boolean {
    const id = [this.namespaceId, row.entityId, row.resource] as const;
    if (after === undefined) return this.#database.prepare(SQL.get).get(...id)?.state === before;
    return this.#database.change(SQL.swap, after, ...id, before) === 1;
  }

  #forget({ entityId, resource }: CachedRow): void {
    this.#cached.delete(nameOf(entityId, resource));
  }

  set(entityId: string, resource: string, bucket: Bucket): void {
    const key = [this.namespaceId, entityId, resource] as const;
    const { ttl } = bucket;
    const text = encodeRow(bucket);
    if (this.#ttls.has(bucket) && this.#ttls.get(bucket) === ttl) {
      this.#database.prepare(SQL.setState).run(text, ...key);
    } else {
      this.#database.prepare(SQL.set).run(...key, text, ttl ?? null);
    }
    this.#cache(entityId, resource, bucket, text);
    this.#writes += 1;
  }

  ofEntity(entityId: string): readonly BucketRow[] {
    return this.#database
      .prepare(SQL.ofEntity)
      .all(this.namespaceId, entityId)
      .flatMap((row) => this.#listed(row, entityId, String(row.resource)));
  }

  ofResource(resource: string, after: string | undefined): readonly BucketRow[] {
    return this.#database
      .prepare(SQL.ofResource)
      .all(this.namespaceId, resource, after ?? "")
      .flatMap((row) => this.#listed(row, String(row.entity), resource));
  }

  resources(after: string | undefined): readonly string[] {
    const next = this.#database.prepare(SQL.nextResource);
    const found: string[] = [];
    for (;;) {
      const row = next.get(this.namespaceId, found.at(-1) ?? after ?? "");
      if (row === undefined) return found;
      found.push(String(row.resource));
    }
  }

  delete(entityId: string, resource: string): void {
    this.#database.prepare(SQL.delete).run(this.namespaceId, entityId, resource);
  }

  deleteEntity(entityId: string): void {
    this.#database.prepare(SQL.deleteEntity).run(this.namespaceId, entityId);
  }

  clear(): boolean {
    this.#database.prepare(SQL.clear).run(this.namespaceId);
    return false;
  }

  countUsage(entityId: string, resource: string, usage: PendingUsage): void {
    this.#countUsage({ namespaceId: this.namespaceId, entityId, resource }, usage);
  }

  /** Sweeps after the work, so that no bucket is removed that the step has read. */
  step<T>(work: () => T, timeoutMs: number | undefined): Promise<T> {
    const workAndSweep = () => {
      const result = work();
      if (this.#writes >= WRITES_PER_SWEEP) this.#sweep();
      return result;
    };
    return this.#database.write(workAndSweep, timeoutMs);
  }

  peek<T>(work: () => T, timeoutMs: number | undefined): Promise<T> {
    return this.#database.snapshot(work, timeoutMs);
  }

  #cache(entityId: string, resource: string, bucket: Bucket, text: string): void {
    const name = nameOf(entityId, resource);
    const row = this.#cached.get(name);
    bucket.build = this.#builds.of(bucket.build, row?.bucket.build);
    if (row === undefined) this.#cached.set(name, new CachedRow(entityId, resource, bucket, text));
    else row.replace(bucket, text);
  }

  /** Sends one call in many to the slow path, because only that sweeps. */
  #isSweepDue(): boolean {
    this.#consumes += 1;
    if (this.#consumes % CONSUMES_PER_SWEEP !== 0) return false;
    this.#writes = WRITES_PER_SWEEP;
    return true;
  }

  /** Removes buckets whose time is over, of all namespaces, once their usage is counted. */
  #sweep(): void {
    this.#writes = 0;
    const nowMs = this.#sweepClock.nowMs();
    if (nowMs === undefined) return;
    const rows = this.#database.prepare(SQL.expired).all(Math.floor(nowMs / 1000));
    for (const row of rows) {
      const namespaceId = String(row.namespace);
      const entityId = String(row.entity);
      const resource = String(row.resource);
      const [listed] = this.#listed(row, entityId, resource);
      if (listed !== undefined && listed.bucket.rare.slots.length > 0) {
        const later = Math.floor(nowMs / 1000) + HELD_SECONDS;
        this.#database.prepare(SQL.setTtl).run(later, namespaceId, entityId, resource);
        continue;
      }
      const usage = listed?.bucket.lastUsage(nowMs);
      if (usage !== undefined) this.#countUsage({ namespaceId, entityId, resource }, usage);
      this.#database.prepare(SQL.delete).run(namespaceId, entityId, resource);
    }
  }

  /** Returns one row of a list; none where it is damaged, so that it does not hide all others. */
  #listed(row: StoredRow, entityId: string, resource: string): BucketRow[] {
    try {
      return [{ entityId, resource, bucket: this.#bucketOf(row, nameOf(entityId, resource)) }];
    } catch (error) {
      if (!(error instanceof DamagedRecordError)) throw error;
      return [];
    }
  }

  #bucketOf(row: StoredRow, name: string): Bucket {
    const ttl = typeof row.ttl === "number" ? row.ttl : null;
    const bucket = decodeRow(String(row.state), ttl, `the bucket ${name.replace("\n", " ")}`);
    this.#ttls.set(bucket, bucket.ttl);
    return bucket;
  }
}

type StoredRow = Readonly<Record<string, unknown>>;

/** Names a row of the cache. Resources have no line breaks, so names are unique. */
function nameOf(entityId: string, resource: string): string {
  return `${resource}\n${entityId}`;
}

function isPresent(change: Decided | undefined): boolean {
  return change !== undefined;
}
