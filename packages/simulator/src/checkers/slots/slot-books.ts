/**
 * Follows the slots in bucket items: what is free and what is held is all there is, through every
 * write, split and merge. An entry is written by its process alone; another one may only remove it,
 * once the record of the holder is over. When all calls have ended, no process holds anything.
 */

import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { Landing, TableCall } from "@zae-limiter/testing/table/call.ts";
import { isBucket } from "../bucket-image.ts";
import { isStub } from "../merged-shard.ts";
import { Violation } from "../violation.ts";
import { allIn, type EntryOfShard, heldIn, type SlotsOfShard, slotsOf } from "./slot-image.ts";

const HOLDER_PATTERN = /^_\/HOLDER#(.+)$/;
const PLACE_PATTERN = /^[^/]*\/BUCKET#(.+#[^#]+)#(\d+)$/;

/** A process as a holder of slots. */
interface Holder {
  readonly process: number;
  untilMs: number;
}

export class SlotBooks {
  readonly #holders = new Map<string, Holder>();
  readonly #lost = new Set<string>();
  readonly #crashed = new Set<number>();
  /** How far clocks may differ: a record that is over for one may not be for another. */
  readonly #toleranceMs: number;

  constructor(toleranceMs: number) {
    this.#toleranceMs = toleranceMs;
  }

  landed(call: TableCall, landings: readonly Landing[], nowMs: number): void {
    for (const { key, after } of landings) {
      const id = HOLDER_PATTERN.exec(key.PK)?.[1];
      if (id === undefined) continue;
      const untilMs = typeof after?.until === "number" ? after.until : Number.NEGATIVE_INFINITY;
      this.#holders.set(id, { process: call.process, untilMs });
    }
    const buckets = landings.filter(({ key }) => isBucket(key));
    this.#checkSums(buckets);
    // A merge moves entries of others from one shard to another.
    if (landings.length === 1) for (const each of buckets) this.#checkOwners(call, each, nowMs);
  }

  /** Notes that a process knows that it has lost what it held under an id. */
  lost(holderId: string): void {
    this.#lost.add(holderId);
  }

  crashed(process: number): void {
    this.#crashed.add(process);
  }

  /** Checks at the end that processes which are alive hold nothing. */
  close(items: readonly Item[]): void {
    for (const { PK, limit, entry, mark } of items.flatMap(marksOf)) {
      const id = holderOf(entry);
      const process = this.#holders.get(id)?.process;
      if (mark.count === 0 || process === undefined) continue;
      if (this.#crashed.has(process) || this.#lost.has(id)) continue;
      const detail = `"${limit}" has ${mark.count} slots held by ${entry}, whose calls have ended`;
      throw new Violation("conservation", PK, `${detail} in process ${process}`);
    }
  }

  #checkSums(landings: readonly Landing[]): void {
    const changes = new Map<string, number>();
    for (const [slot, change] of landings.flatMap(changesIn)) {
      changes.set(slot, (changes.get(slot) ?? 0) + change);
    }
    for (const [slot, change] of changes) {
      if (change === 0) continue;
      const checker = change > 0 ? "over-admission" : "conservation";
      const detail = `a write makes ${change} slots: ${landings.map(describe).join("; ")}`;
      throw new Violation(checker, slot, detail);
    }
  }

  #checkOwners({ process }: TableCall, { key, before, after }: Landing, nowMs: number): void {
    if (before === undefined || after === undefined) return;
    const now = slotsOf(after);
    for (const { limit, entry, mark } of marksOf(before)) {
      const left = now.get(limit);
      const holder = this.#holders.get(holderOf(entry));
      // A limit that goes takes its entries with it.
      if (left === undefined || holder === undefined || holder.process === process) continue;
      const found = left.entries.get(entry);
      if (found?.sequence === mark.sequence && found.count === mark.count) continue;
      if (found === undefined && this.#isDead(holder, nowMs)) continue;
      const what = found === undefined ? "removes" : "changes";
      const detail = `process ${process} ${what} the entry ${entry} of process ${holder.process}`;
      throw new Violation("leases", `"${limit}" of ${key.PK}`, detail);
    }
  }

  #isDead({ process, untilMs }: Holder, nowMs: number): boolean {
    return untilMs <= nowMs + this.#toleranceMs || this.#crashed.has(process);
  }
}

/** One entry of an item. */
interface MarkOf {
  readonly PK: string;
  readonly limit: string;
  readonly entry: string;
  readonly mark: EntryOfShard;
}

function marksOf(item: Item): readonly MarkOf[] {
  return [...slotsOf(item)].flatMap(([limit, { entries }]) =>
    [...entries].map(([entry, mark]) => ({ PK: item.PK, limit, entry, mark })),
  );
}

/** Returns by how many slots a landing changes what a shard has, by bucket and limit. */
function changesIn({ key, before, after }: Landing): readonly (readonly [string, number])[] {
  if (after === undefined) return [];
  const [bucket = key.PK, shard] = placeOf(key.PK);
  const isTakenIn = isStub(after);
  const [was, is] = [slotsOf(before), slotsOf(isTakenIn ? undefined : after)];
  return [...new Set([...was.keys(), ...is.keys()])].flatMap((limit) => {
    const change = changeOf(was.get(limit), is.get(limit), shard === "0", isTakenIn);
    return change === undefined ? [] : [[`${bucket} ${limit}`, change] as const];
  });
}

/**
 * Returns by how many slots a shard has more than before, beyond those that it may begin with;
 * `undefined` where the number of slots was changed.
 */
function changeOf(
  was: SlotsOfShard | undefined,
  is: SlotsOfShard | undefined,
  isFirst: boolean,
  isTakenIn: boolean,
): number | undefined {
  if (was !== undefined && is !== undefined) {
    return was.capacity === is.capacity ? allIn(is) - allIn(was) : undefined;
  }
  // The first shard of a bucket begins with all slots, and the others with what they are given.
  if (is !== undefined) return allIn(is) - (isFirst ? is.capacity : 0);
  return was !== undefined && isTakenIn ? -allIn(was) : undefined;
}

function placeOf(PK: string): readonly (string | undefined)[] {
  return (PLACE_PATTERN.exec(PK) ?? []).slice(1);
}

function holderOf(entry: string): string {
  return entry.slice(0, entry.lastIndexOf("."));
}

function describe({ key, before, after }: Landing): string {
  const textOf = (item: Item | undefined) =>
    [...slotsOf(item)].map(([limit, { free, entries }]) => {
      return `${limit} ${free} free and ${heldIn(entries)} held`;
    });
  return `${key.PK}: ${textOf(before).join(", ")} becomes ${textOf(after).join(", ")}`;
}
