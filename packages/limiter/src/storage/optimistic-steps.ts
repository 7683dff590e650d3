/**
 * Steps on an `ItemTable`, which may be behind a network. Work is synchronous: where it needs a
 * cell that was not read yet, it stops, the cell is read, and the work runs again from the
 * beginning. What its last run has written is committed on condition that every cell it used is
 * unchanged.
 */

import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../base/clock.ts";
import { Deadline } from "../base/deadline.ts";
import type { Random } from "../base/random.ts";
import type { Timer } from "../base/timer.ts";
import { invariant } from "../domain/check.ts";
import { InfrastructureError, RateLimiterUnavailable } from "../domain/errors/errors.ts";
import { tooBusy, tooLate } from "../domain/errors/unavailability.ts";
import { CallListeners, freeCall } from "./call-listeners.ts";
import { type Item, type Key, keyOf } from "./item.ts";
import type { CallListener, CallOutcome, ChangeRecord, ChangesOptions } from "./item-store.ts";
import type {
  Cell,
  CellWrite,
  Commit,
  ItemTable,
  PageRange,
  TableCallOptions,
} from "./item-table.ts";
import { PolledFeed } from "./polled-feed.ts";
import type { ListedRows, StepOptions, StepTable } from "./step-table.ts";

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

  constructor(table: ItemTable, options: OptimisticStepsOptions) {
    this.#table = table;
    this.#clock = options.clock;
    this.#timer = options.timer;
    this.#random = options.random;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#listeners = new CallListeners(options.onCall);
    this.#feed = new PolledFeed({
      log: (from, limit) => this.#ask("log", this.#deadline(), () => table.log(from, limit)),
      timer: options.timer,
      closed: this.#closing.signal,
    });
  }

  async step<Result>(
    work: (rows: ListedRows) => Result,
    { timeoutMs, keys = [], once }: StepOptions<Result>,
  ): Promise<Result> {
    const deadline = this.#deadline(timeoutMs);
    const token = once?.token;
    for (let attempt = 1; ; attempt += 1) {
      const cells = new StepCells();
      const result = await this.#run(work, cells, keys, deadline, attempt);
      const { reads, writes } = cells.outcome(once !== undefined);
      if (writes.length === 0 && once === undefined) return result;
      // Conditions that fail now may fail because the work was done before.
      const commit = { reads: writes.length === 0 ? [] : reads, writes, token };
      const done = await this.#commit(commit, deadline, attempt);
      if (once !== undefined && done === "repeated") return once.repeated;
      if (done === "done") return result;
      if (deadline.isOver) throw tooBusy("The items changed too often to be written in time");
      await this.#pause(attempt);
    }
  }

  async peek<Result>(
    work: (rows: ListedRows) => Result,
    { timeoutMs, keys = [] }: StepOptions<Result>,
  ): Promise<Result> {
    return this.#run(work, new StepCells(), keys, this.#deadline(timeoutMs), 1);
  }

  page(range: PageRange, operation: string): Promise<readonly Item[]> {
    return this.#ask(operation, this.#deadline(), (options) => this.#table.page(range, options));
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
    await this.#table.close();
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
    if (keys.length > 0) await this.#read(keys, cells, deadline, attempt);
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
    const read = (options: TableCallOptions) => this.#table.read(keys, options);
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

  async #commit(commit: Omit<Commit, "nowMs">, deadline: Deadline, attempt: number) {
    const write = (options: TableCallOptions) =>
      this.#table.commit({ ...commit, nowMs: this.#clock() }, options);
    const done = await this.#ask("commit", deadline, write, attempt);
    if (done === "done" && commit.writes.some(({ isLogged }) => isLogged)) this.#feed.wake();
    return done;
  }

  async #pause(attempt: number): Promise<void> {
    if (attempt <= HASTY_ATTEMPTS) return;
    await this.#timer.sleep(this.#random() * Math.min(PAUSE_MS_MAX, 2 ** attempt));
  }

  /** Sends one request, and notifies listeners of it. */
  async #ask<Answer>(
    operation: string,
    deadline: Deadline,
    send: (options: TableCallOptions) => Promise<Answer>,
    attempt = 1,
  ): Promise<Answer> {
    this.#refuseClosed();
    if (deadline.isOver) throw tooLate();
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

/** Stops work that asks for cells which were not read yet. */
class MissingKeys extends Error {
  readonly keys: readonly Key[];

  constructor(keys: readonly Key[]) {
    super("cells were not read yet");
    this.keys = keys;
  }
}

/** Stops work that asks for a page which was not read yet. */
class MissingPage extends Error {
  readonly id: string;
  readonly range: PageRange;
  readonly alongOf: ((item: Item) => readonly Key[]) | undefined;

  constructor(id: string, range: PageRange, alongOf: MissingPage["alongOf"]) {
    super("a page was not read yet");
    this.id = id;
    this.range = range;
    this.alongOf = alongOf;
  }
}

/** The cells that one attempt of a step has read, and what its last run has used and written. */
class StepCells implements ListedRows {
  readonly #cells = new Map<string, Cell>();
  readonly #pages = new Map<string, readonly Item[]>();
  readonly #used = new Set<Cell>();
  readonly #writes = new Map<string, CellWrite>();

  begin(): void {
    this.#used.clear();
    this.#writes.clear();
  }

  get(key: Key, along: readonly Key[] = []): Item | undefined {
    const id = idOf(key);
    const cell = this.#cells.get(id);
    if (cell === undefined) throw new MissingKeys(this.unread([key, ...along]));
    this.#used.add(cell);
    const write = this.#writes.get(id);
    return write === undefined ? cell.item : write.after;
  }

  set(key: Key, after: Item | undefined): void {
    this.#write(key, after, true);
  }

  setUnlogged(key: Key, after: Item | undefined): void {
    this.#write(key, after, false);
  }

  #write(key: Key, after: Item | undefined, isLogged: boolean): void {
    this.get(key);
    const id = idOf(key);
    const before = this.#cells.get(id)?.item;
    this.#writes.set(id, { key: keyOf(key), before, after, isLogged });
  }

  keys(range: PageRange): readonly Item[] {
    const id = JSON.stringify(range);
    const found = this.#pages.get(id);
    if (found === undefined) throw new MissingPage(id, range, undefined);
    return found;
  }

  page(range: PageRange, alongOf: (item: Item) => readonly Key[] = () => []): readonly Item[] {
    const id = JSON.stringify(range);
    const found = this.#pages.get(id);
    if (found === undefined) throw new MissingPage(id, range, alongOf);
    return found.flatMap((item) => this.get(item) ?? []);
  }

  keep(cell: Cell): void {
    this.#cells.set(idOf(cell.key), cell);
  }

  keepPage(id: string, items: readonly Item[]): void {
    this.#pages.set(id, items);
  }

  /** Returns an item that was read, without making the step depend on it. */
  known(key: Key): Item | undefined {
    return this.#cells.get(idOf(key))?.item;
  }

  /** Returns the keys that were not read, each once. */
  unread(keys: readonly Key[]): readonly Key[] {
    const lacking = new Map(keys.map((key) => [idOf(key), key]));
    for (const id of lacking.keys()) if (this.#cells.has(id)) lacking.delete(id);
    return [...lacking.values()];
  }

  /** Leaves out writes that change nothing, unless they carry a token; none of them is logged. */
  outcome(hasToken: boolean) {
    const writes: CellWrite[] = [];
    for (const write of this.#writes.values()) {
      const isChange = !isDeepStrictEqual(write.before, write.after);
      if (isChange) writes.push(write);
      else if (hasToken) writes.push({ ...write, isLogged: false });
    }
    return { reads: [...this.#used], writes };
  }
}

/** Keys have no NUL, so two keys cannot be mistaken for each other. */
function idOf({ PK, SK }: Key): string {
  return `${PK}\u0000${SK}`;
}
