/**
 * The keys of the database. All that belongs to a namespace has its id as hash tag, so in a cluster
 * a namespace lives on one primary, and its cascades are atomic.
 *
 * | key | type | holds |
 * |---|---|---|
 * | `{tag}i:<item>` | string | an item as JSON, its config version in front |
 * | `{tag}w:<item>` | string | the row of a bucket, packed |
 * | `{tag}p`, `{tag}g1` to `{tag}g4` | sorted set | the table and its indexes, by their bytes |
 * | `{tag}x` | sorted set | items with a `ttl`, by it |
 * | `{tag}f`, `{tag}n` | stream, number | the log, and its last number |
 * | `{tag}t:<token>` | string | when a token was used |
 * | `{_}s` | set | tags that have a log, in a cluster |
 */

import { RESERVED_NAMESPACE } from "../../domain/names.ts";
import type { Item, Key } from "../item.ts";
import { INDEXES, type IndexName } from "../table.ts";

export const DEFAULT_PREFIX = "zael:";

const REGISTRY = `${RESERVED_NAMESPACE}/SYSTEM#`;
const NAMESPACE_ID = "#NSID#";
const SEPARATOR = "\u0000";

/** The keys of a tag that scripts get, in their order. */
const SHARED = ["p", "g1", "g2", "g3", "g4", "x", "f", "n"] as const;
/** How many keys of each tag a commit declares: the shared ones, and that of its token. */
export const SHARED_KEYS = SHARED.length + 1;
/** The places of the table and of its indexes among them, from 1. */
const SETS: Readonly<Record<IndexName | "table", number>> = {
  table: 1,
  GSI1: 2,
  GSI2: 3,
  GSI3: 4,
  GSI4: 5,
};

/** A member of the table's sorted set, or of one of an index. */
export interface Member {
  readonly tag: string;
  /** The place of the set among the keys of its tag. */
  readonly set: number;
  readonly text: string;
}

/** Returns the tag of a partition; a partition without a slash is one. */
export function tagOf(partition: string): string {
  const slash = partition.indexOf("/");
  return slash < 0 ? partition : partition.slice(0, slash);
}

/**
 * Returns the tag of an item. The record of a namespace by its id is in the slot of the namespace,
 * because every change in the namespace depends on it.
 */
export function tagOfKey({ PK, SK }: Key): string {
  return PK === REGISTRY && SK.startsWith(NAMESPACE_ID) ? SK.slice(NAMESPACE_ID.length) : tagOf(PK);
}

/** Returns the text of a key in sets and in the log. */
export function textOf({ PK, SK }: Key): string {
  return `${PK}${SEPARATOR}${SK}`;
}

/** Reads the key at the end of a member. */
export function keyIn(member: string): Key {
  const [PK = "", SK = ""] = member.split(SEPARATOR).slice(-2);
  return { PK, SK };
}

/** Returns the two keys of an item: its text, and the row of a bucket. */
export function cellKeys(prefix: string, key: Key): readonly [item: string, row: string] {
  return [cellKey(prefix, key, "i"), rowKey(prefix, key)];
}

/** Returns the key of the row of a bucket. */
export function rowKey(prefix: string, key: Key): string {
  return cellKey(prefix, key, "w");
}

function cellKey(prefix: string, key: Key, kind: "i" | "w"): string {
  const tag = tagOfKey(key);
  const { PK, SK } = key;
  // The tag is in front already.
  const place = PK.startsWith(tag) && PK[tag.length] === "/" ? PK.slice(tag.length) : PK;
  return `${prefix}{${tag}}${kind}:${place}${SEPARATOR}${SK}`;
}

/** Returns the keys of a tag that a commit declares. */
export function sharedKeys(prefix: string, tag: string, token: string | undefined): string[] {
  return [...SHARED.map((name) => `${prefix}{${tag}}${name}`), tokenKey(prefix, tag, token ?? "")];
}

/** Returns the log of a tag, and the number of its last record. */
export function logKeys(prefix: string, tag: string): readonly [log: string, last: string] {
  return [`${prefix}{${tag}}f`, `${prefix}{${tag}}n`];
}

/** Returns the set of the tags that have a log. */
export function tagsKey(prefix: string): string {
  return `${prefix}{${RESERVED_NAMESPACE}}s`;
}

export function tokenKey(prefix: string, tag: string, token: string): string {
  return `${prefix}{${tag}}t:${token}`;
}

/** Returns the sorted set of a partition of the table or of an index. */
export function setKey(prefix: string, index: IndexName | undefined, partition: string): string {
  const name = SHARED[SETS[index ?? "table"] - 1] as string;
  return `${prefix}{${tagOf(partition)}}${name}`;
}

/** Returns what an item is in: the table, and the indexes of which it has both keys. */
export function membersOf(item: Item): readonly Member[] {
  const members = [{ tag: tagOf(item.PK), set: SETS.table, text: textOf(item) }];
  for (const { name, partition, sort } of INDEXES) {
    const [one, other] = [item[partition], item[sort]];
    if (typeof one !== "string" || typeof other !== "string") continue;
    members.push({ tag: tagOf(one), set: SETS[name], text: placeText(one, other, item) });
  }
  return members;
}

/** Returns the member of an index for an item with these keys. */
export function placeText(partition: string, sort: string, key: Key): string {
  return `${partition}${SEPARATOR}${sort}${SEPARATOR}${textOf(key)}`;
}

/** Returns the bounds of a partition: keys have no NUL. */
export function partitionBounds(partition: string): readonly [least: string, beyond: string] {
  return [`${partition}${SEPARATOR}`, `${partition}\u0001`];
}
