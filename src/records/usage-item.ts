/** Usage snapshots as they are stored: what an entity consumed of a resource in one window. */

import { isoSeconds, WINDOW_TYPES, type WindowType, windowEndMs } from "../core/windows.ts";
import type { Item } from "../storage/item.ts";
import { numberAt, textAt, valueAt } from "./fields.ts";

/**
 * What an entity consumed of a resource in one hour, day or month.
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
  readonly windowType: string;
  /** The first second of the window, `YYYY-MM-DDTHH:MM:SSZ`. */
  readonly windowStart: string;
  /** The last second of the window. */
  readonly windowEnd: string;
  /** Whole tokens per limit. */
  readonly counters: Readonly<Record<string, number>>;
  readonly totalEvents: number;
}

const OWN_NUMBERS: ReadonlySet<string> = new Set(["total_events", "ttl"]);

/** The snapshot in an item; `undefined` when the item is incomplete. */
export function decodeUsage(item: Item): UsageSnapshot | undefined {
  const entityId = textAt(item, "entity_id");
  const resource = textAt(item, "resource");
  const windowStart = textAt(item, "window_start");
  if (entityId === undefined || resource === undefined || windowStart === undefined) {
    return undefined;
  }
  const windowType = textAt(item, "window") ?? "";
  const counters = Object.keys(item)
    .filter((name) => !OWN_NUMBERS.has(name) && isNumber(valueAt(item, name)))
    .map((name) => [name, numberAt(item, name) ?? 0]);
  return {
    entityId,
    resource,
    windowType,
    windowStart,
    windowEnd: lastSecond(windowType, windowStart),
    counters: Object.fromEntries(counters),
    totalEvents: numberAt(item, "total_events") ?? 0,
  };
}

/** The start itself when the type or the time is not one of ours. */
function lastSecond(windowType: string, windowStart: string): string {
  const type = WINDOW_TYPES.find((candidate): candidate is WindowType => candidate === windowType);
  const startMs = Date.parse(windowStart);
  if (type === undefined || Number.isNaN(startMs)) return windowStart;
  return isoSeconds(windowEndMs(type, startMs) - 1000);
}

function isNumber(value: unknown): boolean {
  return typeof value === "number" || typeof value === "bigint";
}
