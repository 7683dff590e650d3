/** The buckets of one namespace in a SQLite file: one packed row each. */

import type { Clock } from "../../domain/clock.ts";
import type { SqliteDatabase } from "../../storage/sqlite/database.ts";
import type { Link } from "../bucket-store.ts";
import { decodeRow, encodeRow } from "./bucket-row.ts";
import type { BucketRow, BucketTable } from "./bucket-table.ts";
import type { EmbeddedBucket } from "./embedded-bucket.ts";

const PAGE = 500;
/** Expired rows are looked for once in so many writes, and so many are dropped at once. */
const WRITES_PER_SWEEP = 64;
const SWEPT = 128;

const SQL = {
  get: "SELECT state, ttl FROM buckets WHERE namespace = ? AND entity = ? AND resource = ?",
  set: `INSERT INTO buckets (namespace, entity, resource, state, ttl) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (namespace, entity, resource) DO UPDATE SET state = excluded.state, ttl = excluded.ttl`,
  // Leaves the index on ttl alone, which most writes do not change.
  setState: "UPDATE buckets SET state = ? WHERE namespace = ? AND entity = ? AND resource = ?",
  delete: "DELETE FROM buckets WHERE namespace = ? AND entity = ? AND resource = ?",
  clear: "DELETE FROM buckets WHERE namespace = ?",
  ofEntity: `SELECT resource, state, ttl FROM buckets
    WHERE namespace = ? AND entity = ? ORDER BY resource`,
  ofResource: `SELECT entity, state, ttl FROM buckets
    WHERE namespace = ? AND resource = ? AND entity > ? ORDER BY entity LIMIT ${PAGE}`,
  sweep: `DELETE FROM buckets WHERE (namespace, entity, resource) IN (
    SELECT namespace, entity, resource FROM buckets WHERE ttl <= ? LIMIT ${SWEPT})`,
} as const;

export class SqliteBucketTable implements BucketTable {
  readonly recordedLink: (entityId: string) => Link;
  readonly #database: SqliteDatabase;
  readonly #namespaceId: string;
  readonly #clock: Clock;
  #writes = 0;

  constructor(options: {
    database: SqliteDatabase;
    namespaceId: string;
    clock: Clock;
    recordedLink: (entityId: string) => Link;
  }) {
    this.#database = options.database;
    this.#namespaceId = options.namespaceId;
    this.#clock = options.clock;
    this.recordedLink = options.recordedLink;
  }

  get(entityId: string, resource: string): EmbeddedBucket | undefined {
    const row = this.#database.prepare(SQL.get).get(this.#namespaceId, entityId, resource);
    return row === undefined ? undefined : bucketOf(row);
  }

  set(entityId: string, resource: string, bucket: EmbeddedBucket): void {
    const key = [this.#namespaceId, entityId, resource] as const;
    const ttl = bucket.ttl ?? null;
    if (bucket.stored !== undefined && bucket.stored.ttl === bucket.ttl) {
      this.#database.prepare(SQL.setState).run(encodeRow(bucket), ...key);
    } else {
      this.#database.prepare(SQL.set).run(...key, encodeRow(bucket), ttl);
    }
    this.#writes += 1;
    if (this.#writes % WRITES_PER_SWEEP === 0) {
      this.#database.prepare(SQL.sweep).run(Math.floor(this.#clock() / 1000));
    }
  }

  ofEntity(entityId: string): readonly BucketRow[] {
    return this.#database
      .prepare(SQL.ofEntity)
      .all(this.#namespaceId, entityId)
      .map((row) => ({ entityId, resource: String(row.resource), bucket: bucketOf(row) }));
  }

  ofResource(resource: string, after: string | undefined): readonly BucketRow[] {
    return this.#database
      .prepare(SQL.ofResource)
      .all(this.#namespaceId, resource, after ?? "")
      .map((row) => ({ entityId: String(row.entity), resource, bucket: bucketOf(row) }));
  }

  delete(entityId: string, resource: string): void {
    this.#database.prepare(SQL.delete).run(this.#namespaceId, entityId, resource);
  }

  clear(): void {
    this.#database.prepare(SQL.clear).run(this.#namespaceId);
  }

  step<T>(work: () => T, timeoutMs: number | undefined): Promise<T> {
    return this.#database.write(work, timeoutMs);
  }

  peek<T>(work: () => T, timeoutMs: number | undefined): Promise<T> {
    return this.#database.snapshot(work, timeoutMs);
  }
}

function bucketOf(row: Readonly<Record<string, unknown>>): EmbeddedBucket {
  return decodeRow(String(row.state), typeof row.ttl === "number" ? row.ttl : null);
}
