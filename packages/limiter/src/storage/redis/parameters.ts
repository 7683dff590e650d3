/** Arguments and answers of scripts. */

import { InfrastructureError } from "../../domain/errors/errors.ts";
import { decodeItem, encodeItem } from "../attribute-value.ts";
import type { Item, Value } from "../item.ts";
import type { Cell, CellWrite, Commit } from "../item-table.ts";
import { TTL_ATTRIBUTE } from "../table.ts";
import { VERSION, WARM_ROW, type WarmRow } from "../warm-buckets.ts";
import {
  cellKeys,
  type Member,
  membersOf,
  SHARED_KEYS,
  sharedKeys,
  tagOfKey,
  textOf,
} from "./keys.ts";
import { ROW_HEAD, ROW_STRIDE } from "./scripts/warm.ts";

/** The part of a commit that one script writes; in a cluster that is the part of one tag. */
export interface CommitPart {
  readonly reads: readonly Cell[];
  /** Writes of items; each key is among the reads. */
  readonly writes: readonly CellWrite[];
  readonly members: readonly MemberChange[];
}

/** A member that is added to a sorted set, or removed from it. */
export interface MemberChange extends Member {
  readonly isAdded: boolean;
}

/** Returns the changes of the table's sorted set and of those of its indexes. */
export function memberChanges({ key, before, after }: CellWrite): readonly MemberChange[] {
  const old = before === undefined ? [] : membersOf({ ...before, ...key });
  const now = after === undefined ? [] : membersOf({ ...after, ...key });
  const isIn = (list: readonly Member[]) => (member: Member) =>
    list.some(({ set, text }) => set === member.set && text === member.text);
  return [
    ...old.filter((member) => !isIn(now)(member)).map((each) => ({ ...each, isAdded: false })),
    ...now.filter((member) => !isIn(old)(member)).map((each) => ({ ...each, isAdded: true })),
  ];
}

/** Returns the tags that a part touches: the first is that of its token. */
export function tagsOf({ reads, writes, members }: CommitPart): readonly string[] {
  const tags = [...writes, ...reads].map(({ key }) => tagOfKey(key));
  return [...new Set([...tags, ...members.map(({ tag }) => tag)])];
}

/** Returns the keys and the arguments of a commit; `homeOf` has the log and the expiry of a tag. */
export function commitArguments(
  prefix: string,
  { token, nowMs }: Pick<Commit, "token" | "nowMs">,
  part: CommitPart,
  options: { readonly tags: readonly string[]; readonly homeOf: (tag: string) => string },
): { readonly keys: readonly string[]; readonly args: readonly string[] } {
  const { reads, writes, members } = part;
  const homes = writes.map(({ key }) => options.homeOf(tagOfKey(key)));
  const tags = [...new Set([...options.tags, ...homes])];
  const place = (tag: string) => tags.indexOf(tag);
  const keys = tags.flatMap((tag) => sharedKeys(prefix, tag, token));
  const args = [String(nowMs), token === undefined ? "" : "1", String(tags.length)];
  args.push(String(reads.length));
  const cells = new Map<string, number>();
  for (const { key, revision } of reads) {
    keys.push(...cellKeys(prefix, key));
    cells.set(textOf(key), cells.size + 1);
    args.push(revision ?? "");
  }
  args.push(String(writes.length));
  for (const [at, write] of writes.entries()) {
    const name = textOf(write.key);
    const home = place(homes[at] as string) + 1;
    args.push(String(cells.get(name)), String(home), name, ...writeArguments(write));
  }
  args.push(String(members.length));
  for (const { tag, set, text, isAdded } of members) {
    args.push(String(place(tag) * SHARED_KEYS + set), isAdded ? "1" : "0", text);
  }
  return { keys, args };
}

/** A write of a row whose time is over says so in the log. */
export interface ExpiryWrite extends CellWrite {
  readonly isExpired: true;
}

function writeArguments(write: CellWrite): readonly string[] {
  const { before, after } = write;
  const ttl = after?.[TTL_ATTRIBUTE];
  const warm = after?.[WARM_ROW];
  const logged = "isExpired" in write ? "2" : "1";
  return [
    after === undefined ? "" : textOfItem(after),
    typeof ttl === "number" ? String(Math.floor(ttl)) : "",
    write.isLogged ? logged : "0",
    write.isLogged && before !== undefined ? textOfItem(before) : "",
    ...rowArguments(warm as unknown as WarmRow | undefined),
  ];
}

/** Returns the count of a row's numbers, and the row. */
function rowArguments(row: WarmRow | undefined): readonly string[] {
  if (row === undefined) return ["0"];
  const { build, parent, cascades, held, until, cap, refill, period, at, tok, rem, used, events } =
    row;
  const numbers: (number | bigint)[] = [until, events];
  cap.forEach((_, place) => {
    for (const each of [cap, refill, period, at, tok, rem, used]) {
      numbers.push(each[place] as number);
    }
  });
  const head = [String(numbers.length), build, parent ?? "", cascades ? "1" : "0", held];
  return [...head, ...numbers.map(String)];
}

/** Returns the row of a bucket as a script has unpacked it. */
function rowOf(values: readonly (string | number)[]): WarmRow {
  const [build, parent, cascades, held, until, events] = values;
  const limits = (values.length - ROW_HEAD) / ROW_STRIDE;
  const column = (place: number) =>
    Array.from({ length: limits }, (_, at) => Number(values[ROW_HEAD + at * ROW_STRIDE + place]));
  return {
    build: String(build),
    parent: parent === "" ? null : String(parent),
    cascades: cascades === "1",
    until: Number(until),
    cap: column(0),
    refill: column(1),
    period: column(2),
    at: column(3),
    tok: column(4),
    rem: column(5),
    used: column(6),
    events: Number(events),
    held: String(held),
  };
}

/** Returns the text of an item; a script finds its config version in front. */
function textOfItem(item: Item): string {
  const { [WARM_ROW]: _, ...stored } = item;
  const version = item[VERSION];
  const front = Number.isSafeInteger(version) && (version as number) >= 0 ? String(version) : "";
  return front + JSON.stringify(encodeItem(stored));
}

/** Reads the text of an item, and its row. */
export function itemOf(text: string, row?: unknown): Item {
  const json = JSON.parse(text.slice(text.indexOf("{"))) as Record<string, unknown>;
  const item = decodeItem(json);
  if (!Array.isArray(row)) return item;
  return { ...item, [WARM_ROW]: rowOf(row) as unknown as Value };
}

/** Returns an answer that must be a list. */
export function listOf(answer: unknown): readonly unknown[] {
  if (Array.isArray(answer)) return answer;
  throw new InfrastructureError("The client of Redis returned no list where the script has one");
}

/** Returns the tag with the log and the expiry of a tag: one for all, but in a cluster. */
export function homeTagIn(isCluster: boolean, everywhere: string): (tag: string) => string {
  return (tag) => (isCluster ? tag : everywhere);
}
