/**
 * Notes: small JSON values of a namespace by name, for parts of this package that share state
 * between processes. Any process may replace a note, and only one of several that try at once wins.
 */

import { show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import type { JsonValue } from "../domain/json.ts";
import { type Item, numberAt, textAt } from "../storage/item.ts";
import { type Condition, ITEM_ABSENT } from "../storage/item-store.ts";
import { inNamespace, noteKey } from "./keys.ts";
import { checkActive } from "./namespaces/namespace-state.ts";
import type { RecordContext } from "./record-context.ts";

export interface NoteOptions {
  /** Epoch milliseconds, rounded up to a second, from which the note is absent; absent: never. */
  readonly expiresMs?: number | undefined;
}

const NAME_PATTERN = /^[A-Za-z0-9._:/-]{1,256}$/;
/** An item of DynamoDB holds 400 KB. */
const BYTES_MAX = 300_000;
const VALUE = "value";

export class Notes {
  readonly #context: RecordContext;

  constructor(context: RecordContext) {
    this.#context = context;
  }

  /** Returns a value; `undefined` where there is none, it is not JSON, or its time is over. */
  async get(name: string): Promise<JsonValue | undefined> {
    const { store, namespaceId } = this.#context;
    const item = await store.get(noteKey(namespaceId, checkName(name)), { consistent: true });
    return this.#isExpired(item) ? undefined : valueIn(item);
  }

  /** Writes a note, whether or not there is one. */
  async set(name: string, value: JsonValue, options: NoteOptions = {}): Promise<void> {
    const item = this.#itemOf(name, value, options);
    await checkActive(this.#context);
    await this.#context.store.put(item);
  }

  /** Writes a note unless there is one; returns whether it was written. */
  async create(name: string, value: JsonValue, options: NoteOptions = {}): Promise<boolean> {
    const { store } = this.#context;
    const item = this.#itemOf(name, value, options);
    await checkActive(this.#context);
    const { ok, item: stored } = await store.put(item, [ITEM_ABSENT]);
    if (ok || !this.#isExpired(stored)) return ok;
    const expired: Condition = [
      { is: "=", name: VALUE, value: textAt(stored, VALUE) ?? "" },
      { is: "=", name: "ttl", value: numberAt(stored, "ttl") as number },
    ];
    return (await store.put(item, expired)).ok;
  }

  /** Writes `to` where the note is `from`; of several callers at once, one gets `true`. */
  async replace(
    name: string,
    from: JsonValue,
    to: JsonValue,
    options: NoteOptions = {},
  ): Promise<boolean> {
    const unchanged: Condition = [
      { is: "=", name: VALUE, value: textOf(from) },
      { is: ">", name: "ttl", value: this.#nowSeconds(), orAbsent: true },
    ];
    return (await this.#context.store.put(this.#itemOf(name, to, options), unchanged)).ok;
  }

  #itemOf(name: string, value: JsonValue, { expiresMs }: NoteOptions): Item {
    const { namespaceId } = this.#context;
    const key = noteKey(namespaceId, checkName(name));
    const text = textOf(value);
    if (Buffer.byteLength(text) > BYTES_MAX) {
      const reason = `expected at most ${BYTES_MAX} bytes of JSON, got ${Buffer.byteLength(text)}`;
      throw new ValidationError("value", name, reason);
    }
    const item = { ...key, ...inNamespace(namespaceId, key.PK), [VALUE]: text };
    return expiresMs === undefined ? item : { ...item, ttl: Math.ceil(expiresMs / 1000) };
  }

  /** Stores remove expired items late. */
  #isExpired(item: Item | undefined): boolean {
    return (numberAt(item, "ttl") ?? Number.POSITIVE_INFINITY) <= this.#nowSeconds();
  }

  #nowSeconds(): number {
    return Math.floor(this.#context.clock() / 1000);
  }
}

function valueIn(item: Item | undefined): JsonValue | undefined {
  try {
    return JSON.parse(textAt(item, VALUE) ?? "") as JsonValue;
  } catch {
    return undefined;
  }
}

function checkName(name: string): string {
  if (NAME_PATTERN.test(name)) return name;
  const reason = `expected 1 to 256 letters, digits and . _ : / -, got ${show(name)}`;
  throw new ValidationError("name", name, reason);
}

/** Returns the same text for equal values: members are sorted, because stores compare texts. */
function textOf(value: JsonValue): string {
  return JSON.stringify(value, (_, part: JsonValue) => {
    if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(
      Object.entries(part).sort(([one], [other]) => (one < other ? -1 : 1)),
    );
  });
}
