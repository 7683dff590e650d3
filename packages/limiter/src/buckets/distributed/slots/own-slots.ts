/**
 * The slots of this process in bucket items. All writes that move them go through here, one at a
 * time for an item: each tests the sequence that the one before it has left.
 *
 * Before the next write to an item, one whose outcome is unknown is settled: it has happened, or a
 * fence makes sure that it never does. A take that no lease knows of is given back in the
 * background.
 */

import { BackgroundWork } from "../../../base/background.ts";
import { entryOf } from "../../../base/entry.ts";
import { Deadline } from "../../../base/time.ts";
import { RateLimiterUnavailable, ValidationError } from "../../../domain/errors/errors.ts";
import { inTime } from "../../../domain/errors/in-time.ts";
import { tooBusy, unwritten } from "../../../domain/errors/unavailability.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import { freeOf, SLOTS_MAX } from "../../../records/slot-attributes.ts";
import type { Item, Key } from "../../../storage/item.ts";
import type { CallOptions, Change, Condition } from "../../../storage/item-store.ts";
import { holderOf, type SlotHolder } from "../../slots/slot-holder.ts";
import { type UntilAnsweredOptions, untilAnswered } from "../../slots/until-answered.ts";
import type { WritePlan } from "../plan/write-plan.ts";
import {
  type EntryWrite,
  entryWrite,
  fenceOf,
  fenceRequest,
  marksAfter,
  NO_OWN,
  type Outcome,
  type OwnMarks,
  outcomeOf,
  slotsIn,
  withEntry,
} from "./own-entries.ts";

/** A planned write to one item. */
export interface SlotMove {
  readonly key: Key;
  readonly plan: Pick<WritePlan, "change" | "condition" | "slots">;
  /** The entry that gives slots back; absent: the one of this process takes them. */
  readonly entry?: string | undefined;
}

/** A write that has its entry. */
export interface SlotRequest {
  readonly change: Change;
  readonly condition: Condition;
}

/** The outcome of several writes, of which all are made or none. */
export interface Sent {
  readonly ok: boolean;
  /** The items that the store has shown, by the number of their write. */
  readonly items: ReadonlyMap<number, Item | undefined>;
}

export interface SlotsSent extends Sent {
  /** When the store was asked: turns and unknown outcomes come before. */
  readonly askedMs: number;
  /** The entry of each write; `undefined` where it moves no slots. */
  readonly entries: readonly (string | undefined)[];
}

/** A write whose outcome is unknown. */
export interface UnsureWrite {
  readonly key: Key;
  readonly write: EntryWrite;
  /** Absent until it is known. */
  outcome: Exclude<Outcome, "open"> | undefined;
}

/** The entries of this process in one item. */
interface Place {
  readonly entries: Map<string, OwnMarks>;
  unsure: UnsureWrite | undefined;
  /** Resolves when the last write of those that were asked for has ended. */
  last: Promise<void> | undefined;
}

export interface OwnSlotsOptions extends UntilAnsweredOptions {
  readonly holder: Pick<SlotHolder, "current" | "renew" | "newEntry" | "add" | "close">;
  readonly timeoutMs: number;
}

export class OwnSlots {
  readonly #store: RecordContext["store"];
  readonly #clock: RecordContext["clock"];
  readonly #options: OwnSlotsOptions;
  readonly #places = new Map<string, Place>();
  readonly #work = new BackgroundWork();

  constructor({ store, clock }: Pick<RecordContext, "store" | "clock">, options: OwnSlotsOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#options = options;
  }

  /**
   * Sends writes with the entries of their slots. `undefined`, with nothing sent: an entry that
   * gives back is gone, or has less. `onUnsure` gets those whose outcome is unknown.
   */
  write(
    moves: readonly SlotMove[],
    deadline: Deadline,
    send: (requests: readonly SlotRequest[]) => Promise<Sent>,
    onUnsure?: (unsure: UnsureWrite) => void,
  ): Promise<SlotsSent | undefined> {
    const keys = moves.filter(({ plan }) => plan.slots !== undefined).map(({ key }) => key);
    return this.#inTurn(keys, deadline, async () => {
      const writes = await this.#writesFor(moves, keys, deadline);
      if (writes === undefined) return undefined;
      const requests = moves.map(({ plan }, at) => {
        const write = writes[at];
        return write === undefined ? plan : withEntry(plan, write);
      });
      const askedMs = this.#clock();
      let sent: Sent;
      try {
        sent = await send(requests);
      } catch (error) {
        if (!isUnwritten(error)) this.#keepUnsure(moves, writes, onUnsure);
        throw error;
      }
      writes.forEach((write, at) => {
        if (write !== undefined) this.#record((moves[at] as SlotMove).key, write, sent, at);
      });
      return { ...sent, askedMs, entries: writes.map((write) => write?.entry) };
    });
  }

  /** Sends one write by an update, as `write` does. */
  update(
    move: SlotMove,
    deadline: Deadline,
    options: Pick<CallOptions, "hotKey"> = {},
    onUnsure?: (unsure: UnsureWrite) => void,
  ): Promise<SlotsSent | undefined> {
    const send = async ([request]: readonly SlotRequest[]): Promise<Sent> => {
      const { change, condition } = request as SlotRequest;
      const call = { ...options, timeoutMs: deadline.timeoutMs };
      const { ok, item } = await this.#store.update(move.key, change, condition, call);
      return { ok, items: new Map([[0, item]]) };
    };
    return this.write([move], deadline, send, onUnsure);
  }

  /** Whether a write of unknown outcome has happened; where its entry is gone, it may have. */
  async hasArrived(unsure: UnsureWrite, deadline: Deadline): Promise<boolean> {
    await this.#inTurn([unsure.key], deadline, () => this.#settle(unsure.key, deadline));
    return unsure.outcome !== "fenced";
  }

  /** Waits until slots are given back in the background, and closes the holder. */
  async close(): Promise<void> {
    await this.#work.idle();
    await this.#options.holder.close();
  }

  /** Prepares writes; nothing of the call is written until they are sent. */
  async #writesFor(
    moves: readonly SlotMove[],
    keys: readonly Key[],
    deadline: Deadline,
  ): Promise<readonly (EntryWrite | undefined)[] | undefined> {
    try {
      for (const key of keys) await this.#settle(key, deadline);
      const takes = moves.some(
        ({ plan, entry }) => plan.slots !== undefined && entry === undefined,
      );
      const holderId = takes ? await this.#holderId(deadline.timeoutMs) : undefined;
      if (deadline.isOver) throw tooBusy("The slots of the bucket changed too often");
      const writes = moves.map((move) => this.#writeOf(move, holderId));
      return writes.every((write) => write !== "gone") ? writes : undefined;
    } catch (error) {
      throw unwritten(error);
    }
  }

  async #holderId(timeoutMs: number): Promise<string> {
    const { holder } = this.#options;
    return holder.current ?? (await holder.renew(timeoutMs));
  }

  #writeOf(
    { key, plan, entry }: SlotMove,
    holderId: string | undefined,
  ): EntryWrite | undefined | "gone" {
    if (plan.slots === undefined) return undefined;
    const { entries } = this.#placeOf(key);
    const name = entry ?? this.#entryOf(entries, holderId as string);
    const marks = entries.get(name);
    if (entry !== undefined && marks === undefined) return "gone";
    const write = entryWrite(name, marks ?? NO_OWN, plan.slots);
    if (write === undefined) return "gone";
    for (const { count } of write.after.values()) if (count > SLOTS_MAX) refuseSlots(count);
    return write;
  }

  #entryOf(entries: ReadonlyMap<string, OwnMarks>, holderId: string): string {
    for (const name of entries.keys()) if (holderOf(name) === holderId) return name;
    return this.#options.holder.newEntry(holderId);
  }

  /** Records the outcome of a write. One that failed shows whether the entry is as it was left. */
  #record(key: Key, write: EntryWrite, { ok, items }: Sent, at: number): void {
    if (ok) {
      this.#set(key, write);
      this.#options.holder.add(write.entry, write.slots);
    } else if (items.has(at) && outcomeOf(items.get(at), write) !== "open") {
      this.#drop(key, write.entry);
    }
  }

  #set(key: Key, write: EntryWrite): void {
    const { entries } = this.#placeOf(key);
    const marks = marksAfter(entries.get(write.entry) ?? NO_OWN, write);
    if (marks === undefined) entries.delete(write.entry);
    else entries.set(write.entry, marks);
  }

  /** Forgets an entry that is gone: its leases hold nothing any more. */
  #drop(key: Key, entry: string): void {
    const { entries } = this.#placeOf(key);
    this.#options.holder.add(entry, -slotsIn(entries.get(entry) ?? NO_OWN));
    entries.delete(entry);
  }

  #keepUnsure(
    moves: readonly SlotMove[],
    writes: readonly (EntryWrite | undefined)[],
    onUnsure: ((unsure: UnsureWrite) => void) | undefined,
  ): void {
    writes.forEach((write, at) => {
      if (write === undefined) return;
      const { key } = moves[at] as SlotMove;
      const unsure: UnsureWrite = { key, write, outcome: undefined };
      this.#placeOf(key).unsure = unsure;
      onUnsure?.(unsure);
      if (write.slots <= 0) return;
      // They count as held until that is known, so that this process renews its record.
      this.#options.holder.add(write.entry, write.slots);
      this.#work.add(this.#giveBack(unsure));
    });
  }

  /** Gives back slots that were taken for no lease, once it is known that they were. */
  async #giveBack(taken: UnsureWrite): Promise<void> {
    const { timer, timeoutMs } = this.#options;
    const { key, write } = taken;
    const plan = releaseOf(write);
    let release: UnsureWrite | undefined;
    const ask = async () => {
      const deadline = () => new Deadline(timer, timeoutMs);
      if (!(await this.hasArrived(taken, deadline()))) return;
      if (release !== undefined && (await this.hasArrived(release, deadline()))) return;
      release = undefined;
      const move = { key, plan, entry: write.entry };
      await this.update(move, deadline(), {}, (unsure) => {
        release = unsure;
      });
    };
    await untilAnswered(ask, this.#options);
  }

  /** Settles a write whose outcome is unknown: a fence stops one that may still happen. */
  async #settle(key: Key, deadline: Deadline): Promise<void> {
    const place = this.#placeOf(key);
    const { unsure } = place;
    if (unsure === undefined) return;
    const { write } = unsure;
    const { holder } = this.#options;
    const outcome = await this.#outcomeOf(key, write, deadline);
    place.unsure = undefined;
    unsure.outcome = outcome;
    if (outcome === "landed") this.#set(key, write);
    if (outcome === "fenced") this.#set(key, fenceOf(write));
    if (outcome === "gone") this.#drop(key, write.entry);
    // Slots that may have been taken are counted already, and those given back are not.
    const counted = Math.max(0, write.slots);
    holder.add(write.entry, (outcome === "landed" ? write.slots : 0) - counted);
  }

  async #outcomeOf(
    key: Key,
    write: EntryWrite,
    deadline: Deadline,
  ): Promise<Exclude<Outcome, "open">> {
    const { timeoutMs } = deadline;
    const item = await this.#store.get(key, { consistent: true, timeoutMs });
    const outcome = outcomeOf(item, write);
    if (outcome !== "open") return outcome;
    const { change, condition } = fenceRequest(write);
    const left = { timeoutMs: deadline.timeoutMs };
    const fence = await this.#store.update(key, change, condition, left);
    const after = outcomeOf(fence.item, write);
    if (after === "open") throw tooBusy("The slots of the bucket changed too often");
    return after;
  }

  /**
   * Does work while no other write of this process moves slots of these items. A call whose time is
   * over before its turn comes leaves, and passes its turn on when it comes.
   */
  async #inTurn<T>(keys: readonly Key[], deadline: Deadline, work: () => Promise<T>): Promise<T> {
    const places = keys.map((key) => this.#placeOf(key));
    const before = places.flatMap(({ last }) => last ?? []);
    let end: () => void = () => {};
    const mine = new Promise<void>((resolve) => {
      end = resolve;
    });
    // All turns are taken at once, so that no two writes wait for each other.
    for (const place of places) place.last = mine;
    const turn = before.length === 0 ? undefined : Promise.all(before);
    const leave = () => {
      end();
      for (const { PK } of keys) this.#forgetIdle(PK, mine);
    };
    try {
      if (turn !== undefined) await inTime(this.#options.timer, deadline, turn, true);
    } catch (error) {
      void turn?.then(leave);
      throw error;
    }
    try {
      return await work();
    } finally {
      leave();
    }
  }

  #forgetIdle(id: string, mine: Promise<void>): void {
    const place = this.#places.get(id);
    if (place === undefined || place.last !== mine) return;
    place.last = undefined;
    if (place.entries.size === 0 && place.unsure === undefined) this.#places.delete(id);
  }

  #placeOf({ PK }: Key): Place {
    return entryOf(this.#places, PK, () => ({
      entries: new Map(),
      unsure: undefined,
      last: undefined,
    }));
  }
}

/** Returns the write that gives back the slots of another one. */
function releaseOf({ before, after }: EntryWrite): SlotMove["plan"] {
  const slots = new Map<string, number>();
  const add: Record<string, number> = {};
  for (const [limit, { count }] of after) {
    const taken = count - (before.get(limit)?.count ?? 0);
    slots.set(limit, -taken);
    add[freeOf(limit)] = taken;
  }
  return { change: { add }, condition: [], slots };
}

function isUnwritten(error: unknown): boolean {
  return error instanceof RateLimiterUnavailable && error.nothingWritten;
}

function refuseSlots(count: number): never {
  const reason = `one process holds at most ${SLOTS_MAX} slots of a bucket, and it would be ${count}`;
  throw new ValidationError("consume", count, reason);
}
