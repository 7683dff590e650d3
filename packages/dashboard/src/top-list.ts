/** Keeps the highest ranked of many entries, without keeping the others. */

export class TopList<T> {
  readonly #size: number;
  readonly #rank: (entry: T) => number;
  #entries: { readonly rank: number; readonly entry: T }[] = [];

  constructor(size: number, rank: (entry: T) => number) {
    this.#size = size;
    this.#rank = rank;
  }

  add(entry: T): void {
    const rank = this.#rank(entry);
    const lowest = this.#entries.at(-1);
    if (lowest !== undefined && this.#entries.length >= this.#size && rank <= lowest.rank) return;
    const at = this.#entries.findIndex((other) => other.rank < rank);
    this.#entries.splice(at === -1 ? this.#entries.length : at, 0, { rank, entry });
    if (this.#entries.length > this.#size) this.#entries.pop();
  }

  /** The highest first. */
  get all(): readonly T[] {
    return this.#entries.map(({ entry }) => entry);
  }
}
