/**
 * This process as a holder of slots. It has one record for all the slots that it holds, renews it
 * while it holds any, and takes a new id when it finds that its record was over: others may have
 * given its slots away by then, and a holder that is dead must stay dead.
 */

import type { ProcessMark } from "../../base/process-mark.ts";
import { type Random, randomToken } from "../../base/random.ts";
import { type Clock, Deadline, type Timer } from "../../base/time.ts";
import { inTime } from "../../domain/errors/in-time.ts";
import type { HolderRecord, HolderRecords } from "../../records/holders.ts";

/** How long a process keeps its slots without a sign of life. */
export interface HolderTimes {
  /** Milliseconds from a renewal until its record is over. */
  readonly expiryMs: number;
  /** Milliseconds by which clocks of the processes may differ. */
  readonly graceMs: number;
}

/** Times of a store that the processes of one machine share. */
export const LOCAL_HOLDERS: HolderTimes = { expiryMs: 15_000, graceMs: 0 };
/** Times of a store behind a network. */
export const REMOTE_HOLDERS: HolderTimes = { expiryMs: 60_000, graceMs: 6000 };

/** Returns the times of a store, with the expiry that was asked for. */
export function holderTimes(times: HolderTimes, expirySeconds: number | undefined): HolderTimes {
  if (expirySeconds === undefined) return times;
  return { expiryMs: Math.ceil(expirySeconds * 1000), graceMs: times.graceMs };
}

/** A record is renewed this many times before it would be over. */
const BEATS = 3;
/** Six characters of a record's id are enough: each names a process that holds slots now. */
const ID_BYTES = 6;

/** Slots that a process held when it was cut off for longer than its record lasts. */
export interface SlotsLostWarning {
  readonly kind: "slots_lost";
  /** The holder that other processes may have taken them from. */
  readonly holderId: string;
  /** How many slots of its leases it held. */
  readonly slots: number;
}

export interface SlotHolderOptions {
  readonly records: Pick<HolderRecords, "write" | "remove">;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly random: Random;
  readonly times: HolderTimes;
  /** Identifies this process on its machine, where the processes of one machine share the store. */
  readonly process?: ProcessMark | undefined;
}

export class SlotHolder {
  readonly #options: SlotHolderOptions;
  readonly #listeners = new Set<(warning: SlotsLostWarning) => void>();
  readonly #closing = new AbortController();
  #id: string;
  #untilMs = Number.NEGATIVE_INFINITY;
  /** Slots that leases hold under the id. */
  #held = 0;
  #entries = 0;
  #renewing: Promise<string> | undefined;
  #beating = false;

  constructor(options: SlotHolderOptions) {
    this.#options = options;
    this.#id = this.#newId();
  }

  /** The times by which it lives. */
  get times(): HolderTimes {
    return this.#options.times;
  }

  /** The id to hold slots under; `undefined`: its record has to be renewed first. */
  get current(): string | undefined {
    return this.#leftMs > this.#beatMs ? this.#id : undefined;
  }

  /** Whether the record of an id of this process is over; it has another id by now, or not yet. */
  isOver(id: string, nowMs: number): boolean {
    return id !== this.#id || nowMs >= this.#untilMs;
  }

  /** Returns the name of a new entry of a bucket under a holder. */
  newEntry(holderId: string): string {
    this.#entries += 1;
    return entryName(holderId, this.#entries);
  }

  /** Calls the listener when slots were lost; the result removes it. */
  onLost(listener: (warning: SlotsLostWarning) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Writes the record, and returns the id to hold slots under. Calls meanwhile share it. */
  renew(timeoutMs?: number): Promise<string> {
    if (this.#renewing !== undefined) return this.#shared(this.#renewing, timeoutMs);
    this.#renewing = this.#renew(timeoutMs).finally(() => {
      this.#renewing = undefined;
    });
    return this.#renewing;
  }

  /** Counts slots of an entry that leases hold; less than zero: gave back. */
  add(entry: string, slots: number): void {
    if (holderOf(entry) !== this.#id) return;
    this.#held = Math.max(0, this.#held + slots);
    if (this.#held > 0 && !this.#beating) void this.#beat();
  }

  /** Ends the renewals, and removes the record where nothing is held. */
  async close(): Promise<void> {
    this.#closing.abort();
    if (this.#held > 0 || !this.#isWritten) return;
    // A record without slots that stays does no harm.
    await this.#options.records.remove(this.#id).catch(() => {});
  }

  get #isWritten(): boolean {
    return this.#untilMs > Number.NEGATIVE_INFINITY;
  }

  get #leftMs(): number {
    return this.#untilMs - this.#options.clock();
  }

  get #beatMs(): number {
    return this.#options.times.expiryMs / BEATS;
  }

  /**
   * Waits for the renewal of another call, which may have more time than this one, or less: this
   * one ends at its own, and until then it renews by itself where the other failed.
   */
  async #shared(renewing: Promise<string>, timeoutMs: number | undefined): Promise<string> {
    if (timeoutMs === undefined) return renewing;
    const { timer } = this.#options;
    const deadline = new Deadline(timer, timeoutMs);
    try {
      return await inTime(timer, deadline, renewing, true);
    } catch (error) {
      if (deadline.isOver) throw error;
      return this.renew(deadline.timeoutMs);
    }
  }

  /**
   * Writes the record. Where the answer comes after the last one was over, other processes may have
   * given the slots away before the write: it begins again, under another id.
   */
  async #renew(timeoutMs: number | undefined): Promise<string> {
    const { clock, timer, records, times, process } = this.#options;
    if (this.#isWritten && this.#leftMs <= 0) this.#startOver();
    const deadline = timeoutMs === undefined ? undefined : new Deadline(timer, timeoutMs);
    const id = this.#id;
    const untilMs = clock() + times.expiryMs;
    const record: HolderRecord = { id, untilMs, process };
    await records.write(record, timeoutMs);
    if (this.#isWritten && this.#leftMs <= 0) return this.#renew(deadline?.timeoutMs);
    // The clock may have been set back meanwhile: a record that was written counts as it is.
    this.#untilMs = untilMs;
    return id;
  }

  /** Takes a new id: other processes may hold the slots of the old one by now. */
  #startOver(): void {
    const warning = { kind: "slots_lost", holderId: this.#id, slots: this.#held } as const;
    this.#id = this.#newId();
    this.#untilMs = Number.NEGATIVE_INFINITY;
    this.#held = 0;
    if (warning.slots === 0) return;
    for (const listener of this.#listeners) listener(warning);
  }

  /**
   * Renews the record until nothing is held any more. A call may come late in a renewal that was
   * made for another one: then the next is due sooner, when a third of the expiry is left.
   */
  async #beat(): Promise<void> {
    const { timer } = this.#options;
    const { signal } = this.#closing;
    const beatMs = this.#beatMs;
    this.#beating = true;
    let pauseMs = Math.min(beatMs, this.#leftMs - beatMs);
    while (this.#held > 0 && !signal.aborted) {
      await timer.sleep(Math.max(0, pauseMs), signal, true);
      if (this.#held === 0 || signal.aborted) break;
      const fromMs = timer.nowMs();
      // A store that cannot answer is asked again, a beat after it was asked before.
      await this.renew(beatMs).catch(() => {});
      pauseMs = beatMs - (timer.nowMs() - fromMs);
    }
    this.#beating = false;
  }

  #newId(): string {
    return randomToken(this.#options.random, ID_BYTES).replace(/[-_]/g, "x");
  }
}

/** Returns the name of an entry of a holder. */
export function entryName(holderId: string, serial: number): string {
  return `${holderId}.${serial.toString(36)}`;
}

/** Returns the holder of an entry. */
export function holderOf(entry: string): string {
  return entry.slice(0, entry.lastIndexOf("."));
}

/** Whether the process of a record cannot use its slots any more; without a record it cannot. */
export function isOver(
  record: HolderRecord | undefined,
  times: HolderTimes,
  nowMs: number,
): boolean {
  return record === undefined || record.untilMs + times.graceMs <= nowMs;
}
