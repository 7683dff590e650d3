/** The tokens of transactions, which make a repetition of the same transaction harmless. */

import type { Write } from "@zae-limiter/limiter/storage/item-store.ts";
import { hashOf } from "../seeded-random.ts";

export class TransactionTokens {
  readonly #underWay = new Set<string>();
  /** The tokens of finished transactions, with the hash of their writes. */
  readonly #done = new Map<string, number>();

  /** Returns what is known of a token; `undefined` for a new one, and without a token. */
  use(
    token: string | undefined,
    writes: readonly Write[],
  ): "under way" | "done" | "of another" | undefined {
    if (token === undefined) return undefined;
    if (this.#underWay.has(token)) return "under way";
    const known = this.#done.get(token);
    if (known === undefined) return undefined;
    return known === hashOf(describe(writes)) ? "done" : "of another";
  }

  begin(token: string | undefined): void {
    if (token !== undefined) this.#underWay.add(token);
  }

  end(token: string | undefined): void {
    if (token !== undefined) this.#underWay.delete(token);
  }

  /** Remembers a transaction that was made. */
  keep(token: string | undefined, writes: readonly Write[]): void {
    if (token !== undefined) this.#done.set(token, hashOf(describe(writes)));
  }
}

function describe(writes: readonly Write[]): string {
  return JSON.stringify(writes, (_, value: unknown) => {
    if (typeof value === "bigint") return `${value}n`;
    return value instanceof Set ? [...value] : value;
  });
}
