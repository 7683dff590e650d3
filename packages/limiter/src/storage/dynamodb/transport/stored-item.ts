/**
 * Reads the answer of nearly every write, `{"Attributes":{…}}` with numbers, texts and booleans, in
 * one pass from the text to the item; consumed capacity may follow. `JSON.parse` would allocate an
 * object per attribute: it made an acquire 80 µs slower, a quarter of its time.
 */

import type { Item, Value } from "../../item.ts";

/** An item that was read from an answer already; else its attributes still carry their types. */
export class StoredItem {
  readonly item: Item;

  constructor(item: Item) {
    this.item = item;
  }
}

/** Cost of a write. Answers share it, so it is never changed. */
interface Price {
  readonly ConsumedCapacity: unknown;
}

/** An answer that was read in one pass, with its price where that was asked for. */
export interface StoredAnswer extends Partial<Price> {
  readonly Attributes: StoredItem;
}

const HEAD = '{"Attributes":{"';
/** Text between the name of an attribute and its type. */
const AFTER_NAME = '":{"';
/** Follows the item where a listener asked for it: one or two numbers, and nothing else. */
const CAPACITY = ',"ConsumedCapacity":';
const NUMBER = 'N":"';
const TEXT = 'S":"';
const TRUE = 'BOOL":true}';
const FALSE = 'BOOL":false}';

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const BRACE = 0x7d;
/** Numbers with this many digits are always exact. */
const DIGITS_MAX = 15;

/** Names are numbered, and a set of them is a bit for each in one of two numbers. */
const BITS = 30;
const NAMES_MAX = 2 * BITS;
const BLANKS_MAX = 500;
/** After this many items with other names, the known names are cleared. */
const MISSES_MAX = 1000;

/** Returns `undefined` for any other text: long numbers, escapes, lists, or invalid JSON. */
export function storedAnswerIn(text: string): StoredAnswer | undefined {
  if (!text.startsWith(HEAD) || text.includes("\\")) return undefined;
  return new Reader(text).read();
}

class Reader {
  readonly #text: string;
  #at = HEAD.length;

  constructor(text: string) {
    this.#text = text;
  }

  read(): StoredAnswer | undefined {
    const text = this.#text;
    const { heads, names: expected } = order;
    /** The names as they are, from the first on that is not expected. */
    let names: string[] | undefined;
    const values: Value[] = [];
    for (let at = 0; ; at += 1) {
      const head = heads[at];
      if (head !== undefined && text.startsWith(head, this.#at)) {
        this.#at += head.length;
        names?.push(expected[at] as string);
      } else {
        const name = this.#name();
        if (name === undefined) return undefined;
        names ??= expected.slice(0, at);
        names.push(name);
      }
      const value = this.#value();
      if (value === undefined) return undefined;
      values.push(value);
      const next = text.charCodeAt(this.#at);
      if (next === BRACE) break;
      if (next !== COMMA || text.charCodeAt(this.#at + 1) !== QUOTE) return undefined;
      this.#at += 2;
    }
    if (values.length < expected.length) names ??= expected.slice(0, values.length);
    if (names !== undefined) order.learn(names);
    return this.#answer(names ?? expected, values);
  }

  /** Reads a name, and stops behind it. */
  #name(): string | undefined {
    const end = this.#text.indexOf('"', this.#at);
    if (end < 0 || !this.#text.startsWith(AFTER_NAME, end)) return undefined;
    const name = this.#text.slice(this.#at, end);
    this.#at = end + AFTER_NAME.length;
    // Assigning to that name would change what the object is.
    return name === "__proto__" ? undefined : name;
  }

  /** Reads the rest of the text behind the last attribute, and builds the answer. */
  #answer(names: readonly string[], values: readonly Value[]): StoredAnswer | undefined {
    const text = this.#text;
    const end = this.#at + 1;
    const isWhole = text.length === end + 1 && text.charCodeAt(end) === BRACE;
    const price = isWhole ? undefined : this.#price(end);
    if (!isWhole && price === undefined) return undefined;
    const Attributes = new StoredItem(blanks.fill(names, values) as unknown as Item);
    if (price === undefined) return { Attributes };
    return { Attributes, ConsumedCapacity: price.ConsumedCapacity };
  }

  /** Reads the text behind the item; `undefined` where that is not the consumed capacity alone. */
  #price(from: number): Price | undefined {
    const text = this.#text;
    if (!text.startsWith(CAPACITY, from)) return undefined;
    const rest = text.slice(from);
    if (rest !== lastPrice.text) lastPrice = { text: rest, price: priceIn(rest) };
    return lastPrice.price;
  }

  /** Reads a value, and stops behind it and its brace. */
  #value(): Value | undefined {
    const text = this.#text;
    if (text.startsWith(NUMBER, this.#at)) return this.#number(this.#at + NUMBER.length);
    if (text.startsWith(TEXT, this.#at)) {
      const from = this.#at + TEXT.length;
      const end = text.indexOf('"', from);
      return this.#ends(end) ? text.slice(from, end) : undefined;
    }
    for (const [truth, value] of TRUTHS) {
      if (!text.startsWith(truth, this.#at)) continue;
      this.#at += truth.length;
      return value;
    }
    return undefined;
  }

  #number(from: number): number | undefined {
    const text = this.#text;
    const isNegative = text.charCodeAt(from) === MINUS;
    const first = isNegative ? from + 1 : from;
    let at = first;
    let value = 0;
    let digit = text.charCodeAt(at);
    for (; digit >= ZERO && digit <= NINE; digit = text.charCodeAt(at)) {
      value = value * 10 + digit - ZERO;
      at += 1;
    }
    if (at === first || at - first > DIGITS_MAX || digit !== QUOTE || !this.#ends(at)) {
      return undefined;
    }
    return isNegative ? 0 - value : value;
  }

  /** Whether a quote is there, and the brace behind it. */
  #ends(quote: number): boolean {
    if (quote < 0 || this.#text.charCodeAt(quote + 1) !== BRACE) return false;
    this.#at = quote + 2;
    return true;
  }
}

/** Nearly all writes cost the same. */
let lastPrice: { readonly text: string; readonly price: Price | undefined } = {
  text: "",
  price: undefined,
};

function priceIn(text: string): Price | undefined {
  try {
    const rest = JSON.parse(`{${text.slice(1)}`) as Price;
    return Object.keys(rest).length === 1 ? rest : undefined;
  } catch {
    return undefined;
  }
}

const TRUTHS = [
  [TRUE, true],
  [FALSE, false],
] as const;

/**
 * Keeps the order in which answers list the attributes of an item. DynamoDB lists those of similar
 * items in the same order; an attribute that is expected is compared, where another one must be cut
 * out of the text and looked up.
 */
class ItemOrder {
  /** The names that the next answer is expected to have. */
  names: readonly string[] = [];
  /** The text before each value. */
  heads: readonly string[] = [];
  /** The names of the last answer that was in another order. */
  #other: readonly string[] = [];

  /** Records another order; it is expected once it has come twice in a row. */
  learn(names: readonly string[]): void {
    if (areSame(names, this.#other)) {
      this.names = names;
      this.heads = names.map((name) => name + AFTER_NAME);
    }
    this.#other = names;
  }
}

function areSame(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((name, at) => name === right[at]);
}

type Blank = Readonly<Record<string, Value>>;

/**
 * Keeps object templates for items. DynamoDB returns the attributes of an item in any order, and V8
 * makes a hidden class for every order in which properties are added. So an item starts as a copy
 * of a template that has all its attributes; templates are found by the set of attribute names.
 */
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

  /** Returns an item with these attributes; names are given once each. */
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

  /** Returns the number of a name; `undefined` when there are too many names already. */
  #numberOf(name: string): number | undefined {
    const known = this.#numbers.get(name);
    if (known !== undefined || this.#known.length === NAMES_MAX) return known;
    this.#numbers.set(name, this.#known.length);
    return this.#known.push(name) - 1;
  }

  /** Makes a template from JSON: properties that are set one by one would make a dictionary. */
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

/** Buckets, which nearly all answers are about, have the same few attributes in every table. */
const blanks = new ItemBlanks();
const order = new ItemOrder();
