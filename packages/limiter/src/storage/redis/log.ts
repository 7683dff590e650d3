/** The log of changes: one for all namespaces, but in a cluster one for each. */

import { ValidationError } from "../../domain/errors/errors.ts";
import { RESERVED_NAMESPACE } from "../../domain/names.ts";
import type { ChangeRecord } from "../item-store.ts";
import type { LogPage, LogStart, TableCallOptions } from "../item-table.ts";
import type { RedisConnection } from "./connection.ts";
import { keyIn, logKeys, tagsKey } from "./keys.ts";
import { itemOf, listOf } from "./parameters.ts";
import { LOG, TAGS } from "./scripts/read.ts";

/** For each tag the number of the record that was read last; `undefined`: none yet. */
type Place = ReadonlyMap<string, number>;

/** One record of the log of one tag. */
interface Entry extends Omit<ChangeRecord, "position"> {
  readonly tag: string;
  readonly number: number;
}

export class RedisLog {
  readonly #connection: RedisConnection;

  constructor(connection: RedisConnection) {
    this.#connection = connection;
  }

  /** Adds a tag to those that have a log. */
  async add(tag: string, options: TableCallOptions): Promise<void> {
    await this.#connection.run(TAGS, [tagsKey(this.#connection.prefix)], [tag], options);
  }

  async page(from: LogStart, limit: number, options: TableCallOptions): Promise<LogPage> {
    const start = typeof from === "string" ? new Map<string, number>() : placeIn(from.after);
    const tags = await this.#tags(options);
    const isNow = from === "now";
    const logs = await Promise.all(
      tags.map((tag) => this.#entries(tag, start.get(tag), isNow ? 0 : limit, options)),
    );
    if (isNow) {
      const ends = tags.map((tag, at) => [tag, logs[at]?.last ?? 0] as const);
      return { records: [], position: positionOf(new Map(ends)) };
    }
    for (const [at, tag] of tags.entries()) {
      if (logs[at]?.isKept === false) throw unknownPosition(textOfStart(from));
      if (!start.has(tag) && start.size > 0 && !this.#connection.isCluster) {
        throw unknownPosition(textOfStart(from));
      }
    }
    const entries = logs.flatMap(({ entries: each }) => each);
    // Sorting keeps the order of each log, because its records have the order of their commits.
    const inOrder = tags.length === 1 ? entries : merged(logs.map(({ entries: each }) => each));
    const place = new Map(start);
    for (const [at, tag] of tags.entries()) {
      const { entries: each = [], last = 0 } = logs[at] ?? {};
      if (each.length === 0 && !place.has(tag)) place.set(tag, last);
    }
    const records = inOrder.slice(0, limit).map(({ tag, number, ...record }) => {
      place.set(tag, number);
      return { ...record, position: positionOf(place) };
    });
    return { records, position: positionOf(place) };
  }

  async #tags(options: TableCallOptions): Promise<readonly string[]> {
    if (!this.#connection.isCluster) return [RESERVED_NAMESPACE];
    const key = tagsKey(this.#connection.prefix);
    return (listOf(await this.#connection.run(TAGS, [key], [], options)) as string[]).toSorted();
  }

  /** Returns records of one log, and whether all after the last that was read are kept. */
  async #entries(
    tag: string,
    after: number | undefined,
    limit: number,
    options: TableCallOptions,
  ): Promise<{ entries: readonly Entry[]; last: number; isKept: boolean }> {
    const keys = logKeys(this.#connection.prefix, tag);
    const args = [String(after ?? 0), String(limit)];
    const [end, found] = listOf(await this.#connection.run(LOG, keys, args, options));
    const last = Number(end);
    const entries = listOf(found).map((entry) => entryOf(tag, entry));
    const next = entries[0]?.number ?? last + 1;
    return { entries, last, isKept: after === undefined || next === after + 1 };
  }
}

function entryOf(tag: string, entry: unknown): Entry {
  const [id, list] = entry as [string, string[]];
  const fields = new Map<string, string>();
  for (let at = 0; at < list.length; at += 2)
    fields.set(list[at] as string, list[at + 1] as string);
  const text = (name: string) => fields.get(name) ?? "";
  const image = (name: string) => (text(name) === "" ? undefined : itemOf(text(name)));
  const number = Number.parseInt(id, 10);
  return {
    tag,
    number,
    key: keyIn(text("k")),
    before: image("b"),
    after: image("a"),
    atMs: Number(text("t")),
    expired: text("o") === "2",
    shard: tag,
    sequence: String(number),
  };
}

/** Merges logs by the times of their commits; each keeps its order. */
function merged(logs: readonly (readonly Entry[])[]): readonly Entry[] {
  const left = logs.map((entries) => [...entries]);
  const all: Entry[] = [];
  for (;;) {
    const [first] = left
      .filter(([head]) => head !== undefined)
      .toSorted(([one], [other]) => (one as Entry).atMs - (other as Entry).atMs);
    const next = first?.shift();
    if (next === undefined) return all;
    all.push(next);
  }
}

/** Reads a position: a number for each tag. */
function placeIn(position: string): Place {
  if (!/^(?:[^=,]*=\d{1,16}(?:,|$))+$/.test(position)) throw unknownPosition(position);
  return new Map(
    position.split(",").map((part) => {
      const [tag = "", number] = part.split("=");
      return [decodedTag(tag, position), Number(number)];
    }),
  );
}

function decodedTag(tag: string, position: string): string {
  try {
    return decodeURIComponent(tag);
  } catch {
    throw unknownPosition(position);
  }
}

function positionOf(place: Place): string {
  if (place.size === 0) return `${RESERVED_NAMESPACE}=0`;
  return [...place].map(([tag, number]) => `${encodeURIComponent(tag)}=${number}`).join(",");
}

function textOfStart(from: LogStart): string {
  return typeof from === "string" ? from : from.after;
}

function unknownPosition(position: string): ValidationError {
  return new ValidationError("position", position, "expected the position of a change record");
}
