/** The sum of usage snapshots. */

import { defined } from "../../base/defined.ts";
import { wholeTokens } from "./usage-item.ts";

/**
 * Usage over several windows. Without a window type, the finest that there is counts alone: hours
 * and days together would count everything twice. Over several entities, an acquire that cascades
 * counts once, at the topmost ancestor that has the limit; over several resources, an acquire that
 * counts for a total too counts once.
 *
 * @example
 * ```ts
 * import { Repository, type UsageSummary } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * const summary: UsageSummary = await repo.usage.summary({ entityId: 'key-1', window: 'daily' });
 * console.log(summary.snapshotCount); // 0
 * await repo.close();
 * ```
 */
export interface UsageSummary {
  /** The snapshots that were added up, without those that an ancestor's includes. */
  readonly snapshotCount: number;
  /** Whole tokens per limit. */
  readonly total: Readonly<Record<string, number>>;
  /**
   * Per snapshot: the total divided by `snapshotCount`, also where a limit is missing from some.
   * Windows without any use have no snapshot and do not count; several entities of one window
   * count once each.
   */
  readonly average: Readonly<Record<string, number>>;
  /** The start of the first window that was counted. */
  readonly minWindowStart?: string;
  /** The start of the last window that was counted. */
  readonly maxWindowStart?: string;
}

/** Adds up snapshots in milli-tokens, so that parts of tokens are rounded once, at the end. */
export class UsageSum {
  readonly #milli = new Map<string, number>();
  #count = 0;
  #first: string | undefined;
  #last: string | undefined;

  /** Adds the tokens of a snapshot. `names`: the counters to add; all of them when absent. */
  add(windowStart: string, counters: ReadonlyMap<string, number>, names?: readonly string[]): void {
    if (names?.length === 0 && counters.size > 0) return;
    this.#count += 1;
    if (this.#first === undefined || windowStart < this.#first) this.#first = windowStart;
    if (this.#last === undefined || windowStart > this.#last) this.#last = windowStart;
    for (const [name, tokens] of counters) {
      if (names !== undefined && !names.includes(name)) continue;
      this.#milli.set(name, (this.#milli.get(name) ?? 0) + Math.round(tokens * 1000));
    }
  }

  summary(): UsageSummary {
    const totals = [...this.#milli].map(([name, milli]) => [name, milli / 1000] as const);
    return {
      snapshotCount: this.#count,
      total: Object.fromEntries(totals.map(([name, tokens]) => [name, wholeTokens(tokens)])),
      average: Object.fromEntries(totals.map(([name, tokens]) => [name, tokens / this.#count])),
      ...defined({ minWindowStart: this.#first, maxWindowStart: this.#last }),
    };
  }
}
