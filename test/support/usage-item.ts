/** Usage snapshots as items, for tests that need some without an aggregator. */

import type { Item } from "@zae-limiter/limiter/storage/item.ts";

export interface UsageSeed {
  readonly entity: string;
  readonly resource?: string;
  readonly window: "hourly" | "daily" | "monthly";
  readonly start: string;
  readonly events: number;
  readonly counters: Readonly<Record<string, number>>;
}

/** A snapshot with our keys. */
export function usageItem(namespaceId: string, seed: UsageSeed): Item {
  const { entity, resource = "gpt-4", window, start, events, counters } = seed;
  const PK = `${namespaceId}/ENTITY#${entity}`;
  return {
    PK,
    SK: `#USAGE#${resource}#${window}#${start}`,
    GSI2PK: `${namespaceId}/RESOURCE#${resource}`,
    GSI2SK: `USAGE#${window}#${start}#${entity}`,
    GSI4PK: namespaceId,
    GSI4SK: PK,
    entity_id: entity,
    resource,
    window,
    window_start: start,
    total_events: events,
    ...counters,
  };
}
