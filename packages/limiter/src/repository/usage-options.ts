/** What an embedded store keeps of usage. */

import { checkFields, checkInteger, checkOptions } from "../domain/check.ts";

/**
 * What an embedded store keeps of usage. On DynamoDB the aggregator decides, see `deploy`.
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

const RETENTION_DAYS_MAX = 3650;
const ENTITIES_MAX = 10_000_000;

/** Refuses what is neither `false` nor an object of numbers in their ranges. */
export function checkUsageOptions(usage: unknown): void {
  if (usage === false) return;
  checkOptions("usage", usage, "false or { retentionDays, maxEntities }");
  checkFields("usage", usage as object, ["retentionDays", "maxEntities"]);
  const { retentionDays, maxEntities } = usage as UsageOptions;
  if (retentionDays !== undefined) {
    checkInteger("retentionDays", retentionDays, 1, RETENTION_DAYS_MAX);
  }
  if (maxEntities !== undefined) checkInteger("maxEntities", maxEntities, 1, ENTITIES_MAX);
}
