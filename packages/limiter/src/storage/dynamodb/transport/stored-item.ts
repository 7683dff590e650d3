/**
 * Reads the answer of nearly every write, `{"Attributes":{…}}` with numbers, texts and booleans, in
 * one pass from the text to the item; consumed capacity may follow. `JSON.parse` would allocate an
 * object per attribute.
 */

import type { Item, Value } from "../../item.ts";
import { ItemBlanks } from "./item-blanks.ts";
import { AFTER_NAME, ItemOrder } from "./item-order.ts";

/** An item that was read from an answer already; else its attributes still carry their types. */
export class StoredItem {
  readonly item: Item;

  constructor(item: Item) {
    this.item = item;
  }
}

/** What a write has cost. Answers share it, so it is never changed. */
interface Price {
  readonly ConsumedCapacity: unknown;
}

/** An answer that was read in one pass, with its price where that was asked for. */
export interface StoredAnswer extends Partial<Price> {
  readonly Attributes: StoredItem;
}

const HEAD = '{"Attributes":{"';
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

/** Buckets, which nearly all answers are about, have the same few attributes in every table. */
const blanks = new ItemBlanks();
const order = new ItemOrder();

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

  /** Reads what stands behind the last attribute, and makes the answer. */
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

  /** Reads what follows the item; `undefined` where that is not the consumed capacity alone. */
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
