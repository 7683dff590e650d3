/** Remembers what was computed from a text; bounded, since clients choose the texts. */

const ENTRIES_MAX = 500;
const LENGTH_MAX = 256;

export class TextMemo<T> {
  readonly #compute: (text: string) => T;
  readonly #known = new Map<string, T>();

  constructor(compute: (text: string) => T) {
    this.#compute = compute;
  }

  of(text: string): T {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const value = this.#compute(text);
    if (text.length > LENGTH_MAX) return value;
    if (this.#known.size >= ENTRIES_MAX) this.#known.clear();
    this.#known.set(text, value);
    return value;
  }
}
