/**
 * One SQLite file, shared with other processes.
 *
 * A write is one synchronous transaction that owns the lock from its first statement. When the
 * lock is taken, the process asks again after short pauses of its own: SQLite's waiting blocks
 * the event loop and lets a process starve for seconds.
 */

import { mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Random, systemRandom } from "../../base/random.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import {
  type Bindable,
  type Connection,
  type DriverName,
  loadDriver,
  type Row,
  type Statement,
} from "./driver.ts";
import {
  asInfrastructureError,
  closedError,
  isBusy,
  isFull,
  openingError,
  timeoutError,
} from "./errors.ts";
import { prepareFile, refuseMigrated } from "./schema.ts";
import { Turn } from "./turn.ts";
import { BUSY, pauseMs, WriteQueue } from "./write-queue.ts";

const TIMEOUT_MS = 2000;
/** How often at most room is made on a full disk. */
const ROOM_MS = 100;
/** How often at most a writer checks whether another process has migrated the file. */
const VERSION_MS = 100;

interface SqliteDatabaseOptions {
  /** The file; it and its folder are created when they are not there. */
  readonly path: string;
  readonly driver?: DriverName | undefined;
  /** How long to wait for other writers. */
  readonly timeoutMs?: number | undefined;
  readonly random?: Random | undefined;
}

export class SqliteDatabase {
  readonly path: string;
  readonly #connection: Connection;
  readonly #timeoutMs: number;
  readonly #random: Random;
  readonly #statements = new Map<string, Statement>();
  readonly #turn = new Turn();
  readonly #queue: WriteQueue;
  #roomAgainAt = 0;
  #versionAgainAt = performance.now() + VERSION_MS;
  #closed = false;

  private constructor(path: string, connection: Connection, timeoutMs: number, random: Random) {
    this.path = path;
    this.#connection = connection;
    this.#timeoutMs = timeoutMs;
    this.#random = random;
    this.#queue = new WriteQueue({
      random,
      gap: () => this.#gap(),
      timedOut: (waitedMs) => timeoutError(path, waitedMs),
    });
  }

  static async open(options: SqliteDatabaseOptions): Promise<SqliteDatabase> {
    const path = checkedPath(options.path);
    const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    const random = options.random ?? systemRandom;
    const connect = await loadDriver(options.driver);
    let connection: Connection | undefined;
    try {
      mkdirSync(dirname(path), { recursive: true });
      const opened = connect(path);
      connection = opened;
      await retried(() => prepareFile(opened, path), path, timeoutMs, random);
      return new SqliteDatabase(path, opened, timeoutMs, random);
    } catch (error) {
      connection?.close();
      throw openingError(error, path);
    }
  }

  /** Returns the statement of that text, prepared once. */
  prepare(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#connection.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  /** Runs a statement that returns nothing, within the transaction of the caller. */
  exec(sql: string): void {
    this.#connection.exec(sql);
  }

  /**
   * Runs the work in one transaction, or returns BUSY with nothing done: the lock is taken, other
   * writers of this process are waiting, or it is the turn of another process. Work that throws is
   * rolled back. Work may run again after it was rolled back, so it must change nothing but the
   * file.
   */
  tryWrite<T>(work: () => T): T | typeof BUSY {
    this.#refuseClosed();
    if (!this.#queue.isEmpty || this.#turn.isOver(performance.now())) return BUSY;
    return this.#attempt(work);
  }

  /** Runs one statement as a transaction; returns the changed rows, or BUSY like `tryWrite`. */
  tryRun(sql: string, ...values: Bindable[]): number | typeof BUSY {
    const statement = this.prepare(sql);
    if (this.#connection.losesBusyStatements === true) {
      return this.tryWrite(() => changesOf(statement.run(...values)));
    }
    this.#refuseClosed();
    const startedAt = performance.now();
    if (!this.#queue.isEmpty || this.#turn.isOver(startedAt)) return BUSY;
    try {
      this.#refuseMigrated(startedAt);
      return changesOf(statement.run(...values));
    } catch (error) {
      if (!isBusy(error)) throw asInfrastructureError(error, this.path);
      this.#turn.meet();
      return BUSY;
    } finally {
      this.#turn.add(startedAt, performance.now());
    }
  }

  /** Runs one statement of a transaction, and returns how many rows it changed. */
  change(sql: string, ...values: Bindable[]): number {
    return changesOf(this.prepare(sql).run(...values));
  }

  /** Returns one row, if it can be read at once. */
  tryGet(sql: string, ...values: Bindable[]): Row | undefined {
    this.#refuseClosed();
    try {
      return this.prepare(sql).get(...values);
    } catch (error) {
      if (!isBusy(error)) throw asInfrastructureError(error, this.path);
      return undefined;
    }
  }

  /** Does what `tryWrite` does, but waits while the file is busy. */
  async write<T>(work: () => T, timeoutMs: number = this.#timeoutMs): Promise<T> {
    const result = this.tryWrite(work);
    if (result !== BUSY) return result;
    return this.#queue.join(() => this.#attempt(work), timeoutMs);
  }

  /** Runs statements that only read; each sees all that was committed before it. */
  read<T>(work: () => T, timeoutMs: number = this.#timeoutMs): Promise<T> {
    const attempt = () => {
      this.#refuseClosed();
      return work();
    };
    return retried(attempt, this.path, timeoutMs, this.#random);
  }

  /** Does what `read` does, with all statements seeing the file as of one moment. */
  snapshot<T>(work: () => T, timeoutMs?: number): Promise<T> {
    return this.read(() => {
      this.prepare("BEGIN DEFERRED").run();
      try {
        const result = work();
        this.prepare("COMMIT").run();
        return result;
      } catch (error) {
        this.#undo();
        throw error;
      }
    }, timeoutMs);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#queue.dismiss(closedError(this.path));
    // libsql keeps the file open until the last statement is garbage, so none is held on to here.
    this.#statements.clear();
    this.#connection.close();
  }

  #attempt<T>(work: () => T): T | typeof BUSY {
    const startedAt = performance.now();
    let begun = false;
    try {
      // Not prepared: libsql leaves a prepared BEGIN that met a lock unfinished, and every read
      // after it fails because "SQL statements are in progress".
      this.#connection.exec("BEGIN IMMEDIATE");
      begun = true;
      this.#refuseMigrated(startedAt);
      const result = work();
      this.prepare("COMMIT").run();
      this.#turn.add(startedAt, performance.now());
      return result;
    } catch (error) {
      if (begun) {
        this.#undo();
        this.#turn.add(startedAt, performance.now());
      }
      if (isFull(error)) this.#makeRoom();
      if (!isBusy(error)) throw asInfrastructureError(error, this.path);
      this.#turn.meet();
      return BUSY;
    }
  }

  /**
   * Folds the log into the file, so that its room is used again: on a full disk the log never
   * reaches the length at which SQLite does that by itself.
   */
  #makeRoom(): void {
    const now = performance.now();
    if (now < this.#roomAgainAt) return;
    this.#roomAgainAt = now + ROOM_MS;
    try {
      this.#connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // The disk has no room for that either, or a reader blocks it: the next failure tries again.
    }
  }

  #undo(): void {
    try {
      this.prepare("ROLLBACK").run();
    } catch {
      // A full disk or a failed read has rolled back already; that error is the one to report.
    }
  }

  #gap(): Promise<void> | undefined {
    return this.#turn.isOver(performance.now()) ? this.#leaveGap() : undefined;
  }

  /** Leaves the lock free for other processes. */
  async #leaveGap(): Promise<void> {
    const version = this.#othersVersion();
    const until = performance.now() + this.#turn.gapMs;
    let wasUsed = false;
    while (!wasUsed && performance.now() < until) {
      await sleep(1);
      if (this.#closed) return;
      wasUsed = this.#othersVersion() !== version;
    }
    this.#turn.restart(wasUsed);
  }

  /** Changes when another process has committed. */
  #othersVersion(): unknown {
    try {
      return this.prepare("PRAGMA data_version").get()?.data_version;
    } catch {
      // The version is only a hint. If something is wrong with the file, the next write reports it.
      return undefined;
    }
  }

  /** Refuses a file whose rows a newer version has changed while this process had it open. */
  #refuseMigrated(now: number): void {
    if (now < this.#versionAgainAt) return;
    const version = Number(this.prepare("PRAGMA user_version").get()?.user_version);
    refuseMigrated(version, this.path);
    this.#versionAgainAt = now + VERSION_MS;
  }

  #refuseClosed(): void {
    if (this.#closed) throw closedError(this.path);
  }
}

/** Repeats the work until it is not busy, for work that needs no place in the queue. */
async function retried<T>(
  work: () => T,
  path: string,
  timeoutMs: number,
  random: Random,
): Promise<T> {
  const startedAt = performance.now();
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw asInfrastructureError(error, path);
      const waitedMs = performance.now() - startedAt;
      if (waitedMs >= timeoutMs) throw timeoutError(path, waitedMs);
    }
    await sleep(pauseMs(0, random()));
  }
}

/** Returns an absolute path, because a driver may take other text for an address or for memory. */
function checkedPath(path: string): string {
  if (path !== "" && path !== ":memory:") return resolve(path);
  throw new ValidationError("path", path, "expected the path of a file; memory has its own store");
}

/** Returns the number of changed rows, which all drivers report in the same form. */
function changesOf(result: unknown): number {
  return Number((result as { changes?: number | bigint }).changes ?? 0);
}
