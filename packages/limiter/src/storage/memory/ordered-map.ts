/**
 * A map from texts to values in the order of the texts: blocks of keys that are sorted one after
 * the other, so that a change moves the keys of one block only.
 */

/** A block that grows larger is cut in two. */
const BLOCK_MAX = 256;

interface Block<V> {
  readonly keys: string[];
  readonly values: V[];
}

/** A key and its value. */
export type Pair<V> = [key: string, value: V];

export class OrderedMap<V> {
  /** None is empty, and the keys of one are below those of the next. */
  readonly #blocks: Block<V>[] = [];

  get(key: string): V | undefined {
    const block = this.#blocks[this.#blockOf(key)];
    if (block === undefined) return undefined;
    const at = placeOf(block.keys, key);
    return block.keys[at] === key ? block.values[at] : undefined;
  }

  set(key: string, value: V): void {
    // A key above all others belongs to the last block.
    const number = Math.min(this.#blockOf(key), Math.max(0, this.#blocks.length - 1));
    const block = this.#blocks[number];
    if (block === undefined) {
      this.#blocks.push({ keys: [key], values: [value] });
      return;
    }
    const at = placeOf(block.keys, key);
    if (block.keys[at] === key) {
      block.values[at] = value;
      return;
    }
    block.keys.splice(at, 0, key);
    block.values.splice(at, 0, value);
    if (block.keys.length > BLOCK_MAX) this.#cut(number, block, at);
  }

  delete(key: string): boolean {
    const number = this.#blockOf(key);
    const block = this.#blocks[number];
    if (block === undefined) return false;
    const at = placeOf(block.keys, key);
    if (block.keys[at] !== key) return false;
    block.keys.splice(at, 1);
    block.values.splice(at, 1);
    if (block.keys.length === 0) this.#blocks.splice(number, 1);
    return true;
  }

  /** The pair with the lowest key at or above the given one. */
  atOrAbove(key: string): Pair<V> | undefined {
    const number = this.#blockOf(key);
    const block = this.#blocks[number];
    return block && this.#pairAt(number, placeOf(block.keys, key));
  }

  /** The pair with the lowest key above the given one. */
  above(key: string): Pair<V> | undefined {
    const number = this.#blockOf(key);
    const block = this.#blocks[number];
    if (block === undefined) return undefined;
    const at = placeOf(block.keys, key);
    return this.#pairAt(number, block.keys[at] === key ? at + 1 : at);
  }

  /** The pair with the highest key below the given one. */
  below(key: string): Pair<V> | undefined {
    const number = this.#blockOf(key);
    const block = this.#blocks[number];
    const at = block === undefined ? 0 : placeOf(block.keys, key);
    if (at > 0) return this.#pairAt(number, at - 1);
    const before = this.#blocks[number - 1];
    return before && this.#pairAt(number - 1, before.keys.length - 1);
  }

  /** How many keys there are from one, included, to below another. */
  count(low: string, high: string): number {
    let counted = 0;
    for (let number = this.#blockOf(low); number < this.#blocks.length; number += 1) {
      const { keys } = this.#blocks[number] as Block<V>;
      const from = placeOf(keys, low);
      const to = placeOf(keys, high);
      counted += Math.max(0, to - from);
      if (to < keys.length) break;
    }
    return counted;
  }

  /** All values in the order of their keys. The map must not change meanwhile. */
  *values(): Generator<V> {
    for (const { values } of this.#blocks) yield* values;
  }

  /** The first block whose last key is not below the given one; behind all when there is none. */
  #blockOf(key: string): number {
    const blocks = this.#blocks;
    let low = 0;
    let high = blocks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const { keys } = blocks[middle] as Block<V>;
      if ((keys[keys.length - 1] as string) < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The pair at a place of a block; one behind its last is the first of the next block. */
  #pairAt(number: number, at: number): Pair<V> | undefined {
    const block = this.#blocks[number];
    if (block === undefined) return undefined;
    if (at >= block.keys.length) return this.#pairAt(number + 1, 0);
    return [block.keys[at] as string, block.values[at] as V];
  }

  /** Keys that come in order leave full blocks behind. */
  #cut(number: number, { keys, values }: Block<V>, at: number): void {
    const isLast = number === this.#blocks.length - 1 && at === keys.length - 1;
    const from = isLast ? at : keys.length >>> 1;
    const later = { keys: keys.splice(from), values: values.splice(from) };
    this.#blocks.splice(number + 1, 0, later);
  }
}

/** The place of the first key that is not below the given one. */
function placeOf(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((keys[middle] as string) < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
