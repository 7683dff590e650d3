/**
 * Which entities an acquire must consume from. Links change while calls are under way: a call may
 * go by any link that was in force at some time while it was, and by no other.
 */

import { Violation } from "./violation.ts";

interface LinkChange {
  readonly parentId: string;
  readonly begunMs: number;
  /** When every client can know; until then both links count. */
  doneMs: number;
}

export class LinkHistory {
  /** Each entity gets a parent at most once. */
  readonly #changes = new Map<string, LinkChange>();

  /** Links are judged only in runs that change them. */
  get isEmpty(): boolean {
    return this.#changes.size === 0;
  }

  /** The change is on its way. Call the result when it is done. */
  begin(entityId: string, parentId: string, now: () => number): () => void {
    const change = { parentId, begunMs: now(), doneMs: Number.POSITIVE_INFINITY };
    this.#changes.set(entityId, change);
    return () => {
      change.doneMs = now();
    };
  }

  /** `consumed`: the entities that a call which began at `sinceMs` has consumed from. */
  judge(subject: string, entityId: string, consumed: ReadonlySet<string>, sinceMs: number): void {
    const chains = this.#chainsOf(entityId, sinceMs);
    if (chains.some((chain) => isSame(chain, consumed))) return;
    const right = chains.map((chain) => chain.join(" ")).join(" or ");
    const detail = `consumed from ${[...consumed].join(" ")}, where its links say ${right}`;
    throw new Violation("links", subject, detail);
  }

  #chainsOf(entityId: string, sinceMs: number): string[][] {
    const change = this.#changes.get(entityId);
    const alone = change === undefined || change.doneMs >= sinceMs ? [[entityId]] : [];
    if (change === undefined) return alone;
    const above = this.#chainsOf(change.parentId, sinceMs);
    return [...alone, ...above.map((chain) => [entityId, ...chain])];
  }
}

function isSame(chain: readonly string[], consumed: ReadonlySet<string>): boolean {
  return chain.length === consumed.size && chain.every((entityId) => consumed.has(entityId));
}
