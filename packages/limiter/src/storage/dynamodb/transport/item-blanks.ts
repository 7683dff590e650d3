/**
 * Object templates for items. DynamoDB returns the attributes of an item in any order, and V8 makes
 * a hidden class for every order in which properties are added. So an item starts as a copy of a
 * template that has all its attributes; templates are found by the set of attribute names.
 */

import type { Value } from "../../item.ts";

/** Names are numbered, and a set of them is a bit for each in one of two numbers. */
const BITS = 30;
const NAMES_MAX = 2 * BITS;
const BLANKS_MAX = 500;
/** After this many items with other names, the known names are cleared. */
const MISSES_MAX = 1000;

type Blank = Readonly<Record<string, Value>>;

export class ItemBlanks {
  readonly #numbers = new Map<string, number>();
  readonly #known: string[] = [];
  readonly #blanks = new Map<number, Map<number, Blank>>();
  /** The list of the call before, which most calls repeat: as it was given, and as it is known. */
  #names: readonly string[] | undefined;
  #keys: readonly string[] = [];
  #blank: Blank = {};
  #count = 0;
  #misses = 0;

  /** An item with these attributes; names are given once each. */
  fill(names: readonly string[], values: readonly Value[]): Record<string, Value> {
    if (names !== this.#names && !this.#find(names)) return this.#fillAnew(names, values);
    const keys = this.#keys;
    const item: Record<string, Value> = { ...this.#blank };
    for (let at = 0; at < keys.length; at += 1) item[keys[at] as string] = values[at] as Value;
    return item;
  }

  /** Finds the template for some names; false when there are too many names already. */
  #find(names: readonly string[]): boolean {
    const keys: string[] = [];
    let low = 0;
    let high = 0;
    for (const name of names) {
      const number = this.#numberOf(name);
      if (number === undefined) return false;
      keys.push(this.#known[number] as string);
      if (number < BITS) low |= 1 << number;
      else high |= 1 << (number - BITS);
    }
    this.#names = names;
    this.#keys = keys;
    this.#blank = this.#blanks.get(low)?.get(high) ?? this.#add(low, high, keys);
    return true;
  }

  /** `undefined` when there are too many names already. */
  #numberOf(name: string): number | undefined {
    const known = this.#numbers.get(name);
    if (known !== undefined || this.#known.length === NAMES_MAX) return known;
    this.#numbers.set(name, this.#known.length);
    return this.#known.push(name) - 1;
  }

  /** Made from JSON: an object that gets so many properties one by one becomes a dictionary. */
  #add(low: number, high: number, names: readonly string[]): Blank {
    if (this.#count === BLANKS_MAX) this.#forgetBlanks();
    this.#count += 1;
    const fields = names.map((name) => `${JSON.stringify(name)}:null`);
    const blank = JSON.parse(`{${fields.join(",")}}`) as Blank;
    const others = this.#blanks.get(low) ?? new Map<number, Blank>();
    this.#blanks.set(low, others.set(high, blank));
    return blank;
  }

  #fillAnew(names: readonly string[], values: readonly Value[]): Record<string, Value> {
    this.#misses += 1;
    if (this.#misses === MISSES_MAX) {
      this.#misses = 0;
      this.#numbers.clear();
      this.#known.length = 0;
      this.#forgetBlanks();
    }
    const item: Record<string, Value> = {};
    for (let at = 0; at < names.length; at += 1) item[names[at] as string] = values[at] as Value;
    return item;
  }

  #forgetBlanks(): void {
    this.#blanks.clear();
    this.#count = 0;
    this.#names = undefined;
  }
}
