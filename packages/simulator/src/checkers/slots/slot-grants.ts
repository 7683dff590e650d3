/**
 * The slots that calls hold, by what the calls themselves say: of processes that are alive and can
 * reach the table, never more than there are. A slot is held from its grant until its call begins
 * to give it back, which is before the table knows.
 */

import { Violation } from "../violation.ts";

/** The slots of one limit of one bucket that a call holds. */
export interface SlotGrant {
  readonly process: number;
  /** Entity, resource and limit. */
  readonly slot: string;
  readonly count: number;
}

export class SlotGrants {
  readonly #held = new Map<string, Set<SlotGrant>>();

  /** Adds a grant. `slots`: how many the limit has. */
  take(grant: SlotGrant, slots: number): void {
    const held = this.#held.get(grant.slot) ?? new Set<SlotGrant>();
    this.#held.set(grant.slot, held.add(grant));
    let sum = 0;
    for (const { count } of held) sum += count;
    if (sum <= slots) return;
    const detail = `calls hold ${sum} of ${slots} slots: ${describe(held)}`;
    throw new Violation("over-admission", grant.slot, detail);
  }

  /** Removes a grant whose call gives back; nothing where its process has lost it before. */
  give(grant: SlotGrant): void {
    this.#held.get(grant.slot)?.delete(grant);
  }

  /** Removes the grants of a process that is dead, or that knows that it has lost them. */
  drop(process: number): void {
    for (const held of this.#held.values()) {
      for (const grant of held) if (grant.process === process) held.delete(grant);
    }
  }
}

function describe(held: ReadonlySet<SlotGrant>): string {
  return [...held].map(({ process, count }) => `${count} by process ${process}`).join(", ");
}
