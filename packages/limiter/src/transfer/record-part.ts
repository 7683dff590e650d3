/** The records of a namespace as rows of a copy: every item that is not a bucket. */

import { isDeepStrictEqual } from "node:util";
import {
  AUDIT_PREFIX,
  CHILDREN_CONFIG_PREFIX,
  CONFIG_SK,
  META_SK,
  noteKey,
  PERIOD_PREFIX,
  parseBucketKey,
  STATE_SK,
  USAGE_PREFIX,
} from "../records/keys.ts";
import { keysInNamespace } from "../records/namespaces/namespace-items.ts";
import type { RecordContext } from "../records/record-context.ts";
import { encodeItem } from "../storage/attribute-value.ts";
import { type Item, type Key, keyOf, numberAt, type Value } from "../storage/item.ts";
import { TTL_ATTRIBUTE } from "../storage/table.ts";
import { COPY_NOTE } from "./copy-mark.ts";
import type { Part, RowKind, Side } from "./side.ts";

/** Items that are read at once. */
const PAGE = 100;

/** Returns the records of both sides, as the target has them. */
export function recordPart(source: RecordContext, target: RecordContext, atMs: number): Part<Item> {
  return {
    source: new RecordSide(source, target.namespaceId, atMs),
    target: new RecordSide(target, target.namespaceId, atMs),
    areAlike: isDeepStrictEqual,
    kindOf,
    nameOf: ({ PK, SK }) => `${PK} ${SK}`,
    contentOf: encodeItem,
    // An audit log only grows, and the target's own log says when it was copied to.
    stays: ({ SK }) => SK.startsWith(AUDIT_PREFIX),
  };
}

class RecordSide implements Side<Item> {
  readonly #context: RecordContext;
  /** The namespace in the keys of the rows that it returns and takes. */
  readonly #shownId: string;
  readonly #atSeconds: number;

  constructor(context: RecordContext, shownId: string, atMs: number) {
    this.#context = context;
    this.#shownId = shownId;
    this.#atSeconds = Math.floor(atMs / 1000);
  }

  async *list(): AsyncGenerator<Item> {
    let page: Key[] = [];
    for await (const key of keysInNamespace(this.#context)) {
      if (!this.#isRecord(key)) continue;
      page.push(keyOf(key));
      if (page.length < PAGE) continue;
      yield* await this.#read(page);
      page = [];
    }
    if (page.length > 0) yield* await this.#read(page);
  }

  async find(rows: readonly Item[]): Promise<(Item | undefined)[]> {
    const { store, namespaceId } = this.#context;
    const keys = rows.map((row) => keyOf(moved(row, this.#shownId, namespaceId)));
    const items = await store.getMany(keys, { consistent: true });
    return items.map((item) => this.#shown(item));
  }

  async put(rows: readonly Item[]): Promise<void> {
    const { store, namespaceId } = this.#context;
    await store.writeMany({ puts: rows.map((row) => moved(row, this.#shownId, namespaceId)) });
  }

  async remove(rows: readonly Item[]): Promise<void> {
    const { store, namespaceId } = this.#context;
    const deletes = rows.map((row) => keyOf(moved(row, this.#shownId, namespaceId)));
    await store.writeMany({ deletes });
  }

  async #read(keys: readonly Key[]): Promise<Item[]> {
    const items = await this.#context.store.getMany(keys, { consistent: true });
    return items.flatMap((item) => this.#shown(item) ?? []);
  }

  #shown(item: Item | undefined): Item | undefined {
    const ttl = numberAt(item, TTL_ATTRIBUTE) ?? Number.POSITIVE_INFINITY;
    if (item === undefined || ttl <= this.#atSeconds) return undefined;
    return moved(item, this.#context.namespaceId, this.#shownId);
  }

  #isRecord({ PK, SK }: Key): boolean {
    if (SK === STATE_SK && parseBucketKey(PK) !== undefined) return false;
    const note = noteKey(this.#context.namespaceId, COPY_NOTE);
    return PK !== note.PK || SK !== note.SK;
  }
}

const KEYS: ReadonlySet<string> = new Set([
  "PK",
  ...[1, 2, 3, 4].flatMap((index) => [`GSI${index}PK`, `GSI${index}SK`]),
]);

/** Returns an item under the id of another namespace: keys alone have it. */
function moved(item: Item, fromId: string, toId: string): Item {
  if (fromId === toId) return item;
  const rename = (value: Value): Value => {
    if (value === fromId) return toId;
    const isBelow = typeof value === "string" && value.startsWith(`${fromId}/`);
    return isBelow ? toId + value.slice(fromId.length) : value;
  };
  return Object.fromEntries(
    Object.entries(item).map(([name, value]) => [name, KEYS.has(name) ? rename(value) : value]),
  ) as unknown as Item;
}

function kindOf({ SK }: Item): RowKind {
  if (SK === META_SK) return "entities";
  if (SK.startsWith(CONFIG_SK) || SK.startsWith(CHILDREN_CONFIG_PREFIX)) return "limits";
  if (SK.startsWith(USAGE_PREFIX) || SK.startsWith(PERIOD_PREFIX)) return "usage";
  return SK.startsWith(AUDIT_PREFIX) ? "audit" : "others";
}
