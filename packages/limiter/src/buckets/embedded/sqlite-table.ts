/** The buckets of one namespace in a SQLite file: one packed row each. */

import { boundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/time.ts";
import { DamagedRecordError } from "../../domain/errors/errors.ts";
import type { SqliteDatabase } from "../../storage/sqlite/database.ts";
import type { AdjustedBucket, FastRequest } from "../fast-path.ts";
import type { Link } from "../leg.ts";
import { decodeRow, encodeRow } from "./bucket-row.ts";
import type { BucketRow, BucketTable } from "./bucket-table.ts";
import { CachedRow } from "./cached-row.ts";
import { CombinedChanges } from "./combined-changes.ts";
import type { EmbeddedBucket } from "./embedded-bucket.ts";
import type { FastConsume } from "./fast-consume.ts";
import type { FastTable } from "./fast-table.ts";
import { type FastConfig, PackedBucket } from "./packed-bucket.ts";
import type { StepItems } from "./row-operation.ts";
import { SharedBuilds } from "./shared-builds.ts";
import { SweepClock } from "./sweep-clock.ts";
import { type CountUsage, type PendingUsage, pendingUsage } from "./usage-tally.ts";

const PAGE = 500;
/** Expired rows are looked for once in so many writes, and so many are dropped at once. */
const WRITES_PER_SWEEP = 64;
const SWEPT = 128;
const CONSUMES_PER_SWEEP = 1024;
const CACHED_MAX = 20_000;

const SQL = {
  get: "SELECT state, ttl FROM buckets WHERE namespace = ? AND entity = ? AND resource = ?",
  set: `INSERT INTO buckets (namespace, entity, resource, state, ttl) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (namespace, entity, resource) DO UPDATE SET state = excluded.state, ttl = excluded.ttl`,
  // Leaves the index on ttl alone, which most writes do not change.
  setState: "UPDATE buckets SET state = ? WHERE namespace = ? AND entity = ? AND resource = ?",
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

const CORRECTED = { granted: true } as const;

export class SqliteBucketTable implements BucketTable, FastTable {
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
  /** A write of this turn of the event loop was made already: others share a transaction. */
  #isTurn = false;
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
      forget: ({ entityId, resource }) => this.#cached.delete(nameOf(entityId, resource)),
    });
  }

  get(entityId: string, resource: string): EmbeddedBucket | undefined {
    const row = this.#database.prepare(SQL.get).get(this.namespaceId, entityId, resource);
    return row === undefined ? undefined : bucketOf(row, nameOf(entityId, resource));
  }

  /**
   * One statement, where the row is as it was last seen, whatever other processes write. Further
   * consumes of the same turn, and those that find the file busy, share a transaction.
   */
  consume(
    request: FastRequest,
    generation: number,
    ignoresMissing: boolean,
  ): FastConsume | Promise<FastConsume | undefined> | undefined {
    const { entityId, resource, limits } = request;
    const row = this.#cached.get(nameOf(entityId, resource));
    if (row === undefined || this.#isSweepDue()) return undefined;
    const { bucket } = row;
    // Several rows need a transaction.
    if (bucket.cascades || !bucket.isFastFor(limits, generation)) return undefined;
    const outcome = bucket.consume(request, ignoresMissing, this.#clock());
    if (outcome === undefined) return undefined;
    if (this.#isTurn || !this.#combined.isEmpty) return this.#combined.add(row, outcome);
    this.#beginTurn();
    const after = outcome.granted ? bucket.text() : undefined;
    const isWritten = this.#writeAlone(row, after);
    if (isWritten === undefined) return this.#combined.add(row, outcome);
    if (isWritten) {
      row.text = after ?? row.text;
      return outcome;
    }
    // The bucket has a consume that was not written, or is not what the file has.
    this.#cached.delete(nameOf(entityId, resource));
    return undefined;
  }

  async adjustShared(
    { entityId, resource, config }: AdjustedBucket,
    deltasMilli: readonly number[],
    acquires: number,
  ): Promise<boolean> {
    const row = this.#cached.get(nameOf(entityId, resource));
    if (row === undefined) return false;
    if (!row.bucket.adjust(config.limits, deltasMilli, acquires, this.#clock())) return false;
    return (await this.#combined.add(row, CORRECTED)) !== undefined;
  }

  #beginTurn(): void {
    this.#isTurn = true;
    queueMicrotask(this.#endTurn);
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
      // The slow path meets the same error, and tells it.
      return false;
    }
  }

  /** In the transaction of several rows. */
  #writeCombined(row: CachedRow, before: string, after: string | undefined): boolean {
    const id = [this.namespaceId, row.entityId, row.resource] as const;
    if (after === undefined) return this.#database.prepare(SQL.get).get(...id)?.state === before;
    return this.#database.change(SQL.swap, after, ...id, before) === 1;
  }

  /** One statement, as a consume; an adjustment that can share one does, see `adjustShared`. */
  adjust(
    { entityId, resource, config }: AdjustedBucket,
    deltasMilli: readonly number[],
    acquires: number,
  ): boolean {
    const name = nameOf(entityId, resource);
    const row = this.#cached.get(name);
    if (row === undefined || this.#isTurn || !this.#combined.isEmpty) return false;
    if (!row.bucket.adjust(config.limits, deltasMilli, acquires, this.#clock())) return false;
    this.#beginTurn();
    const after = row.bucket.text();
    const isWritten = this.#writeAlone(row, after) === true;
    if (isWritten) row.text = after;
    // The bucket has an adjustment that was not written, or is not what the file has.
    else this.#cached.delete(name);
    return isWritten;
  }

  remember(entityId: string, resource: string, fast: FastConfig, untilMs: number): void {
    const row = this.#cached.get(nameOf(entityId, resource));
    if (row !== undefined) this.#builds.remember(row.bucket, fast, untilMs);
  }

  set(entityId: string, resource: string, bucket: EmbeddedBucket): void {
    const key = [this.namespaceId, entityId, resource] as const;
    const ttl = bucket.ttl ?? null;
    const text = encodeRow(bucket);
    if (bucket.stored !== undefined && bucket.stored.ttl === bucket.ttl) {
      this.#database.prepare(SQL.setState).run(text, ...key);
    } else {
      this.#database.prepare(SQL.set).run(...key, text, ttl);
    }
    this.#see(entityId, resource, bucket, text);
    this.#writes += 1;
    if (this.#writes % WRITES_PER_SWEEP === 0) this.#sweep();
  }

  ofEntity(entityId: string): readonly BucketRow[] {
    return this.#database
      .prepare(SQL.ofEntity)
      .all(this.namespaceId, entityId)
      .flatMap((row) => listedRow(row, entityId, String(row.resource)));
  }

  ofResource(resource: string, after: string | undefined): readonly BucketRow[] {
    return this.#database
      .prepare(SQL.ofResource)
      .all(this.namespaceId, resource, after ?? "")
      .flatMap((row) => listedRow(row, String(row.entity), resource));
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

  step<T>(work: () => T, timeoutMs: number | undefined): Promise<T> {
    return this.#database.write(work, timeoutMs);
  }

  peek<T>(work: () => T, timeoutMs: number | undefined): Promise<T> {
    return this.#database.snapshot(work, timeoutMs);
  }

  #see(entityId: string, resource: string, bucket: EmbeddedBucket, text: string): void {
    const name = nameOf(entityId, resource);
    const row = this.#cached.get(name);
    const build = this.#builds.of(bucket, row?.bucket.build);
    if (row === undefined) {
      const packed = new PackedBucket(bucket, build);
      this.#cached.set(name, new CachedRow(entityId, resource, packed, text));
    } else {
      row.replace(bucket, build, text);
    }
  }

  /** The fast path sweeps nothing; now and then a consume takes the slow path, which does. */
  #isSweepDue(): boolean {
    this.#consumes += 1;
    if (this.#consumes % CONSUMES_PER_SWEEP !== 0) return false;
    this.#writes = WRITES_PER_SWEEP - 1;
    return true;
  }

  /** Drops buckets whose time is over, in whichever namespace, once their usage is counted. */
  #sweep(): void {
    const nowMs = this.#sweepClock.nowMs();
    if (nowMs === undefined) return;
    const rows = this.#database.prepare(SQL.expired).all(Math.floor(nowMs / 1000));
    for (const row of rows) {
      const namespaceId = String(row.namespace);
      const entityId = String(row.entity);
      const resource = String(row.resource);
      const [listed] = listedRow(row, entityId, resource);
      const usage = listed === undefined ? undefined : pendingUsage(listed.bucket);
      if (usage !== undefined) this.#countUsage({ namespaceId, entityId, resource }, usage);
      this.#database.prepare(SQL.delete).run(namespaceId, entityId, resource);
    }
  }
}

/** One row of a list; none where it is damaged, so that it does not hide all others. */
function listedRow(
  row: Readonly<Record<string, unknown>>,
  entityId: string,
  resource: string,
): BucketRow[] {
  try {
    return [{ entityId, resource, bucket: bucketOf(row, nameOf(entityId, resource)) }];
  } catch (error) {
    if (!(error instanceof DamagedRecordError)) throw error;
    return [];
  }
}

/** Resources have no line breaks, so names cannot be mistaken for each other. */
function nameOf(entityId: string, resource: string): string {
  return `${resource}\n${entityId}`;
}

function bucketOf(row: Readonly<Record<string, unknown>>, name: string): EmbeddedBucket {
  const where = `the bucket ${name.replace("\n", " ")}`;
  return decodeRow(String(row.state), typeof row.ttl === "number" ? row.ttl : null, where);
}
