/**
 * Reads the item in an answer without making an object of every attribute first.
 *
 * An answer to an update is `{"Attributes":{"PK":{"S":"…"},"n":{"N":"1"},…}}`: texts, numbers and
 * flags, without spaces. Such an item is read in one pass over the text. Whatever else comes, an
 * escape, a list, a space, is left to the parser for all of JSON, which comes to the same.
 */

import { decodeNumber } from "../attribute-value.ts";
import type { Item, Value } from "../item.ts";

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const TEXT = 0x53;
const NUMBER = 0x4e;
const TRUE = '"BOOL":true}';
const FALSE = '"BOOL":false}';

/** An escape, or what JSON does not allow in a text; without them a text ends with its quote. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for.
const UNEVEN = /[\\\u0000-\u001f]/;

/** Names in the order of the last item: the next one mostly has the same. */
let lastNames: string[] = [];

/** Where reading has come to; one item at a time. */
let place = 0;

/** The item that is the only field of an answer; `undefined` when it takes more to read it. */
export function readOnlyItem(text: string, field: string): Item | undefined {
  const head = `{"${field}":`;
  if (!text.startsWith(head) || UNEVEN.test(text)) return undefined;
  place = head.length;
  const item = readItem(text);
  return item !== undefined && text.charCodeAt(place) === CLOSE && place + 1 === text.length
    ? item
    : undefined;
}

function readItem(text: string): Item | undefined {
  if (text.charCodeAt(place) !== OPEN) return undefined;
  place += 1;
  const item: Record<string, Value> = {};
  const names: string[] = [];
  for (;;) {
    const name = readName(text, lastNames[names.length]);
    // An attribute of this name needs care that others do not.
    if (name === undefined || name === "__proto__") return undefined;
    const value = readValue(text);
    if (value === undefined) return undefined;
    names.push(name);
    item[name] = value;
    const next = text.charCodeAt(place);
    place += 1;
    if (next === COMMA) continue;
    if (next !== CLOSE) return undefined;
    lastNames = names;
    return item as unknown as Item;
  }
}

/** `"name":`, which is compared with a guess first: that costs less than a new text. */
function readName(text: string, guess: string | undefined): string | undefined {
  if (text.charCodeAt(place) !== QUOTE) return undefined;
  const start = place + 1;
  if (guess !== undefined && text.startsWith(guess, start)) {
    const end = start + guess.length;
    if (text.startsWith('":', end)) {
      place = end + 2;
      return guess;
    }
  }
  const end = text.indexOf('"', start);
  if (end < 0 || !text.startsWith('":', end)) return undefined;
  place = end + 2;
  return text.slice(start, end);
}

/** `{"S":"…"}`, `{"N":"…"}` or `{"BOOL":…}`. */
function readValue(text: string): Value | undefined {
  if (text.charCodeAt(place) !== OPEN) return undefined;
  const type = text.charCodeAt(place + 2);
  if ((type === TEXT || type === NUMBER) && text.startsWith('":"', place + 3)) {
    const start = place + 6;
    const end = text.indexOf('"', start);
    if (end < 0 || text.charCodeAt(end + 1) !== CLOSE) return undefined;
    place = end + 2;
    const content = text.slice(start, end);
    return type === TEXT ? content : decodeNumber(content);
  }
  if (text.startsWith(TRUE, place + 1)) return ended(TRUE.length, true);
  if (text.startsWith(FALSE, place + 1)) return ended(FALSE.length, false);
  return undefined;
}

function ended(length: number, value: boolean): boolean {
  place += 1 + length;
  return value;
}
