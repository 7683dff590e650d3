/** A map from texts to values that also knows the order of the texts. */

/**
 * The most keys of a block; a larger one is cut in two. In one array a new key would move half of
 * all keys: 9 µs among 100,000, and 270 µs among 300,000, where a block takes 3 µs.
 */
const BLOCK_MAX = 256;

export type Pair<V> = [key: string, value: V];

/** Keeps values by key, and the keys in blocks that are sorted one after the other. */
export class OrderedMap<V> {
  readonly #values = new Map<string, V>();
  /** Sorted keys; no block is empty, and the keys of one are below those of the next. */
  readonly #blocks: string[][] = [];

  get(key: string): V | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: V): void {
    if (!this.#values.has(key)) this.#insert(key);
    this.#values.set(key, value);
  }

  delete(key: string): boolean {
    if (!this.#values.delete(key)) return false;
    const number = this.#blockOf(key);
    const block = this.#blocks[number] as string[];
    block.splice(placeIn(block, key), 1);
    if (block.length === 0) this.#blocks.splice(number, 1);
    return true;
  }

  /** Returns the pair with the lowest key at or above the given one. */
  atOrAbove(key: string): Pair<V> | undefined {
    const block = this.#blocks[this.#blockOf(key)];
    return this.#pairOf(block?.[placeIn(block, key)]);
  }

  /** Returns the pair with the highest key below the given one. */
  below(key: string): Pair<V> | undefined {
    const number = this.#blockOf(key);
    const block = this.#blocks[number] ?? [];
    const at = placeIn(block, key);
    return this.#pairOf(at > 0 ? block[at - 1] : this.#blocks[number - 1]?.at(-1));
  }

  /** Counts the keys from one, included, to below another. */
  count(low: string, high: string): number {
    let counted = 0;
    for (let number = this.#blockOf(low); number < this.#blocks.length; number += 1) {
      const block = this.#blocks[number] as string[];
      const to = placeIn(block, high);
      counted += Math.max(0, to - placeIn(block, low));
      if (to < block.length) break;
    }
    return counted;
  }

  /** Returns all values in the order of their keys. The map must not change before the end. */
  *values(): Generator<V> {
    for (const block of this.#blocks) for (const key of block) yield this.#values.get(key) as V;
  }

  #pairOf(key: string | undefined): Pair<V> | undefined {
    return key === undefined ? undefined : [key, this.#values.get(key) as V];
  }

  /** Returns the first block whose last key is not below the given one; behind all if none is. */
  #blockOf(key: string): number {
    return firstFrom(this.#blocks, (block) => (block[block.length - 1] as string) >= key);
  }

  #insert(key: string): void {
    // A key above all others belongs to the last block.
    const last = Math.max(0, this.#blocks.length - 1);
    const number = Math.min(this.#blockOf(key), last);
    this.#blocks[number] ??= [];
    const block = this.#blocks[number];
    const at = placeIn(block, key);
    block.splice(at, 0, key);
    if (block.length <= BLOCK_MAX) return;
    // Keys that come in order leave full blocks behind.
    const isLast = number === last && at === block.length - 1;
    this.#blocks.splice(number + 1, 0, block.splice(isLast ? at : block.length >>> 1));
  }
}

/** Returns the place of the first key that is not below the given one. */
function placeIn(keys: readonly string[], key: string): number {
  return firstFrom(keys, (other) => other >= key);
}

/** Returns the place from which on a sorted list passes a test; its length when it never does. */
function firstFrom<T>(list: readonly T[], passes: (one: T) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (passes(list[middle] as T)) high = middle;
    else low = middle + 1;
  }
  return low;
}
