/**
 * A bucket item, read from its attributes alone: `b_{limit}_tk|cp|ra|rp|tc|rr`, `rf` and
 * `shard_count`. Based on the description of the table, not on the code that writes it.
 */

import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import { type Windows, windowsIn } from "./windows.ts";

/** One limit of a shard. Amounts are milli-tokens, times milliseconds. */
export interface LimitOfShard {
  readonly name: string;
  readonly tokens: bigint;
  readonly consumed: bigint;
  /** Undivided. */
  readonly capacity: number;
  readonly refill: number;
  readonly period: number;
  readonly remainder: number;
  /** Absent: it is a rate. */
  readonly quota?: QuotaOfShard;
  /** Absent: its numbers are the same all the time. */
  readonly windows?: Windows;
}

/** The period of a quota or a session, as it is stored. */
export interface QuotaOfShard {
  /** The end of the period in force; 0: a session that was never open. */
  readonly endMs: number;
  /** The length of a session; `undefined`: it is a quota. */
  readonly sessionMs: number | undefined;
  /** Milli-tokens that were left at the last reset, at most what may be carried. */
  readonly left: bigint;
  readonly carry: Carried;
}

/** The part of a balance that the next period takes over; the most of a rest is undivided. */
export interface Carried {
  readonly debt: boolean;
  readonly restMilli: bigint;
}

export interface ShardImage {
  /** Entity, resource and shard. */
  readonly id: string;
  /** Entity and resource. */
  readonly bucket: string;
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
  readonly count: number;
  readonly epochMs: number;
  /** How many acquires have consumed from it. */
  readonly acquires: number;
  readonly limits: readonly LimitOfShard[];
}

const BUCKET_PATTERN = /^[^/]*\/BUCKET#(.+)#([^#]+)#(\d+)$/;
const ATTRIBUTE_PATTERN = /^b_(.+)_tk$/;
const METER = "wcu";

/** Whether an item is the state of a bucket. Records of resets and top-ups lie next to it. */
export function isBucket({ PK, SK }: Key): boolean {
  return PK.includes("/BUCKET#") && SK === "#STATE";
}

/** Parses the key of a bucket item. */
function placeOf(PK: string): { entityId: string; resource: string; shard: number } {
  const [, entityId = "", resource = "", shard = "0"] = BUCKET_PATTERN.exec(PK) ?? [];
  return { entityId, resource, shard: Number(shard) };
}

/** Reads a bucket item; `undefined` if an attribute is missing that every bucket has. */
export function imageOf(item: Item): ShardImage | undefined {
  const { entityId, resource, shard } = placeOf(item.PK);
  const { rf, shard_count: count = 1 } = item;
  if (typeof rf !== "number" || typeof count !== "number") return undefined;
  const limits: LimitOfShard[] = [];
  for (const attribute in item) {
    const name = ATTRIBUTE_PATTERN.exec(attribute)?.[1];
    if (name === undefined || name === METER) continue;
    const limit = limitOf(item, name);
    if (limit === undefined) return undefined;
    limits.push(limit);
  }
  const bucket = `${entityId} ${resource}`;
  return {
    id: `${bucket} ${shard}`,
    bucket,
    entityId,
    resource,
    shard,
    count,
    epochMs: rf,
    acquires: typeof item.ac === "number" ? item.ac : 0,
    limits,
  };
}

function limitOf(item: Item, name: string): LimitOfShard | undefined {
  const at = (suffix: string) => item[`b_${name}_${suffix}`];
  const [tokens, capacity, refill, period] = [at("tk"), at("cp"), at("ra"), at("rp")];
  const [consumed = 0, remainder = 0] = [at("tc"), at("rr")];
  if (!isWhole(tokens) || !isWhole(consumed)) return undefined;
  if (typeof capacity !== "number" || typeof refill !== "number" || typeof period !== "number") {
    return undefined;
  }
  return {
    name,
    tokens: BigInt(tokens),
    consumed: BigInt(consumed),
    capacity,
    refill,
    period,
    remainder: typeof remainder === "number" ? remainder : 0,
    ...(refill === 0 ? { quota: quotaOf(item, at) } : windowsOf(item, at)),
  };
}

/** Returns the windows of a limit, which are those of the item unless it has its own. */
function windowsOf(
  { sched }: Item,
  at: (suffix: string) => unknown,
): Pick<LimitOfShard, "windows"> {
  const text = at("sched") ?? sched;
  return typeof text !== "string" || text === "-" ? {} : { windows: windowsIn(text) };
}

function quotaOf({ rf }: Item, at: (suffix: string) => unknown): QuotaOfShard {
  const [seconds, begunMs, endMs] = [at("rsa"), at("wa"), at("pe")];
  if (typeof seconds === "number") {
    const sessionMs = seconds * 1000;
    const end = typeof begunMs === "number" ? begunMs + sessionMs : 0;
    return { sessionMs, endMs: end, left: 0n, carry: carriedIn(undefined) };
  }
  // A base time at or after the end says that the Python library has reset the quota.
  const counts = typeof endMs === "number" && typeof rf === "number" && rf < endMs;
  const left = isWhole(at("pl")) ? BigInt(at("pl") as number) : 0n;
  return { sessionMs: undefined, endMs: counts ? endMs : 0, left, carry: carriedIn(at("cy")) };
}

function carriedIn(stored: unknown): Carried {
  const [, carry, most = "0"] = /^(debt|rest|both)(?::(\d+))?$/.exec(String(stored)) ?? [];
  return { debt: carry === "debt" || carry === "both", restMilli: BigInt(most) * 1000n };
}

function isWhole(value: unknown): value is number | bigint {
  return typeof value === "bigint" || Number.isInteger(value);
}
