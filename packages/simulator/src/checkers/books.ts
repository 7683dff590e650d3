/**
 * Two sets of books: what the table says each process has consumed (`tc`), and what the calls of
 * that process say they have kept. They must agree to the milli-token.
 *
 * A write that landed without an answer to its process is on neither side: it stays consumed, and
 * is counted apart. What a crashed process had under way is known only within bounds.
 */

import type { TableCall } from "@zae-limiter/testing/table/call.ts";
import type { ShardImage } from "./bucket-image.ts";
import type { BucketLanding } from "./ledger.ts";
import { Violation } from "./violation.ts";

/** Returns the key of one limit of one bucket. */
export function slotOf(entityId: string, resource: string, limitName: string): string {
  return `${entityId} ${resource} ${limitName}`;
}

/** Milli-tokens per slot. */
export type Amounts = ReadonlyMap<string, number>;

/** Tokens that the calls of a process kept; `from` is below `to` if the outcome is unknown. */
interface Claim {
  from: number;
  to: number;
}

interface Page {
  readonly heard: Map<string, number>;
  readonly claimed: Map<string, Claim>;
}

export class Books {
  readonly #pages = new Map<number, Page>();
  /** Amounts by slot that landed without an answer to their process. */
  readonly #unheard = new Map<string, number>();
  /** Amounts by token that landed; their process may learn of them from a repetition. */
  readonly #byToken = new Map<string, { slot: string; amount: number }[]>();
  readonly #byCall = new WeakMap<TableCall, { slot: string; amount: number }[]>();
  /** Calls that have given slots back. */
  readonly #freeing = new WeakSet<TableCall>();
  /** Processes with calls of unknown outcome. */
  readonly #unsure = new Set<number>();
  #hasSlots = false;
  /** Calls that their process waits for no more. */
  readonly #ended = new WeakSet<TableCall>();
  /** Slots whose count started again: the limit was removed, or the bucket. */
  readonly #restarted = new Set<string>();
  readonly #totals = new Map<string, bigint>();
  /** Shards that are there, as they were last written. */
  readonly #live = new Map<string, ShardImage>();

  landed(call: TableCall, landings: readonly BucketLanding[]): void {
    for (const { PK, before, after, merged, givesSlots } of landings) {
      if (givesSlots === true) {
        this.#freeing.add(call);
        this.#hasSlots = true;
      }
      if (merged !== undefined) this.#live.delete(merged.PK);
      // A bucket that existed and was not deleted has expired.
      this.#noteRestarts(before ?? this.#live.get(PK), before === undefined ? undefined : after);
      if (after === undefined) this.#live.delete(PK);
      else this.#live.set(PK, after);
      if (after !== undefined) this.#enter(call, before, after);
    }
    // It was late, and its process finds out.
    if (this.#freeing.has(call) && this.#ended.has(call)) this.answered(call);
  }

  /** Writes down what the landing has consumed, for the call to answer for. */
  #enter(call: TableCall, before: ShardImage | undefined, after: ShardImage): void {
    for (const limit of after.limits) {
      const was = before?.limits.find(({ name }) => name === limit.name)?.consumed ?? 0n;
      const amount = limit.consumed - was;
      if (amount === 0n) continue;
      const slot = slotOf(after.entityId, after.resource, limit.name);
      this.#totals.set(slot, (this.#totals.get(slot) ?? 0n) + amount);
      const entries = this.#byCall.get(call) ?? [];
      this.#byCall.set(call, entries);
      entries.push({ slot, amount: Number(amount) });
      if (call.token !== undefined) this.#byToken.set(call.token, entries);
    }
  }

  answered(call: TableCall): void {
    const entries =
      call.token === undefined ? this.#byCall.get(call) : this.#byToken.get(call.token);
    if (call.token !== undefined) this.#byToken.delete(call.token);
    for (const { slot, amount } of entries ?? []) add(this.#page(call.process).heard, slot, amount);
    this.#byCall.delete(call);
  }

  unanswered(call: TableCall): void {
    this.#ended.add(call);
    this.#unsure.add(call.process);
    if (call.token !== undefined) return;
    if (this.#freeing.has(call)) {
      this.answered(call);
      return;
    }
    for (const { slot, amount } of this.#byCall.get(call) ?? []) add(this.#unheard, slot, amount);
    this.#byCall.delete(call);
  }

  /** Adds the amounts that a call of the process says it has kept. */
  claim(process: number, from: Amounts, to: Amounts = from): void {
    const { claimed } = this.#page(process);
    for (const slot of new Set([...from.keys(), ...to.keys()])) {
      const claim = claimed.get(slot) ?? { from: 0, to: 0 };
      claimed.set(slot, claim);
      const [one, other] = [from.get(slot) ?? 0, to.get(slot) ?? 0];
      claim.from += Math.min(one, other);
      claim.to += Math.max(one, other);
    }
  }

  /** Consumption that no call was granted, in milli-tokens. */
  get unheardMilli(): number {
    let sum = 0;
    for (const amount of this.#unheard.values()) sum += amount;
    return sum;
  }

  /** Compares the books at the end of a run; `images` are all stored shards. */
  close(images: readonly ShardImage[]): void {
    const there = new Set(images.map(({ id }) => id));
    for (const image of this.#live.values()) {
      if (!there.has(image.id)) this.#noteRestarts(image, undefined);
    }
    for (const [process, page] of this.#pages) this.#compare(process, page);
    const stored = new Map<string, bigint>();
    for (const image of images) {
      for (const { name, consumed } of image.limits) {
        const slot = slotOf(image.entityId, image.resource, name);
        stored.set(slot, (stored.get(slot) ?? 0n) + consumed);
      }
    }
    for (const [slot, total] of this.#totals) {
      const found = stored.get(slot) ?? 0n;
      if (this.#restarted.has(slot) || found === total) continue;
      throw new Violation("books", slot, `tc says ${found}, and ${total} milli were written`);
    }
  }

  #compare(process: number, { heard, claimed }: Page): void {
    for (const slot of new Set([...heard.keys(), ...claimed.keys()])) {
      if (this.#restarted.has(slot)) continue;
      const found = heard.get(slot) ?? 0;
      const { from, to } = claimed.get(slot) ?? { from: 0, to: 0 };
      if (found >= from && found <= to) continue;
      // A refund that rode on slots which are gone may have happened: it is not made again.
      if (found > to && this.#hasSlots && this.#unsure.has(process)) continue;
      const kept = from === to ? `${from}` : `${from} to ${to}`;
      const detail = `${found} milli were consumed for it, and its calls have kept ${kept}`;
      throw new Violation("books", `${slot} of process ${process}`, detail);
    }
  }

  #noteRestarts(before: ShardImage | undefined, after: ShardImage | undefined): void {
    if (before === undefined) return;
    const kept = new Set(after?.limits.map(({ name }) => name));
    for (const { name } of before.limits) {
      if (kept.has(name)) continue;
      this.#restarted.add(slotOf(before.entityId, before.resource, name));
    }
  }

  #page(process: number): Page {
    const page = this.#pages.get(process) ?? { heard: new Map(), claimed: new Map() };
    this.#pages.set(process, page);
    return page;
  }
}

function add(sums: Map<string, number>, slot: string, amount: number): void {
  sums.set(slot, (sums.get(slot) ?? 0) + amount);
}
