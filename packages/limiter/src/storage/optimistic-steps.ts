/**
 * Steps on an `ItemTable`, which may be behind a network. Work is synchronous: where it needs a
 * cell that was not read yet, it stops, the cell is read, and the work runs again from the
 * beginning. What its last run has written is committed on condition that every cell it used is
 * unchanged.
 */

import type { Random } from "../base/random.ts";
import { type Clock, Deadline, type Timer } from "../base/time.ts";
import { invariant } from "../domain/check.ts";
import { InfrastructureError, RateLimiterUnavailable } from "../domain/errors/errors.ts";
import { tooBusy, tooLate } from "../domain/errors/unavailability.ts";
import { CallListeners, freeCall } from "./call-listeners.ts";
import { type Item, type Key, keyOf } from "./item.ts";
import type { CallListener, CallOutcome, ChangeRecord, ChangesOptions } from "./item-store.ts";
import type { Commit, CommitResult, ItemTable, PageRange, TableCallOptions } from "./item-table.ts";
import { PolledFeed } from "./polled-feed.ts";
import { type HoldRow, RowHolds } from "./row-holds.ts";
import { idOf, MissingKeys, MissingPage, StepCells } from "./step-cells.ts";
import type { ListedRows, StepOptions, StepTable } from "./step-table.ts";
import { warmBucketsOf } from "./warm-buckets.ts";

const TIMEOUT_MS = 2000;
/** Conflicts after which a step waits before it runs again, and the longest such wait. */
const HASTY_ATTEMPTS = 2;
const PAUSE_MS_MAX = 32;
/** Reads after which work that asks for new rows each time is taken for broken. */
const READS_MAX = 10_000;

export interface OptimisticStepsOptions {
  readonly clock: Clock;
  readonly timer: Timer;
  readonly random: Random;
  readonly timeoutMs?: number | undefined;
  readonly onCall?: CallListener | undefined;
}

export class OptimisticSteps implements StepTable<ListedRows> {
  readonly #table: ItemTable;
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #random: Random;
  readonly #timeoutMs: number;
  readonly #listeners: CallListeners;
  readonly #closing = new AbortController();
  readonly #feed: PolledFeed;
  /** The end of the newest step that waits for its turn, by the last row of that step. */
  readonly #turns = new Map<string, Promise<void>>();
  readonly #requests = new Set<Promise<unknown>>();

  constructor(table: ItemTable, options: OptimisticStepsOptions) {
    this.#table = table;
    this.#clock = options.clock;
    this.#timer = options.timer;
    this.#random = options.random;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#listeners = new CallListeners(options.onCall);
    this.#feed = new PolledFeed({
      log: (from, limit) =>
        this.#ask("log", this.#deadline(), (callOptions) => table.log(from, limit, callOptions)),
      timer: options.timer,
      closed: this.#closing.signal,
    });
  }

  begin(_operation: string): void {
    this.#refuseClosed();
  }

  /** Needs no pause: each request is one. */
  pause(): undefined {}

  /**
   * Steps of this process that end with the same row run one after the other: they would only undo
   * each other. Of a cascade that is the row of the topmost ancestor.
   */
  async step<Result>(
    work: (rows: ListedRows) => Result,
    options: StepOptions<Result>,
  ): Promise<Result> {
    const deadline = this.#deadline(options.timeoutMs);
    const last = options.keys?.at(-1);
    if (last === undefined) return this.#attempt(work, options, deadline);
    const id = idOf(last);
    const before = this.#turns.get(id);
    const done = before
      ? before.then(() => this.#attempt(work, options, deadline))
      : this.#attempt(work, options, deadline);
    const turn = done.then(ended, ended);
    this.#turns.set(id, turn);
    try {
      return await done;
    } finally {
      if (this.#turns.get(id) === turn) this.#turns.delete(id);
    }
  }

  async peek<Result>(
    work: (rows: ListedRows) => Result,
    { timeoutMs, keys = [], along = [] }: StepOptions<Result>,
  ): Promise<Result> {
    return this.#run(work, new StepCells(), [...keys, ...along], this.#deadline(timeoutMs), 1);
  }

  page(range: PageRange): Promise<readonly Item[]> {
    return this.#ask("page", this.#deadline(), (options) => this.#table.page(range, options));
  }

  /** Sends a request that is no step; listeners get it, and closing waits for it. */
  send<Answer>(
    operation: string,
    { timeoutMs }: TableCallOptions,
    request: (options: TableCallOptions) => Promise<Answer>,
  ): Promise<Answer> {
    return this.#ask(operation, this.#deadline(timeoutMs), request);
  }

  changes(options: ChangesOptions): AsyncIterableIterator<ChangeRecord> {
    return this.#feed.read(options);
  }

  listen(listener: CallListener): () => void {
    return this.#listeners.add(listener);
  }

  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    // Requests under way end by their deadlines, and no other begins.
    await Promise.allSettled(this.#requests);
    await this.#table.close();
  }

  /** Runs the work and commits it, again and again while other clients change its cells. */
  async #attempt<Result>(
    work: (rows: ListedRows) => Result,
    { keys = [], along = [], once }: StepOptions<Result>,
    deadline: Deadline,
  ): Promise<Result> {
    const token = once?.token;
    const first = [...keys, ...along];
    const holds = this.#holds(deadline);
    for (let attempt = 1; ; attempt += 1) {
      const cells = new StepCells();
      const result = await this.#run(work, cells, first, deadline, attempt);
      const { reads, writes } = cells.outcome(once !== undefined);
      const isRead = writes.length === 0;
      // Conditions that fail now may fail because the work was done before.
      const commit = { reads: isRead ? [] : reads, writes, token, near: keys[0] };
      const needsCommit = !isRead || once?.mayFail === true;
      const done = needsCommit ? await this.#commit(commit, holds, deadline, attempt) : "done";
      if (done !== "changed") {
        await holds.release(writes);
        return once !== undefined && done === "repeated" ? once.repeated : result;
      }
      if (deadline.isOver) throw tooBusy("The items changed too often to be written in time");
      await this.#wait(attempt);
      await holds.afterConflict(reads, attempt);
    }
  }

  /** Returns the holds of one step. */
  #holds(deadline: Deadline): RowHolds {
    const warm = warmBucketsOf(this.#table);
    // Without an answer the step goes on as if another one held the row.
    const ask: HoldRow = (hold) =>
      this.#ask("hold", deadline, async (options) => warm?.hold(hold, options) ?? false).catch(
        () => false,
      );
    return new RowHolds(warm && ask, this.#clock);
  }

  #deadline(timeoutMs = this.#timeoutMs): Deadline {
    return new Deadline(this.#timer, timeoutMs);
  }

  /** Runs the work until it has all cells that it asks for. */
  async #run<Result>(
    work: (rows: ListedRows) => Result,
    cells: StepCells,
    keys: readonly Key[],
    deadline: Deadline,
    attempt: number,
  ): Promise<Result> {
    this.#refuseClosed();
    const first = cells.unread(keys);
    if (first.length > 0) await this.#read(first, cells, deadline, attempt);
    for (let reads = 0; ; reads += 1) {
      invariant(reads < READS_MAX, "a step asks for other rows each time it runs");
      try {
        cells.begin();
        return work(cells);
      } catch (error) {
        if (error instanceof MissingKeys) {
          await this.#read(error.keys, cells, deadline, attempt);
        } else if (error instanceof MissingPage) {
          await this.#readPage(error, cells, deadline, attempt);
        } else {
          throw error;
        }
      }
    }
  }

  async #read(
    keys: readonly Key[],
    cells: StepCells,
    deadline: Deadline,
    attempt: number,
  ): Promise<void> {
    const read = (options: TableCallOptions) => this.#table.read(keys.map(keyOf), options);
    for (const cell of await this.#ask("read", deadline, read, attempt)) cells.keep(cell);
  }

  /** Reads a page. An index may lag, so the items of the page are read by their keys. */
  async #readPage(
    { id, range, alongOf }: MissingPage,
    cells: StepCells,
    deadline: Deadline,
    attempt: number,
  ): Promise<void> {
    const page = (options: TableCallOptions) => this.#table.page(range, options);
    const items = await this.#ask("page", deadline, page, attempt);
    cells.keepPage(id, items);
    if (alongOf === undefined) return;
    const lacking = cells.unread(items.map(keyOf));
    if (lacking.length > 0) await this.#read(lacking, cells, deadline, attempt);
    const found = items.flatMap((item) => cells.known(item) ?? []);
    const along = cells.unread(found.flatMap(alongOf));
    if (along.length > 0) await this.#read(along, cells, deadline, attempt);
  }

  async #commit(
    commit: Omit<Commit, "nowMs">,
    holds: RowHolds,
    deadline: Deadline,
    attempt: number,
  ): Promise<CommitResult> {
    if (holds.areOthers(commit.reads)) return "changed";
    const write = (options: TableCallOptions) =>
      this.#table.commit({ ...commit, nowMs: this.#clock() }, options);
    const done = await this.#ask("commit", deadline, write, attempt);
    if (done === "done" && commit.writes.some(({ isLogged }) => isLogged)) this.#feed.wake();
    return done;
  }

  async #wait(attempt: number): Promise<void> {
    if (attempt <= HASTY_ATTEMPTS) return;
    await this.#timer.sleep(this.#random() * Math.min(PAUSE_MS_MAX, 2 ** attempt));
  }

  /** Sends one request; closing waits for it. */
  async #ask<Answer>(
    operation: string,
    deadline: Deadline,
    send: (options: TableCallOptions) => Promise<Answer>,
    attempt = 1,
  ): Promise<Answer> {
    this.#refuseClosed();
    if (deadline.isOver) throw tooLate();
    const request = this.#told(operation, deadline, send, attempt);
    this.#requests.add(request);
    try {
      return await request;
    } finally {
      this.#requests.delete(request);
    }
  }

  /** Sends a request, and notifies listeners of it. */
  async #told<Answer>(
    operation: string,
    deadline: Deadline,
    send: (options: TableCallOptions) => Promise<Answer>,
    attempt: number,
  ): Promise<Answer> {
    const options = { timeoutMs: Math.ceil(deadline.timeoutMs) };
    if (this.#listeners.isEmpty) return send(options);
    const startedAt = this.#timer.nowMs();
    const tell = (outcome: CallOutcome) => {
      const durationMs = this.#timer.nowMs() - startedAt;
      this.#listeners.tell({ ...freeCall(operation), outcome, durationMs, attempt });
    };
    try {
      const answer = await send(options);
      tell(answer === "changed" ? "condition" : "ok");
      return answer;
    } catch (error) {
      tell(error instanceof RateLimiterUnavailable ? (error.reason ?? "server") : "refused");
      throw error;
    }
  }

  #refuseClosed(): void {
    if (this.#closing.signal.aborted) throw new InfrastructureError("This store is closed");
  }
}

function ended(): void {}
