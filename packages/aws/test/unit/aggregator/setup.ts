/** An aggregator over a memory store, with everything it logs. */

import { Aggregator, type AggregatorOptions } from "@zae-limiter/aws/aggregator/aggregator.ts";
import type { LogFields } from "@zae-limiter/aws/aggregator/log.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { AT } from "./changes.ts";

interface Logged {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

export function aggregatorOver(
  options: Partial<AggregatorOptions> & { readonly store?: MemoryItemStore; nowMs?: number } = {},
) {
  const clock = () => options.nowMs ?? AT;
  const store = options.store ?? new MemoryItemStore({ clock });
  const lines: Logged[] = [];
  const aggregator = new Aggregator({
    clock,
    log: (level, message, fields = {}) => lines.push({ level, message, fields }),
    timer: { nowMs: () => 0, sleep: async () => undefined },
    ...options,
    store,
  });
  return { aggregator, store, lines };
}
