/** Counts how the calls ended, by key. */

import type { CallReport } from "./gateway.ts";

/** Counts the calls of one key, or of all keys. */
export interface Counts {
  readonly answered: number;
  readonly refused: number;
  readonly failed: number;
  /** Tokens, of the calls that were answered. */
  readonly estimated: number;
  readonly used: number;
}

const NONE: Counts = { answered: 0, refused: 0, failed: 0, estimated: 0, used: 0 };

export class Tally {
  readonly #byKey = new Map<string, Counts>();

  add({ entityId, outcome, estimated, used }: CallReport): void {
    const before = this.of(entityId);
    const isAnswered = outcome === "answered";
    this.#byKey.set(entityId, {
      ...before,
      [outcome]: before[outcome] + 1,
      estimated: before.estimated + (isAnswered ? estimated : 0),
      used: before.used + used,
    });
  }

  of(entityId: string): Counts {
    return this.#byKey.get(entityId) ?? NONE;
  }

  get total(): Counts {
    const all = [...this.#byKey.values()];
    const names = Object.keys(NONE) as (keyof Counts)[];
    const sumOf = (name: keyof Counts) => all.reduce((sum, counts) => sum + counts[name], 0);
    return Object.fromEntries(names.map((name) => [name, sumOf(name)])) as unknown as Counts;
  }
}
