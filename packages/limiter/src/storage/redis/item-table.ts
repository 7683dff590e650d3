/** Items on Redis and Valkey: each request is one script, and a commit is one for each slot. */

import { boundedMap } from "../../base/bounded-map.ts";
import { RESERVED_NAMESPACE } from "../../domain/names.ts";
import type { Item, Key } from "../item.ts";
import {
  type Cell,
  type Commit,
  type CommitResult,
  ITEM_TABLE,
  type ItemTable,
  type LogPage,
  type LogStart,
  type PageRange,
  type TableCallOptions,
} from "../item-table.ts";
import { indexNamed, TTL_ATTRIBUTE } from "../table.ts";
import { WARM_BUCKETS, type WarmBuckets } from "../warm-buckets.ts";
import type { RedisConnection } from "./connection.ts";
import { cellKeys, keyIn, partitionBounds, placeText, setKey, tagOfKey, textOf } from "./keys.ts";
import { RedisLog } from "./log.ts";
import {
  type CommitPart,
  commitArguments,
  type ExpiryWrite,
  homeTagIn,
  itemOf,
  listOf,
  memberChanges,
  tagsOf,
} from "./parameters.ts";
import { COMMIT } from "./scripts/commit.ts";
import { PAGE, READ } from "./scripts/read.ts";
import { RedisBuckets } from "./warm-buckets.ts";

/** Tags with a log that this process remembers. */
const TAGS_MAX = 10_000;

export class RedisItemTable implements ItemTable {
  readonly [ITEM_TABLE] = true;
  readonly [WARM_BUCKETS]: WarmBuckets;
  readonly #connection: RedisConnection;
  readonly #log: RedisLog;
  readonly #homeOf: (tag: string) => string;
  readonly #known = boundedMap<number>(TAGS_MAX);

  constructor(connection: RedisConnection) {
    this.#connection = connection;
    this.#log = new RedisLog(connection);
    this.#homeOf = homeTagIn(connection.isCluster, RESERVED_NAMESPACE);
    this[WARM_BUCKETS] = new RedisBuckets(connection);
  }

  /** Reads as of one moment; in a cluster, as of one moment for each namespace. */
  async read(keys: readonly Key[], options: TableCallOptions): Promise<readonly Cell[]> {
    if (!this.#connection.isCluster) return this.#read(keys, options);
    const tags = [...new Set(keys.map(tagOfKey))];
    const found = await Promise.all(
      tags.map((tag) => {
        const own = keys.filter((key) => tagOfKey(key) === tag);
        return this.#read(own, options);
      }),
    );
    const cells = new Map(found.flat().map((cell) => [textOf(cell.key), cell]));
    return keys.map((key) => cells.get(textOf(key)) as Cell);
  }

  async commit(commit: Commit, options: TableCallOptions): Promise<CommitResult> {
    const { reads, writes, near } = commit;
    const whole = { reads, writes, members: writes.flatMap(memberChanges) };
    // The token is kept with the first tag.
    const home = near === undefined ? [] : [tagOfKey(near)];
    const touched = [...new Set([...home, ...tagsOf(whole)])];
    const tags = touched.length > 0 ? touched : [RESERVED_NAMESPACE];
    if (tags.length === 1 || !this.#connection.isCluster) {
      return this.#commit(commit, whole, tags, options);
    }
    for (const part of inOrder(whole, tags)) {
      const done = await this.#commit(commit, part, tagsOf(part), options);
      if (done === "changed") return done;
      if (done === "repeated" && part.writes.length === writes.length) return done;
    }
    return "done";
  }

  /** Reads the keys of a page, then their items: a script may use only keys that it is given. */
  async page(range: PageRange, options: TableCallOptions): Promise<readonly Item[]> {
    const { index, partition, descending, limit } = range;
    const set = setKey(this.#connection.prefix, index, partition);
    const items: Item[] = [];
    let bounds = boundsOf(range);
    // Some may have been removed meanwhile, and a short page would be taken for the last one.
    for (let isLast = false; !isLast && items.length < limit; ) {
      const wanted = limit - items.length;
      const args = [...bounds, descending ? "REV" : "", String(wanted)];
      const found = listOf(await this.#connection.run(PAGE, [set], args, options)) as string[];
      const cells = found.length > 0 ? await this.read(found.map(keyIn), options) : [];
      items.push(...cells.flatMap(({ item }) => item ?? []));
      isLast = found.length < wanted;
      const next = `(${found.at(-1)}`;
      bounds = descending ? [bounds[0], next] : [next, bounds[1]];
    }
    return items;
  }

  log(from: LogStart, limit: number, options: TableCallOptions): Promise<LogPage> {
    return this.#log.page(from, limit, options);
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async #read(keys: readonly Key[], options: TableCallOptions): Promise<readonly Cell[]> {
    const { prefix } = this.#connection;
    const names = keys.flatMap((key) => cellKeys(prefix, key));
    const found = listOf(await this.#connection.run(READ, names, [], options));
    return keys.map((key, at) => {
      const [text, revision, row] = found.slice(3 * at, 3 * at + 3);
      if (typeof text !== "string") return { key, item: undefined, revision: undefined };
      return { key, item: itemOf(text, row), revision: revision as string };
    });
  }

  async #commit(
    commit: Pick<Commit, "token" | "nowMs">,
    part: CommitPart,
    tags: readonly string[],
    options: TableCallOptions,
  ): Promise<CommitResult> {
    const { prefix } = this.#connection;
    await this.#announce(part, options);
    const call = commitArguments(prefix, commit, part, { tags, homeOf: this.#homeOf });
    const answer = await this.#connection.run(COMMIT, call.keys, call.args, options);
    const [done, ...expired] = listOf(answer) as [CommitResult, ...string[]];
    if (expired.length > 0) await this.#expire(expired.map(keyIn), commit.nowMs, options);
    return done;
  }

  /** Removes items whose time is over. The commit is done: an error is not the caller's. */
  async #expire(keys: readonly Key[], nowMs: number, options: TableCallOptions): Promise<void> {
    const isOver = ({ item }: Cell) => Number(item?.[TTL_ATTRIBUTE]) < Math.floor(nowMs / 1000);
    try {
      const cells = (await this.read(keys, options)).filter(isOver);
      await Promise.all(cells.map((cell) => this.#remove(cell, nowMs, options)));
    } catch {
      // The next commit finds them again.
    }
  }

  /** Removes an item whose time is over, if it is unchanged. */
  async #remove(cell: Cell, nowMs: number, options: TableCallOptions): Promise<void> {
    const { key, item: before } = cell;
    const change = { key, before, after: undefined, isLogged: true };
    const write: ExpiryWrite = { ...change, isExpired: true };
    const part = { reads: [cell], writes: [write], members: memberChanges(write) };
    const place = { tags: tagsOf(part), homeOf: this.#homeOf };
    const commit = { token: undefined, nowMs };
    const { keys, args } = commitArguments(this.#connection.prefix, commit, part, place);
    await this.#connection.run(COMMIT, keys, args, options);
  }

  /** Lets readers of the log know of the logs that a part writes to, once. */
  async #announce({ writes }: CommitPart, options: TableCallOptions): Promise<void> {
    if (!this.#connection.isCluster) return;
    const logged = writes.filter(({ isLogged }) => isLogged).map(({ key }) => tagOfKey(key));
    for (const tag of new Set(logged)) {
      if (this.#known.has(tag)) continue;
      await this.#log.add(tag, options);
      this.#known.set(tag, 1);
    }
  }
}

/** Returns the bounds of a range as the server has them. */
function boundsOf(range: PageRange): [least: string, beyond: string] {
  const { index, partition, from, before, descending, after } = range;
  const [first, end] = partitionBounds(partition);
  let least = `[${first}${from ?? ""}`;
  let beyond = `(${before === undefined ? end : `${first}${before}`}`;
  if (after !== undefined) {
    const sort = index === undefined ? after.SK : String(after[indexNamed(index).sort]);
    const text = index === undefined ? textOf(after) : placeText(partition, sort, after);
    if (descending) beyond = [beyond, `(${text}`].toSorted(byPlace)[0] as string;
    else least = [least, `(${text}`].toSorted(byPlace)[1] as string;
  }
  return [least, beyond];
}

/** Compares bounds by their bytes, without the sign in front. */
function byPlace(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one.slice(1)), Buffer.from(other.slice(1)));
}

/**
 * Returns the parts of a commit that touches several slots, in the order in which repeating it
 * repairs a crash in between. Only registering, deleting and recovering a namespace write to
 * several. What is only read goes first, as the records of processes do whose slots are given back:
 * where they have changed, nothing is written. The record of the name goes last, so that a name
 * never leads to an id that is not there; but it goes first where it is given back to an id that
 * exists, which would otherwise be active and unknown.
 */
function inOrder(whole: CommitPart, tags: readonly string[]): readonly CommitPart[] {
  const all = tags.map((tag) => ({
    reads: whole.reads.filter(({ key }) => tagOfKey(key) === tag),
    writes: whole.writes.filter(({ key }) => tagOfKey(key) === tag),
    members: whole.members.filter((member) => member.tag === tag),
  }));
  const isRead = ({ writes }: CommitPart) => writes.length === 0;
  const [read, parts] = [all.filter(isRead), all.filter((part) => !isRead(part))];
  const isRegistry = (part: CommitPart) => tagsOf(part)[0] === RESERVED_NAMESPACE;
  const creates = ({ before, after }: Commit["writes"][number]) =>
    before === undefined && after !== undefined;
  const [registry, others] = [parts.filter(isRegistry), parts.filter((each) => !isRegistry(each))];
  const isGivenBack =
    registry.some(({ writes }) => writes.some(creates)) &&
    !others.some(({ writes }) => writes.some(creates));
  const written = isGivenBack ? [...registry, ...others] : [...others, ...registry];
  return [...read, ...written];
}
