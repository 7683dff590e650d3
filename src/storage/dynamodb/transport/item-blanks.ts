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

export class ItemBlanks {
  readonly #numbers = new Map<string, number>();
  readonly #names: string[] = [];
  readonly #blanks = new Map<number, Map<number, object>>();
  #count = 0;
  #misses = 0;

  /** An item with these attributes; names are given once each. */
  fill(names: readonly string[], values: readonly Value[]): Record<string, Value> {
    const numbers: number[] = [];
    for (const name of names) {
      const number = this.#numberOf(name);
      if (number === undefined) return this.#fillAnew(names, values);
      numbers.push(number);
    }
    const item = this.#copyFor(numbers);
    for (let at = 0; at < numbers.length; at += 1) {
      item[this.#names[numbers[at] as number] as string] = values[at] as Value;
    }
    return item;
  }

  /** `undefined` when there are too many names already. */
  #numberOf(name: string): number | undefined {
    const known = this.#numbers.get(name);
    if (known !== undefined || this.#names.length === NAMES_MAX) return known;
    this.#numbers.set(name, this.#names.length);
    return this.#names.push(name) - 1;
  }

  #copyFor(numbers: readonly number[]): Record<string, Value> {
    let low = 0;
    let high = 0;
    for (const number of numbers) {
      if (number < BITS) low |= 1 << number;
      else high |= 1 << (number - BITS);
    }
    const blank = this.#blanks.get(low)?.get(high) ?? this.#add(low, high, numbers);
    return { ...(blank as Record<string, Value>) };
  }

  /** Made from JSON: an object that gets so many properties one by one becomes a dictionary. */
  #add(low: number, high: number, numbers: readonly number[]): object {
    if (this.#count === BLANKS_MAX) this.#forgetBlanks();
    this.#count += 1;
    const fields = numbers.map((number) => `${JSON.stringify(this.#names[number])}:null`);
    const blank = JSON.parse(`{${fields.join(",")}}`) as object;
    const others = this.#blanks.get(low) ?? new Map<number, object>();
    this.#blanks.set(low, others.set(high, blank));
    return blank;
  }

  #fillAnew(names: readonly string[], values: readonly Value[]): Record<string, Value> {
    this.#misses += 1;
    if (this.#misses === MISSES_MAX) {
      this.#misses = 0;
      this.#numbers.clear();
      this.#names.length = 0;
      this.#forgetBlanks();
    }
    const item: Record<string, Value> = {};
    for (let at = 0; at < names.length; at += 1) item[names[at] as string] = values[at] as Value;
    return item;
  }

  #forgetBlanks(): void {
    this.#blanks.clear();
    this.#count = 0;
  }
}
