/** Items on PostgreSQL: each request is one statement, and a commit is one function. */

import { ValidationError } from "../../domain/errors/errors.ts";
import { decodeItem, encodeItem } from "../attribute-value.ts";
import type { Item, Key } from "../item.ts";
import {
  type Cell,
  type CellWrite,
  type Commit,
  type CommitResult,
  ITEM_TABLE,
  type ItemTable,
  type LogPage,
  type LogStart,
  type PageRange,
  type TableCallOptions,
} from "../item-table.ts";
import { INDEXES, indexNamed, TTL_ATTRIBUTE } from "../table.ts";
import {
  VERSION,
  WARM_BUCKETS,
  WARM_ROW,
  type WarmBuckets,
  type WarmRow,
} from "../warm-buckets.ts";
import type { PostgresConnection, PostgresRow } from "./connection.ts";
import { arrayText, lockMs, textAt } from "./parameters.ts";
import { quoted } from "./schema/names.ts";
import { PostgresBuckets } from "./warm-buckets.ts";

/** The row of a bucket as the server has it; `used` as texts, which may be beyond 2^53. */
const WARM = `CASE WHEN x.build IS NULL THEN NULL ELSE json_build_object('build', x.build,
  'parent', x.parent, 'cascades', x.cascades, 'until', x.valid_until, 'cap', x.cap, 'refill', x.refill,
  'period', x.period, 'at', x.at, 'tok', x.tok, 'rem', x.rem, 'used', x.used::text[],
  'events', x.events, 'held', coalesce(x.held, ''))::text END AS warm`;

export interface PostgresItemTableOptions {
  /** Whether writes of buckets wait for the disk of the server too. */
  readonly durable?: boolean | undefined;
}

export class PostgresItemTable implements ItemTable {
  readonly [ITEM_TABLE] = true;
  readonly [WARM_BUCKETS]: WarmBuckets;
  readonly #connection: PostgresConnection;
  readonly #schema: string;
  readonly #durable: boolean;

  constructor(connection: PostgresConnection, { durable = false }: PostgresItemTableOptions = {}) {
    this.#connection = connection;
    this.#schema = quoted(connection.schema);
    this.#durable = durable;
    this[WARM_BUCKETS] = new PostgresBuckets(connection, { durable });
  }

  async read(keys: readonly Key[], options: TableCallOptions): Promise<readonly Cell[]> {
    const text = `SELECT k.n::text AS n, x.data, x.xmin::text AS revision, ${WARM}
      FROM unnest($1::text::text[], $2::text::text[]) WITH ORDINALITY AS k (pk, sk, n)
      JOIN ${this.#schema}.items x ON x.pk = k.pk AND x.sk = k.sk`;
    const values = [arrayText(keys.map(({ PK }) => PK)), arrayText(keys.map(({ SK }) => SK))];
    const cells: Cell[] = keys.map((key) => ({ key, item: undefined, revision: undefined }));
    for (const row of await this.#connection.query(text, values, options)) {
      const at = Number(row["n"]) - 1;
      const revision = textAt(row, "revision");
      cells[at] = { key: keys[at] as Key, item: itemOf(row), revision };
    }
    return cells;
  }

  async commit(
    { reads, writes, token, nowMs }: Commit,
    options: TableCallOptions,
  ): Promise<CommitResult> {
    const text = `SELECT ${this.#schema}.commit_1($1::text::jsonb, $2::text::jsonb, $3,
      $4::text::bigint, $5::text::boolean, $6::text::int) AS done`;
    const waits = this.#durable || writes.some(mustWait);
    const seen = reads.map(({ key, revision }) => [key.PK, key.SK, revision ?? null]);
    const values = [JSON.stringify(seen), JSON.stringify(writes.map(writeOf)), token ?? null];
    const rest = [String(nowMs), String(waits), lockMs(options)];
    const [row] = await this.#connection.query(text, [...values, ...rest], options);
    return textAt(row, "done") as CommitResult;
  }

  async page(range: PageRange, options: TableCallOptions): Promise<readonly Item[]> {
    const { index, partition, from, before, descending, after, limit } = range;
    const [pk, sk] =
      index === undefined ? ["pk", "sk"] : [`${index.toLowerCase()}pk`, `${index.toLowerCase()}sk`];
    const values: string[] = [partition];
    const parameter = (value: string) => `$${values.push(value)}`;
    const tests = [`x.${pk} = $1`, `x.${sk} IS NOT NULL`];
    if (from !== undefined) tests.push(`x.${sk} >= ${parameter(from)}`);
    if (before !== undefined) tests.push(`x.${sk} < ${parameter(before)}`);
    if (after !== undefined) {
      const sort = index === undefined ? after.SK : String(after[indexNamed(index).sort]);
      const place = [sort, after.PK, after.SK].map(parameter).join(", ");
      tests.push(`(x.${sk}, x.pk, x.sk) ${descending ? "<" : ">"} (${place})`);
    }
    const order = [sk, "pk", "sk"].map((name) => `x.${name} ${descending ? "DESC" : "ASC"}`);
    const text = `SELECT x.data, ${WARM} FROM ${this.#schema}.items x
      WHERE ${tests.join(" AND ")} ORDER BY ${order.join(", ")}
      LIMIT ${parameter(String(limit))}::text::bigint`;
    return (await this.#connection.query(text, values, options)).map(itemOf);
  }

  /**
   * Reads what was logged by transactions below the oldest one that is still running: no record
   * can appear before those any more. A position that no record has given is a snapshot of the
   * server, whose transactions are left out.
   */
  async log(from: LogStart, limit: number, options: TableCallOptions): Promise<LogPage> {
    if (from === "now") {
      const text = "SELECT pg_current_snapshot()::text AS snapshot";
      const [row] = await this.#connection.query(text, [], options);
      const snapshot = textAt(row, "snapshot");
      return { records: [], position: `${snapshot.split(":", 1)[0]}.0.${snapshot}` };
    }
    const start = from === "oldest" ? "0.0." : from.after;
    const [, xid, seq, snapshot] = /^(\d{1,19})\.(\d{1,18})\.([\d:,]*)$/.exec(start) ?? [];
    if (xid === undefined || seq === undefined) throw unknownPosition(start);
    const text = `SELECT s.is_kept::text AS is_kept, c.xid::text AS xid, c.seq::text AS seq,
      c.at::text AS at, c.pk, c.sk, c.before, c.after, c.expired::text AS expired
      FROM (SELECT NOT l.is_trimmed OR $1 = '0' OR EXISTS (SELECT 1 FROM ${this.#schema}.changes o
        WHERE o.xid <= $1::text::xid8) AS is_kept FROM ${this.#schema}.log_state l) s
      LEFT JOIN LATERAL (SELECT * FROM ${this.#schema}.changes c
        WHERE (c.xid, c.seq) > ($1::text::xid8, $2::text::bigint)
        AND c.xid < pg_snapshot_xmin(pg_current_snapshot())
        AND ($3::text IS NULL OR NOT pg_visible_in_snapshot(c.xid, $3::text::pg_snapshot))
        ORDER BY c.xid, c.seq LIMIT $4::text::bigint) c ON true ORDER BY c.xid, c.seq`;
    const values = [xid, seq, snapshot || null, String(limit)];
    const rows = await this.#connection.query(text, values, options);
    if (rows[0]?.["is_kept"] === "false") throw unknownPosition(start);
    const records = rows.filter((row) => typeof row["xid"] === "string").map(recordOf(snapshot));
    return { records, position: records.at(-1)?.position ?? start };
  }

  close(): Promise<void> {
    return this.#connection.close();
  }
}

function unknownPosition(position: string): ValidationError {
  return new ValidationError("position", position, "expected the position of a change record");
}

function recordOf(snapshot: string | undefined) {
  return (row: PostgresRow) => {
    const [xid, seq] = [textAt(row, "xid"), textAt(row, "seq")];
    return {
      key: { PK: textAt(row, "pk"), SK: textAt(row, "sk") },
      before: row["before"] === null ? undefined : decoded(textAt(row, "before")),
      after: row["after"] === null ? undefined : decoded(textAt(row, "after")),
      atMs: Number(row["at"]),
      expired: row["expired"] === "true",
      shard: "postgres",
      sequence: String((BigInt(xid) << 64n) + BigInt(seq)),
      position: `${xid}.${seq}.${snapshot ?? ""}`,
    };
  };
}

function mustWait({ isLogged, mustLast }: CellWrite): boolean {
  return isLogged || mustLast === true;
}

/** Returns a write as `commit_1` reads it. */
function writeOf({ key, before, after, isLogged }: CellWrite): object {
  const write = {
    pk: key.PK,
    sk: key.SK,
    log: isLogged,
    before: isLogged && before !== undefined ? encoded(before) : null,
  };
  if (after === undefined) return { ...write, after: null };
  const ttl = after[TTL_ATTRIBUTE];
  const version = after[VERSION];
  const { [WARM_ROW]: warm, ...item } = after;
  return {
    ...write,
    after: encoded(item as Item),
    g: indexKeys(after),
    ttl: typeof ttl === "number" ? Math.floor(ttl) : null,
    version: Number.isSafeInteger(version) ? version : null,
    ...(warm as unknown as WarmRow | undefined),
  };
}

function indexKeys(item: Item): readonly (string | null)[] {
  return INDEXES.flatMap(({ partition, sort }) => {
    const [one, other] = [item[partition], item[sort]];
    return typeof one === "string" && typeof other === "string" ? [one, other] : [null, null];
  });
}

function itemOf(row: PostgresRow): Item {
  const item = decoded(textAt(row, "data"));
  const warm = row["warm"];
  if (typeof warm !== "string") return item;
  const { used, ...rest } = JSON.parse(warm) as WarmRow & { used: readonly string[] };
  return { ...item, [WARM_ROW]: { ...rest, used: used.map(whole) } as unknown as Item[string] };
}

function whole(text: string): number | bigint {
  const number = Number(text);
  return Number.isSafeInteger(number) ? number : BigInt(text);
}

function encoded(item: Item): string {
  return JSON.stringify(encodeItem(item));
}

function decoded(data: string): Item {
  return decodeItem(JSON.parse(data) as Record<string, unknown>);
}
