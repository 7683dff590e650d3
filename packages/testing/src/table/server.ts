/**
 * The table's side of the simulation: an item store in memory that throttles, locks and lags.
 *
 * A request is served when it arrives. Only a transaction takes time: it holds its items, and a
 * write to one of them meanwhile gets a conflict.
 */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { InfrastructureError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { keyOfWrite } from "@zae-limiter/limiter/storage/checks.ts";
import { type Item, type Key, keyOf } from "@zae-limiter/limiter/storage/item.ts";
import type {
  Query,
  TransactResult,
  Write,
  WriteResult,
} from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import type { VirtualTime } from "../time/virtual-time.ts";
import type { Landing, Outcome, TableCall, TableObserver } from "./call.ts";
import { type FailureKind, failureOf } from "./failure.ts";
import type { Faults } from "./faults.ts";
import { KeyRanges, type Throughput } from "./key-ranges.ts";
import { Lagging } from "./lagging.ts";
import { TransactionTokens } from "./transaction-tokens.ts";
import { indexWrites, readUnits, sizeOf, writeUnits } from "./units.ts";
import type { MutableUsage } from "./usage.ts";

interface ServerOptions {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly throughput: Throughput;
  readonly faults: Faults;
  readonly usage: MutableUsage;
}

const TRANSACTION_MS = 3;

export class Server {
  readonly items: MemoryItemStore;
  /** Sees everything; for checkers. */
  observer: TableObserver = {};
  #faults: Faults = {};
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly #usage: MutableUsage;
  readonly #writes: KeyRanges;
  readonly #reads: KeyRanges;
  readonly #indexes: KeyRanges;
  readonly #lagging: Lagging;
  /** Items that a transaction holds. */
  readonly #held = new Set<string>();
  readonly #tokens = new TransactionTokens();

  constructor({ time, random, throughput, faults, usage }: ServerOptions) {
    this.#time = time;
    this.#random = random;
    this.#usage = usage;
    // Items expire by this clock: where it is late, they are removed late.
    const clock = () => time.clock() - (this.#faults.expiryLagMs ?? 0);
    this.items = new MemoryItemStore({ clock });
    this.#lagging = new Lagging(time, this.items, random);
    this.faults = faults;
    this.#writes = new KeyRanges(throughput.writeUnitsPerSecond, throughput);
    this.#reads = new KeyRanges(throughput.readUnitsPerSecond, throughput);
    this.#indexes = new KeyRanges(throughput.indexWriteUnitsPerSecond, throughput);
  }

  get faults(): Faults {
    return this.#faults;
  }

  /** Sets the faults from now on. */
  set faults(faults: Faults) {
    this.#faults = faults;
    if ((faults.lagMs ?? 0) > 0) this.#lagging.begin();
  }

  /** Sets the throughput of a key from now on. */
  limitWrites({ writeUnitsPerSecond, burstSeconds }: Throughput): void {
    this.#writes.change(writeUnitsPerSecond, burstSeconds);
  }

  async read(
    call: TableCall,
    keys: readonly Key[],
    consistent: boolean,
    snapshot: boolean,
  ): Promise<Outcome<(Item | undefined)[]>> {
    const nowMs = this.#time.nowMs;
    if (snapshot && keys.some((key) => this.#held.has(idOf(key))))
      return this.#fail(call, "cancelled");
    for (const { PK, SK } of keys) {
      if (!this.#reads.allows(PK, SK, nowMs)) return this.#fail(call, "hotRead");
    }
    const found = keys.map((key) => this.#read(key, consistent || snapshot));
    keys.forEach(({ PK, SK }, at) => {
      const units = readUnits(sizeOf(found[at]), consistent || snapshot) * (snapshot ? 2 : 1);
      this.#reads.use(PK, SK, units, nowMs);
      this.#usage.readUnits += units;
    });
    return this.#done(call, found);
  }

  async query(call: TableCall, query: Query): Promise<Outcome<Item[]>> {
    const nowMs = this.#time.nowMs;
    const consistent = query.consistent === true;
    if (query.index === undefined && !this.#reads.allows(query.partition, "", nowMs)) {
      return this.#fail(call, "hotRead");
    }
    const found: Item[] = [];
    const source = query.index === undefined ? this.items : this.#lagging.indexed;
    try {
      for await (const item of source.query(query)) found.push(item);
    } catch (error) {
      return { kind: "wrong", error: error as Error };
    }
    const bytes = found.reduce((sum, item) => sum + sizeOf(item), 0);
    const units = readUnits(bytes, consistent);
    this.#reads.use(`${query.index ?? ""}${query.partition}`, "", units, nowMs);
    this.#usage.readUnits += units;
    return this.#done(call, found);
  }

  /** Applies one write outside a transaction. */
  async write(
    call: TableCall,
    write: Exclude<Write, { check: Key }>,
  ): Promise<Outcome<WriteResult>> {
    const refusal = this.#refusal([write]);
    if (refusal !== undefined) return this.#fail(call, refusal);
    const doing = this.#landing(call, [write], 1, () => this.#perform(write));
    return this.#outcome(call, doing, ({ ok }) => {
      if (ok) return;
      this.#usage.refusedConditions += 1;
      this.observer.missed?.(call, keyOfWrite(write));
    });
  }

  /** Serves puts and deletes that are independent of each other. */
  async batch(call: TableCall, writes: readonly Write[]): Promise<Outcome<void>> {
    const refusal = this.#refusal(writes);
    if (refusal !== undefined) return this.#fail(call, refusal);
    const puts = writes.flatMap((write) => ("put" in write ? [write.put] : []));
    const deletes = writes.flatMap((write) => ("delete" in write ? [write.delete] : []));
    const work = () => this.items.writeMany({ puts, deletes });
    return this.#outcome(call, this.#landing(call, writes, 1, work));
  }

  /** Serves a transaction: all writes or none, and not at once. */
  async transact(call: TableCall, writes: readonly Write[]): Promise<Outcome<TransactResult>> {
    const { token } = call;
    const known = this.#tokens.use(token, writes);
    if (known === "under way") return this.#fail(call, "inProgress");
    if (known === "done") return this.#repeated(call, writes);
    if (known === "of another") return mismatch(token as string);
    const refusal = this.#refusal(writes);
    if (refusal !== undefined) {
      return this.#fail(call, refusal === "conflict" ? "cancelled" : "cancelledHot");
    }
    this.#tokens.begin(token);
    await this.#hold(writes.map((write) => idOf(keyOfWrite(write))));
    this.#tokens.end(token);
    const work = () => this.items.transact(writes, defined({ token }));
    const doing = this.#landing(call, writes, 2, work);
    this.#usage.transactions += 1;
    return this.#outcome(call, doing, ({ ok }) => {
      // One that was cancelled may be tried again with the same token.
      if (ok) this.#tokens.keep(token, writes);
      else this.#usage.refusedConditions += 1;
    });
  }

  /** Answers a transaction that was done before: the same answer, and no second write. */
  #repeated(call: TableCall, writes: readonly Write[]): Outcome<TransactResult> {
    // DynamoDB bills the repetition as a transactional read.
    this.#usage.readUnits += 2 * writes.length;
    return this.#done(call, { ok: true });
  }

  /** Holds these items for a while, so that other writes to them conflict. */
  async #hold(ids: readonly string[]): Promise<void> {
    const longest = this.faults.transactionMs ?? TRANSACTION_MS;
    for (const id of ids) this.#held.add(id);
    await new Promise<void>((resolve) => {
      this.#time.after(this.#random() * longest, resolve);
    });
    for (const id of ids) this.#held.delete(id);
  }

  #perform(write: Exclude<Write, { check: Key }>): Promise<WriteResult> {
    if ("put" in write) return this.items.put(write.put, write.condition);
    if ("delete" in write) return this.items.delete(write.delete, write.condition);
    return this.items.update(write.update, write.change, write.condition);
  }

  /** Starts the work, which writes at once, and shows what has landed. */
  #landing<T>(call: TableCall, writes: readonly Write[], factor: number, work: () => T): T {
    const before = writes.map((write) => this.items.readNow(keyOfWrite(write)));
    const doing = work();
    const landings = writes.map((write, at) => {
      const key = keyOf(keyOfWrite(write));
      const { condition } = write;
      return { key, before: before[at], after: this.items.readNow(key), condition };
    });
    this.#land(call, landings, factor);
    return doing;
  }

  /** Returns the outcome for the caller; `seen` gets it before the observers. */
  async #outcome<T>(
    call: TableCall,
    doing: Promise<T>,
    seen?: (result: T) => void,
  ): Promise<Outcome<T>> {
    try {
      const result = await doing;
      seen?.(result);
      return this.#done(call, result);
    } catch (error) {
      return { kind: "wrong", error: error as Error };
    }
  }

  /** Returns why a write cannot be done now. */
  #refusal(writes: readonly Write[]): FailureKind | undefined {
    const nowMs = this.#time.nowMs;
    for (const write of writes) {
      const key = keyOfWrite(write);
      if (this.#held.has(idOf(key))) return "conflict";
      const before = this.items.readNow(key);
      if (!this.#writes.allows(key.PK, key.SK, nowMs)) return "hotWrite";
      const next = "put" in write ? write.put : "delete" in write ? undefined : before;
      for (const { index, partition, sort } of indexWrites(before, next)) {
        const range = `${index.name} ${partition}`;
        if (!this.#indexes.allows(range, sort, nowMs)) return "hotIndex";
      }
    }
    return undefined;
  }

  /** Counts what was written and notifies the observers. `factor`: transactions pay twice. */
  #land(call: TableCall, landings: readonly Landing[], factor: number): void {
    const nowMs = this.#time.nowMs;
    const changed: Landing[] = [];
    for (const landing of landings) {
      const { key, before, after } = landing;
      const units = factor * writeUnits(before, after);
      this.#writes.use(key.PK, key.SK, units, nowMs);
      this.#usage.writeUnits += units;
      if (before === after) continue;
      changed.push(landing);
      let indexed = false;
      for (const write of indexWrites(before, after)) {
        indexed = true;
        const indexUnits = factor * write.units;
        const range = `${write.index.name} ${write.partition}`;
        this.#indexes.use(range, write.sort, indexUnits, nowMs);
        this.#usage.writeUnits += indexUnits;
        this.#usage.indexUnits += indexUnits;
      }
      this.#lagging.changed(landing, indexed, this.faults.lagMs ?? 0);
    }
    this.#usage.writes += 1;
    if (changed.length === 0) return;
    call.landings.push(...changed);
    this.observer.landed?.(call, changed);
  }

  #read(key: Key, consistent: boolean): Item | undefined {
    return consistent ? this.items.readNow(key) : this.#lagging.read(key);
  }

  #done<T>(call: TableCall, value: T): Outcome<T> {
    this.observer.arrived?.(call, undefined);
    return { kind: "done", value };
  }

  #fail(call: TableCall, kind: FailureKind): Outcome<never> {
    const failure = failureOf(kind);
    if (kind.startsWith("hot") || kind === "cancelledHot") this.#usage.throttled += 1;
    if (failure.keyRange || kind === "cancelledHot") this.#usage.throttledKeys += 1;
    if (kind === "conflict" || kind === "cancelled") this.#usage.conflicts += 1;
    this.observer.arrived?.(call, failure);
    return { kind: "failed", failure };
  }
}

function mismatch(token: string): Outcome<never> {
  const sentence = `The token ${token} was used before, for another transaction`;
  return { kind: "wrong", error: new InfrastructureError(sentence) };
}

function idOf({ PK, SK }: Key): string {
  return `${PK} ${SK}`;
}
