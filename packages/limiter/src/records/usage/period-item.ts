/**
 * Statements as they are stored: what a period of a quota or a session came to when it was closed.
 *
 * The end is in the key, because it is what a bucket stores of a period, and the next one has a
 * later one. Amounts are whole milli-tokens: `granted` is the allowance, what was carried into the
 * period, and what operators added.
 */

import { isoSeconds, windowStartMs } from "../../core/windows.ts";
import { type Item, integerAt, type Key, textAt, type Value } from "../../storage/item.ts";
import type { Change } from "../../storage/item-store.ts";
import {
  entityPartition,
  inNamespace,
  PERIOD_INDEX_PREFIX,
  PERIOD_PREFIX,
  parseEntityPartition,
  resourcePartition,
} from "../keys.ts";
import type { UsageSubject } from "./usage-item.ts";

/**
 * A statement: the amounts of a closed period of a quota or a session.
 *
 * @example
 * ```ts
 * import type { UsagePeriod } from 'zae-limiter';
 * const left = ({ granted, used }: UsagePeriod) => granted - used;
 * ```
 */
export interface UsagePeriod {
  readonly entityId: string;
  readonly resource: string;
  readonly limitName: string;
  readonly kind: "quota" | "session";
  /** The beginning of the period, in epoch milliseconds. */
  readonly startMs: number;
  /** The end of the period: the first millisecond that is not in it. */
  readonly endMs: number;
  /** The zone whose clock decides the edges of a quota; absent: a session. */
  readonly timeZone?: string;
  /** Tokens per period when it was closed. */
  readonly allowance: number;
  /** Tokens that were carried into the period; negative: a debt. */
  readonly carried: number;
  /** Tokens that there were in all: the allowance, what was carried, and top-ups. */
  readonly granted: number;
  /** Tokens consumed, net of refunds; since the last reset by an operator, if there was one. */
  readonly used: number;
  /** The part of `used` that was consumed for leases of an earlier period; not of an aggregator. */
  readonly late?: number;
}

/** The amounts of a statement, in milli-tokens. */
const AMOUNTS = ["allowance", "carried", "granted", "used", "late"] as const;

/** A period that was closed; amounts are in milli-tokens. */
export type ClosedPeriod = Omit<UsagePeriod, "entityId" | "resource">;

const MILLI = 1000;
const DAY_MS = 86_400_000;
const DAY_SECONDS = 86_400;
const TIME_MS_MAX = 8_640_000_000_000_000;

/** Returns the key of a statement; the statements of an entity are in the order of their ends. */
export function periodKey(
  { namespaceId, entityId, resource }: UsageSubject,
  { limitName, endMs }: Pick<ClosedPeriod, "limitName" | "endMs">,
): Key {
  return {
    PK: entityPartition(namespaceId, entityId),
    SK: `${PERIOD_PREFIX}${timeText(endMs)}#${resource}#${limitName}`,
  };
}

/** Returns the change that stores a statement. */
export function periodChange(
  subject: UsageSubject,
  closed: ClosedPeriod,
  retentionDays: number,
): Change {
  const set: Record<string, Value> = commonAttributes(subject, closed, retentionDays);
  for (const name of AMOUNTS) {
    const amount = closed[name];
    if (amount !== undefined) set[name] = amount;
  }
  return { set };
}

/** Returns the period under which statements are summed that have no record of their own: a day. */
export function dayOf(closed: ClosedPeriod): ClosedPeriod {
  const startMs = dayStartMs(closed);
  return { ...closed, startMs, endMs: startMs + DAY_MS };
}

/** Returns the change that adds a statement to the sum of a day. */
export function periodSumChange(
  subject: UsageSubject,
  closed: ClosedPeriod,
  retentionDays: number,
): Change {
  const add = Object.fromEntries(AMOUNTS.map((name) => [name, closed[name] ?? 0]));
  return { set: commonAttributes(subject, closed, retentionDays), add };
}

/** Returns the change that adds the part of a shard, whose `mark` says that it is in it. */
export function periodPartChange(
  subject: UsageSubject,
  closed: ClosedPeriod,
  mark: string,
  retentionDays: number,
): Change {
  const { allowance, carried, granted, used } = closed;
  const common = commonAttributes(subject, closed, retentionDays);
  return { set: { ...common, allowance, [mark]: true }, add: { carried, granted, used } };
}

function commonAttributes(
  subject: UsageSubject,
  { limitName, kind, startMs, endMs, timeZone }: ClosedPeriod,
  retentionDays: number,
): Record<string, Value> {
  const { namespaceId, entityId, resource } = subject;
  const partition = entityPartition(namespaceId, entityId);
  return {
    entity_id: entityId,
    resource,
    limit_name: limitName,
    kind,
    period_start: startMs,
    period_end: endMs,
    ...(timeZone === undefined ? {} : { time_zone: timeZone }),
    ttl: Math.ceil(endMs / 1000) + retentionDays * DAY_SECONDS,
    GSI2PK: resourcePartition(namespaceId, resource),
    GSI2SK: `${PERIOD_INDEX_PREFIX}${timeText(endMs)}#${limitName}#${entityId}`,
    ...inNamespace(namespaceId, partition),
  };
}

/** Returns the place in GSI2 of a resource's statements whose periods ended on a day of UTC. */
export function periodDay(
  { namespaceId, resource }: UsageSubject,
  closed: ClosedPeriod,
): { readonly partition: string; readonly prefix: string } {
  const day = isoSeconds(dayStartMs(closed)).slice(0, "YYYY-MM-DD".length);
  const partition = resourcePartition(namespaceId, resource);
  return { partition, prefix: `${PERIOD_INDEX_PREFIX}${day}` };
}

/** Returns the start of the day of UTC on which a period ended. */
function dayStartMs({ endMs }: ClosedPeriod): number {
  return windowStartMs("daily", endMs - 1);
}

/** Formats the end of a period so that ends compare as text. */
export function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/** Returns the statement in an item; `undefined` when it is incomplete, or not that of its key. */
export function decodePeriod(item: Item): UsagePeriod | undefined {
  const entityId = textAt(item, "entity_id");
  const resource = textAt(item, "resource");
  const limitName = textAt(item, "limit_name");
  const kind = textAt(item, "kind");
  const startMs = integerAt(item, "period_start", 0, TIME_MS_MAX);
  const endMs = integerAt(item, "period_end", 0, TIME_MS_MAX);
  if (entityId === undefined || resource === undefined || limitName === undefined) return undefined;
  if (startMs === undefined || endMs === undefined) return undefined;
  if (kind !== "quota" && kind !== "session") return undefined;
  const isItsOwn =
    parseEntityPartition(item.PK)?.entityId === entityId &&
    item.SK === `${PERIOD_PREFIX}${timeText(endMs)}#${resource}#${limitName}`;
  if (!isItsOwn) return undefined;
  const timeZone = textAt(item, "time_zone");
  const tokens = (name: (typeof AMOUNTS)[number]) => tokensAt(item, name) ?? 0;
  const late = tokensAt(item, "late");
  return {
    entityId,
    resource,
    limitName,
    kind,
    startMs,
    endMs,
    ...(timeZone === undefined ? {} : { timeZone }),
    allowance: tokens("allowance"),
    carried: tokens("carried"),
    granted: tokens("granted"),
    used: tokens("used"),
    ...(late === undefined ? {} : { late }),
  };
}

function tokensAt(item: Item, name: string): number | undefined {
  const milli = integerAt(item, name, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  return milli === undefined ? undefined : milli / MILLI;
}
