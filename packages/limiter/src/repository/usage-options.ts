/** The usage that an embedded store keeps. */

import { checkOptions } from "../domain/check.ts";
import { checkByTable, type OptionTable, whole } from "../domain/options.ts";

/**
 * Usage that an embedded store keeps. On DynamoDB the aggregator decides, see `deploy`.
 *
 * @example
 * ```ts
 * import { RateLimiter, type UsageOptions } from 'zae-limiter';
 * const usage: UsageOptions = { retentionDays: 30, maxEntities: 500 };
 * const limiter = await RateLimiter.open('memory:', { usage });
 * await limiter.close();
 * ```
 */
export interface UsageOptions {
  /** How long a snapshot is kept after its window. Default 7 in memory, 90 in a file. */
  readonly retentionDays?: number;
  /**
   * How many entities have snapshots of their own, per window and resource: the busiest. All others
   * are summed as `_other_`. Default 1,000 in memory, 10,000 in a file.
   */
  readonly maxEntities?: number;
}

const USAGE_OPTIONS: OptionTable<UsageOptions> = {
  retentionDays: { check: whole(1, 3650) },
  maxEntities: { check: whole(1, 10_000_000) },
};

/** Refuses what is neither `false` nor an object of numbers in their ranges. */
export function checkUsageOptions(field: string, usage: unknown): void {
  if (usage === false) return;
  checkOptions(field, usage, "false or { retentionDays, maxEntities }");
  checkByTable(usage as object, USAGE_OPTIONS);
}
