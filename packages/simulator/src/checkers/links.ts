/**
 * Which entities an acquire must consume from. Links change while calls are under way: a call may
 * go by any link that was in force at some time while it was, and by no other.
 */

import { Violation } from "./violation.ts";

interface LinkChange {
  readonly parentId: string | undefined;
  readonly begunMs: number;
  /** When every client can know; until then the link before it counts too. */
  doneMs: number;
}

/** A refusal may go by a link that was known so long ago, as by a balance. */
const KNOWLEDGE_MS = 1000;

export class LinkHistory {
  /** Changes by entity, in order; each begins after the one before it is done. */
  readonly #changes = new Map<string, LinkChange[]>();
  readonly #first = new Map<string, string>();

  /** Links are judged only in runs that change them. */
  get isEmpty(): boolean {
    return this.#changes.size === 0;
  }

  /** Sets the parent that an entity has from the beginning. */
  start(entityId: string, parentId: string): void {
    this.#first.set(entityId, parentId);
  }

  /** Records that a change was sent. Call the result when it is done. */
  begin(entityId: string, parentId: string | undefined, now: () => number): () => void {
    const change = { parentId, begunMs: now(), doneMs: Number.POSITIVE_INFINITY };
    const changes = this.#changes.get(entityId) ?? [];
    this.#changes.set(entityId, changes);
    changes.push(change);
    return () => {
      change.doneMs = now();
    };
  }

  /** Returns the parent after the last change. */
  parentOf(entityId: string): string | undefined {
    const last = this.#changes.get(entityId)?.at(-1);
    return last === undefined ? this.#first.get(entityId) : last.parentId;
  }

  /** Lists the parents that an entity had at some moment since then. */
  parentsSince(entityId: string, sinceMs: number): readonly (string | undefined)[] {
    return this.#parentsOf(entityId, sinceMs);
  }

  /** Checks that a call that began at `sinceMs` consumed from the entities of a valid chain. */
  judge(subject: string, entityId: string, consumed: ReadonlySet<string>, sinceMs: number): void {
    const chains = this.#chainsOf(entityId, sinceMs, "none");
    if (chains.some((chain) => isSame(chain, consumed))) return;
    const detail = `consumed from ${[...consumed].join(" ")}, where its links say ${textOf(chains)}`;
    throw new Violation("links", subject, detail);
  }

  /**
   * Checks that one of the entities that refuse a call, `named`, is in a chain that was in force.
   * An ancestor may refuse before the call sees that the links above it lead back.
   */
  judgeRefusal(subject: string, entityId: string, named: readonly string[], sinceMs: number): void {
    const chains = this.#chainsOf(entityId, sinceMs - KNOWLEDGE_MS, "cut");
    if (named.some((name) => chains.some((chain) => chain.includes(name)))) return;
    const detail = `refused by ${named.join(" ")}, where its links say ${textOf(chains)}`;
    throw new Violation("links", subject, detail);
  }

  /** Lists the possible chains. Old and new links together may form a circle, which is left out. */
  #chainsOf(
    entityId: string,
    sinceMs: number,
    circles: "none" | "cut",
    below: readonly string[] = [],
  ): string[][] {
    if (below.includes(entityId)) return circles === "cut" ? [[]] : [];
    return this.#parentsOf(entityId, sinceMs).flatMap((parentId) => {
      if (parentId === undefined) return [[entityId]];
      const above = this.#chainsOf(parentId, sinceMs, circles, [...below, entityId]);
      return above.map((chain) => [entityId, ...chain]);
    });
  }

  /** Lists the parents that the entity had at some time from `sinceMs` on. */
  #parentsOf(entityId: string, sinceMs: number): readonly (string | undefined)[] {
    const changes = this.#changes.get(entityId) ?? [];
    const first = { parentId: this.#first.get(entityId) };
    const links = [first, ...changes];
    return links
      .filter((_, at) => (changes[at]?.doneMs ?? Number.POSITIVE_INFINITY) >= sinceMs)
      .map(({ parentId }) => parentId);
  }
}

function isSame(chain: readonly string[], consumed: ReadonlySet<string>): boolean {
  return chain.length === consumed.size && chain.every((entityId) => consumed.has(entityId));
}

function textOf(chains: readonly (readonly string[])[]): string {
  return chains.map((chain) => chain.join(" ")).join(" or ");
}
