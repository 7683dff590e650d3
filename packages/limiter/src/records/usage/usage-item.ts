/**
 * Usage snapshots as they are stored: what an entity consumed of a resource in one window.
 *
 * A counter is a number under the name of its limit, in tokens: that is how the Python library
 * reads it. A limit whose name is taken by an attribute of the record, or by a key, counts under
 * its name after a `#`, which no name of a limit contains. Marks of the stream (`@0`, `@1`, …) are
 * texts, so that they cannot be mistaken for counters.
 */

import {
  isoSeconds,
  WINDOW_TYPES,
  type WindowType,
  windowEndMs,
  windowStartMs,
} from "../../core/windows.ts";
import { type Item, type Key, numberAt, textAt, valueAt } from "../../storage/item.ts";
import type { Change } from "../../storage/item-store.ts";
import {
  entityPartition,
  inNamespace,
  parseEntityPartition,
  resourcePartition,
  USAGE_INDEX_PREFIX,
  USAGE_PREFIX,
} from "../keys.ts";

/**
 * Usage of a resource by an entity in one hour, day or month.
 *
 * @example
 * ```ts
 * import type { UsageSnapshot } from 'zae-limiter';
 * const tokensOf = (snapshot: UsageSnapshot) => snapshot.counters['tpm'] ?? 0;
 * ```
 */
export interface UsageSnapshot {
  readonly entityId: string;
  readonly resource: string;
  /** `hourly`, `daily` or `monthly`. */
  readonly windowType: string;
  /** The first second of the window, `YYYY-MM-DDTHH:MM:SSZ`. */
  readonly windowStart: string;
  /** The last second of the window. */
  readonly windowEnd: string;
  /** Whole tokens per limit, net of refunds. */
  readonly counters: Readonly<Record<string, number>>;
  /** How many acquires consumed something. */
  readonly totalEvents: number;
  /** Per soft limit, how many writes consumed from it and left it below zero; absent: none did. */
  readonly overdrawn?: Readonly<Record<string, number>>;
  /** Per limit of slots, the most that were held at once in the window; absent: it has none. */
  readonly peaks?: Readonly<Record<string, number>>;
}

/** Amounts that are added to a snapshot. */
export interface UsageAddition {
  readonly amountsMilli: Iterable<readonly [limitName: string, milli: number | bigint]>;
  readonly events: number;
  /** Number of writes that left a soft limit below zero, by its name. */
  readonly overdrawn?: ReadonlyMap<string, number>;
  /** The most slots that were held at once, by the name of the limit; they replace what was. */
  readonly peaks?: ReadonlyMap<string, number>;
}

/** Which snapshot: the window is the one of its type that holds `atMs`. */
export interface UsageSubject {
  readonly namespaceId: string;
  readonly entityId: string;
  readonly resource: string;
}

/** All entities of a window that have no snapshot of their own; no entity can be called so. */
export const OTHER_ENTITIES = "_other_";

const DAY_SECONDS = 86_400;
const EVENTS = "total_events";
const OWN_NUMBERS: ReadonlySet<string> = new Set([EVENTS, "ttl"]);
const TAKEN_NAMES: ReadonlySet<string> = new Set([
  ...OWN_NUMBERS,
  "PK",
  "SK",
  "entity_id",
  "resource",
  "window",
  "window_start",
]);
/** Keys of indexes, also of those that only tables of the Python library have. */
const INDEX_KEY_PATTERN = /^(?:GSI|LSI)[0-9](?:PK|SK)$/;
const ESCAPE = "#";
const MARK = "@";
/** Ends the name of a counter of writes that left a soft limit below zero, as in Python. */
const OVERDRAWN_SUFFIX = "#od";
/** Ends the name of the most slots that were held at once: a text, like a mark. */
const PEAK_SUFFIX = "#pk";

/** Returns the place of the snapshots of one window of a resource, in GSI2. */
export function usageWindow(
  { namespaceId, resource }: UsageSubject,
  type: WindowType,
  startMs: number,
): { readonly partition: string; readonly prefix: string } {
  const partition = resourcePartition(namespaceId, resource);
  return { partition, prefix: `${USAGE_INDEX_PREFIX}${type}#${isoSeconds(startMs)}#` };
}

/** Returns the key of the snapshot of a window. */
export function usageKey(subject: UsageSubject, type: WindowType, startMs: number): Key {
  const { namespaceId, entityId, resource } = subject;
  return {
    PK: entityPartition(namespaceId, entityId),
    SK: `${USAGE_PREFIX}${resource}#${type}#${isoSeconds(startMs)}`,
  };
}

/**
 * Returns the change that counts amounts in a snapshot and makes it when it is not there. The time
 * to live begins when the window ends, so a snapshot outlives every change that belongs into it.
 */
export function usageChange(
  subject: UsageSubject,
  type: WindowType,
  atMs: number,
  { amountsMilli, events, overdrawn = new Map(), peaks = new Map() }: UsageAddition,
  retentionDays: number,
): Change {
  const { namespaceId, entityId, resource } = subject;
  const start = isoSeconds(windowStartMs(type, atMs));
  const add: Record<string, number | bigint> = {};
  for (const [name, milli] of amountsMilli) add[counterAttribute(name)] = inTokens(milli);
  for (const [name, count] of overdrawn) add[counterAttribute(name) + OVERDRAWN_SUFFIX] = count;
  add[EVENTS] = events;
  const highest: Record<string, string> = {};
  for (const [name, peak] of peaks) highest[peakAttribute(name)] = String(peak);
  return {
    set: {
      entity_id: entityId,
      resource,
      window: type,
      window_start: start,
      ttl: Math.ceil(windowEndMs(type, atMs) / 1000) + retentionDays * DAY_SECONDS,
      GSI2PK: resourcePartition(namespaceId, resource),
      GSI2SK: `${USAGE_INDEX_PREFIX}${type}#${start}#${entityId}`,
      ...inNamespace(namespaceId, entityPartition(namespaceId, entityId)),
      ...highest,
    },
    add,
  };
}

/** Returns the attribute in which a snapshot keeps how far it has counted one shard of a bucket. */
export function markAttribute(shard: number): string {
  return `${MARK}${shard}`;
}

/** Returns the attribute in which a snapshot keeps the most slots of a limit that were held. */
export function peakAttribute(limitName: string): string {
  return counterAttribute(limitName) + PEAK_SUFFIX;
}

function counterAttribute(limitName: string): string {
  const taken = TAKEN_NAMES.has(limitName) || INDEX_KEY_PATTERN.test(limitName);
  return taken ? ESCAPE + limitName : limitName;
}

/** Returns the counters of an item in tokens, with parts of tokens where there are any. */
export function usageCounters(item: Item): Map<string, number> {
  const counters = new Map<string, number>();
  for (const name of Object.keys(item)) {
    if (OWN_NUMBERS.has(name) || !isNumber(valueAt(item, name))) continue;
    if (name.endsWith(OVERDRAWN_SUFFIX)) continue;
    counters.set(limitOf(name), numberAt(item, name) ?? 0);
  }
  return counters;
}

/** Returns how many writes left a soft limit below zero, by its name. */
export function usageOverdrawn(item: Item): Map<string, number> {
  const overdrawn = new Map<string, number>();
  for (const name of Object.keys(item)) {
    if (!name.endsWith(OVERDRAWN_SUFFIX) || !isNumber(valueAt(item, name))) continue;
    const counter = name.slice(0, -OVERDRAWN_SUFFIX.length);
    overdrawn.set(limitOf(counter), numberAt(item, name) ?? 0);
  }
  return overdrawn;
}

/** Returns the most slots that were held at once, by the name of the limit. */
export function usagePeaks(item: Item | undefined): Map<string, number> {
  const peaks = new Map<string, number>();
  for (const name of Object.keys(item ?? {})) {
    if (!name.endsWith(PEAK_SUFFIX)) continue;
    const peak = Number(textAt(item, name));
    if (Number.isSafeInteger(peak)) peaks.set(limitOf(name.slice(0, -PEAK_SUFFIX.length)), peak);
  }
  return peaks;
}

function limitOf(attribute: string): string {
  return attribute.startsWith(ESCAPE) ? attribute.slice(ESCAPE.length) : attribute;
}

/**
 * Returns the snapshot in an item; `undefined` when it is incomplete, or not the one its key names.
 */
export function decodeUsage(item: Item): UsageSnapshot | undefined {
  const entityId = textAt(item, "entity_id");
  const resource = textAt(item, "resource");
  const windowStart = textAt(item, "window_start");
  if (entityId === undefined || resource === undefined || windowStart === undefined) {
    return undefined;
  }
  const isItsOwn =
    parseEntityPartition(item.PK)?.entityId === entityId &&
    item.SK.startsWith(`${USAGE_PREFIX}${resource}#`) &&
    item.SK.endsWith(`#${windowStart}`);
  if (!isItsOwn) return undefined;
  const windowType = textAt(item, "window") ?? "";
  const counters = [...usageCounters(item)].map(([name, count]) => [name, wholeTokens(count)]);
  const overdrawn = usageOverdrawn(item);
  const peaks = usagePeaks(item);
  return {
    entityId,
    resource,
    windowType,
    windowStart,
    windowEnd: lastSecond(windowType, windowStart),
    counters: Object.fromEntries(counters),
    totalEvents: numberAt(item, EVENTS) ?? 0,
    ...(overdrawn.size === 0 ? {} : { overdrawn: Object.fromEntries(overdrawn) }),
    ...(peaks.size === 0 ? {} : { peaks: Object.fromEntries(peaks) }),
  };
}

/** Cuts off the part of a token that may be left at the end. */
export function wholeTokens(tokens: number): number {
  return Math.trunc(tokens) + 0;
}

/** Converts exactly: DynamoDB adds decimals, so parts of tokens add up before any rounding. */
function inTokens(milli: number | bigint): number | bigint {
  if (typeof milli === "number") return milli / 1000;
  return milli % 1000n === 0n ? milli / 1000n : Number(milli) / 1000;
}

/** Returns the last second of a window; its start when the type or the time is not one of ours. */
function lastSecond(windowType: string, windowStart: string): string {
  const type = WINDOW_TYPES.find((candidate): candidate is WindowType => candidate === windowType);
  const endMs = type === undefined ? Number.NaN : windowEndMs(type, Date.parse(windowStart));
  return Number.isNaN(endMs) ? windowStart : isoSeconds(endMs - 1000);
}

function isNumber(value: unknown): boolean {
  return typeof value === "number" || typeof value === "bigint";
}
