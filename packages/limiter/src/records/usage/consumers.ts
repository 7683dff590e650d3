/** Ranks entities by what they consumed. */

import { entryOf } from "../../base/entry.ts";
import { TOTAL } from "../../domain/names.ts";
import type { Item } from "../../storage/item.ts";
import { type UsageSnapshot, usageCounters, wholeTokens } from "./usage-item.ts";

/**
 * Usage of an entity over several windows and resources.
 *
 * @example
 * ```ts
 * import { RateLimiter, type UsageConsumer } from 'zae-limiter';
 * const limiter = await RateLimiter.open('memory:');
 * const call = { resource: 'gpt-4', limits: ['tpm:1000'] };
 * await limiter.acquire({ ...call, entityId: 'key-1', consume: { tpm: 300 } });
 * await limiter.acquire({ ...call, entityId: 'key-2', consume: { tpm: 700 } });
 * const [first]: UsageConsumer[] = await limiter.repository.usage.top({ by: 'tpm' });
 * console.log(first?.entityId, first?.counters.tpm); // key-2 700
 * await limiter.close();
 * ```
 */
export interface UsageConsumer {
  readonly entityId: string;
  /** How many acquires consumed something. */
  readonly totalEvents: number;
  /** Whole tokens per limit, net of refunds. */
  readonly counters: Readonly<Record<string, number>>;
  /** The resources it consumed, by name. */
  readonly resources: readonly string[];
}

interface Sum {
  events: number;
  readonly milli: Map<string, number>;
  readonly resources: Set<string>;
}

/** Adds up snapshots of one window type by entity; of totals, what no resource has counted. */
export class ConsumerSums {
  readonly #sums = new Map<string, Sum>();
  readonly #totals = new Map<string, Sum>();

  add({ entityId, resource, totalEvents }: UsageSnapshot, item: Item): void {
    const sums = resource === TOTAL ? this.#totals : this.#sums;
    const sum = entryOf(sums, entityId, () => {
      return { events: 0, milli: new Map(), resources: new Set<string>() };
    });
    sum.events += totalEvents;
    sum.resources.add(resource);
    for (const [name, tokens] of usageCounters(item)) {
      sum.milli.set(name, (sum.milli.get(name) ?? 0) + Math.round(tokens * 1000));
    }
  }

  /** Returns the highest first, by tokens of the limit `by` or by acquires; equals by id. */
  top(by: string | undefined, limit: number): UsageConsumer[] {
    const rank = ({ events, milli }: Sum) => (by === undefined ? events : (milli.get(by) ?? 0));
    const ranked = [...this.#merged()].sort(
      ([leftId, left], [rightId, right]) => rank(right) - rank(left) || (leftId < rightId ? -1 : 1),
    );
    return ranked.slice(0, limit).map(([entityId, { events, milli, resources }]) => ({
      entityId,
      totalEvents: events,
      counters: Object.fromEntries(
        [...milli].map(([name, amount]) => [name, wholeTokens(amount / 1000)]),
      ),
      resources: [...resources].sort(),
    }));
  }

  /** Returns the sums, with the larger of what a total and the resources have counted. */
  #merged(): ReadonlyMap<string, Sum> {
    const merged = new Map(this.#sums);
    for (const [entityId, total] of this.#totals) {
      const { events, milli, resources } = this.#sums.get(entityId) ?? total;
      const most = new Map(milli);
      for (const [name, amount] of total.milli)
        most.set(name, Math.max(amount, most.get(name) ?? 0));
      merged.set(entityId, { events: Math.max(events, total.events), milli: most, resources });
    }
    return merged;
  }
}
