/**
 * Connections to PostgreSQL: a pool that this library opens by an address, or a pool of the
 * caller's, by its shape. Nothing is prepared by name and nothing is set for a session, so a pooler
 * that gives each transaction another connection will do.
 */

import { show } from "../../domain/check.ts";
import { InfrastructureError, ValidationError } from "../../domain/errors/errors.ts";
import type { TableCallOptions } from "../item-table.ts";
import { closedError, isAnswer, lateError, type PostgresPlace, postgresError } from "./errors.ts";

/** The most connections of one process. */
export const CONNECTIONS_MAX = 4;
const IDLE_MS_MAX = 30_000;

/**
 * A parameter. Clients encode numbers and arrays each in their own way, and all of them texts in
 * the same: a statement casts, as in `$1::text::bigint[]`.
 */
export type PostgresValue = string | null;

/** A row of an answer. Columns are cast to text too: clients decode bigints differently. */
export type PostgresRow = Readonly<Record<string, unknown>>;

/** The connections of one store. */
export interface PostgresConnection extends PostgresPlace {
  /**
   * Sends one statement, which is a transaction of its own. A text without values may have several
   * statements. Errors are those of this library.
   */
  query(
    text: string,
    values: readonly PostgresValue[],
    options: TableCallOptions,
  ): Promise<readonly PostgresRow[]>;
  /** Ends the connections that this library has opened. */
  close(): Promise<void>;
}

/**
 * A pool of yours, by its shape: `query` of pg, Neon and PGlite; `unsafe` of postgres.js and of
 * Bun; `$queryRawUnsafe` of Prisma.
 *
 * @example
 * ```ts
 * import type { PostgresPool } from 'zae-limiter/postgres';
 * // Any other client, in one line:
 * const pool: PostgresPool = { query: async (text, values) => ({ rows: [{ text, values }] }) };
 * console.log(typeof pool); // object
 * ```
 */
export type PostgresPool =
  | { query(text: string, values?: unknown[]): PromiseLike<{ readonly rows: readonly object[] }> }
  | { unsafe(text: string, values?: never[]): PromiseLike<readonly object[]> }
  | { $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown> };

/** The parts of `pg` that are used. */
interface Pg {
  readonly Pool: new (options: object) => PgPool;
}

interface PgPool {
  connect(): Promise<PgClient>;
  end(): Promise<void>;
  on(event: "error", listener: (error: unknown) => void): unknown;
  on(event: "connect", listener: (client: PgClient) => void): unknown;
}

interface PgClient {
  query(
    text: string,
    values?: readonly PostgresValue[],
  ): Promise<{ readonly rows: readonly PostgresRow[] }>;
  release(error?: unknown): void;
  on(event: "error", listener: (error: unknown) => void): unknown;
}

/** The pool of an address. It connects when it is first used. */
export class AddressConnection implements PostgresConnection {
  readonly place: string;
  readonly schema: string;
  readonly #pool: PgPool;
  #isClosed = false;

  private constructor(pool: PgPool, { place, schema }: PostgresPlace) {
    this.#pool = pool;
    this.place = place;
    this.schema = schema;
    // A server that restarts ends idle connections: the next request makes another.
    pool.on("error", () => undefined);
    pool.on("connect", (client) => client.on("error", () => undefined));
  }

  /** Makes the pool, and loads `pg`; `timeoutMs` is the most that connecting may take. */
  static async open(
    connectionString: string,
    at: PostgresPlace,
    timeoutMs: number,
  ): Promise<AddressConnection> {
    const { Pool } = await loadPg();
    const pool = new Pool({
      connectionString,
      max: CONNECTIONS_MAX,
      application_name: "zae-limiter",
      connectionTimeoutMillis: timeoutMs,
      idleTimeoutMillis: IDLE_MS_MAX,
      allowExitOnIdle: true,
      keepAlive: true,
    });
    return new AddressConnection(pool, at);
  }

  async query(
    text: string,
    values: readonly PostgresValue[],
    { timeoutMs }: TableCallOptions,
  ): Promise<readonly PostgresRow[]> {
    if (this.#isClosed) throw closedError(this);
    let client: PgClient | undefined;
    let isLate = false;
    const run = async () => {
      const taken = await this.#pool.connect();
      if (isLate) {
        taken.release();
        return [];
      }
      client = taken;
      let error: unknown;
      try {
        return (await taken.query(text, values)).rows;
      } catch (thrown) {
        error = isAnswer(thrown) ? undefined : thrown;
        throw thrown;
      } finally {
        if (!isLate) taken.release(error);
      }
    };
    const late = () => {
      isLate = true;
      const error = lateError(this, timeoutMs, client !== undefined);
      // The answer may still come: nothing else may be sent on this connection.
      client?.release(error);
      return error;
    };
    try {
      return await before(run(), timeoutMs, late);
    } catch (error) {
      throw postgresError(error, this, client !== undefined);
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#pool.end();
  }
}

/** A pool of the caller's, which is neither configured nor closed. */
export class GivenConnection implements PostgresConnection {
  readonly place = "PostgreSQL";
  readonly schema: string;
  readonly #send: (text: string, values: PostgresValue[]) => PromiseLike<unknown>;
  #isClosed = false;

  constructor(pool: PostgresPool, schema: string) {
    this.#send = senderOf(pool);
    this.schema = schema;
  }

  async query(
    text: string,
    values: readonly PostgresValue[],
    { timeoutMs }: TableCallOptions,
  ): Promise<readonly PostgresRow[]> {
    if (this.#isClosed) throw closedError(this);
    const run = async () => rowsOf(await this.#send(text, [...values]));
    try {
      return await before(run(), timeoutMs, () => lateError(this, timeoutMs, true));
    } catch (error) {
      throw postgresError(error, this, true);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }
}

/** Every member by which a pool is known. */
interface Shapes {
  query(text: string, values: PostgresValue[]): PromiseLike<unknown>;
  unsafe(text: string, values: PostgresValue[]): PromiseLike<unknown>;
  $queryRawUnsafe(text: string, ...values: PostgresValue[]): PromiseLike<unknown>;
  release(): void;
}

/** Returns a function that sends a statement to a pool; refuses any other object. */
function senderOf(
  pool: PostgresPool,
): (text: string, values: PostgresValue[]) => PromiseLike<unknown> {
  const given = pool as Partial<Shapes> | null | undefined;
  const isOne = typeof given?.release === "function" || hasProcess(given);
  if (isOne) {
    throw new ValidationError(
      "pool",
      undefined,
      "expected a pool, got a single client of PostgreSQL: what another statement on it rolls " +
        "back, the limiter would have granted",
    );
  }
  if (typeof given?.query === "function") {
    const it = given as Pick<Shapes, "query">;
    return (text, values) => it.query(text, values);
  }
  if (typeof given?.unsafe === "function") {
    const it = given as Pick<Shapes, "unsafe">;
    return (text, values) => it.unsafe(text, values);
  }
  if (typeof given?.$queryRawUnsafe === "function") {
    const it = given as Pick<Shapes, "$queryRawUnsafe">;
    return (text, values) => it.$queryRawUnsafe(text, ...values);
  }
  const expected = "expected a pool with query, unsafe or $queryRawUnsafe";
  throw new ValidationError("pool", undefined, `${expected}, got ${show(typeof pool)}`);
}

/** Returns whether it is a client of `pg`: it has one process of the server, a pool several. */
function hasProcess(given: object | null | undefined): boolean {
  return typeof given === "object" && given !== null && "processID" in given;
}

function rowsOf(answer: unknown): readonly PostgresRow[] {
  if (Array.isArray(answer)) return answer as PostgresRow[];
  const rows = (answer as { rows?: unknown } | null | undefined)?.rows;
  if (Array.isArray(rows)) return rows as PostgresRow[];
  throw new InfrastructureError("The pool answered neither with rows nor with { rows }");
}

async function loadPg(): Promise<Pg> {
  try {
    const loaded = (await import("pg" as string)) as { default?: Pg } & Pg;
    return loaded.default ?? loaded;
  } catch (cause) {
    throw new InfrastructureError(
      "The package pg is not installed, and addresses of PostgreSQL need it: npm install pg. A " +
        "pool of another client works by Repository.over(postgres(pool))",
      { cause },
    );
  }
}

/** Returns the result, unless it takes longer: then `late` returns the error. */
function before<Result>(
  result: Promise<Result>,
  timeoutMs: number,
  late: () => Error,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timeout = setTimeout(() => reject(late()), timeoutMs);
    const end = (settle: () => void) => {
      clearTimeout(timeout);
      settle();
    };
    result.then(
      (value) => end(() => resolve(value)),
      (error) => end(() => reject(error as Error)),
    );
  });
}
