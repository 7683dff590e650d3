/** What an embedded store keeps of usage. */

import { checkFields, checkInteger, checkOptions } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import type { StoreLocation } from "./store-url.ts";

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

const DEFAULTS = {
  memory: { retentionDays: 7, maxEntities: 1000 },
  sqlite: { retentionDays: 90, maxEntities: 10_000 },
} as const;
const RETENTION_DAYS_MAX = 3650;
const ENTITIES_MAX = 10_000_000;

/** Refuses what is neither `false` nor an object of numbers in their ranges. */
export function checkUsageOptions(usage: unknown, dynamodb: boolean): void {
  if (usage === undefined) return;
  if (dynamodb) {
    const reason = "is for memory: and sqlite: only; on DynamoDB the aggregator counts usage";
    throw new ValidationError("usage", usage, reason);
  }
  if (usage === false) return;
  checkOptions("usage", usage, "false or { retentionDays, maxEntities }");
  checkFields("usage", usage as object, ["retentionDays", "maxEntities"]);
  const { retentionDays, maxEntities } = usage as UsageOptions;
  if (retentionDays !== undefined) {
    checkInteger("retentionDays", retentionDays, 1, RETENTION_DAYS_MAX);
  }
  if (maxEntities !== undefined) checkInteger("maxEntities", maxEntities, 1, ENTITIES_MAX);
}

/** All numbers; `undefined` when no usage is kept. */
export function usageBounds(
  kind: Exclude<StoreLocation["kind"], "dynamodb">,
  usage: false | UsageOptions | undefined,
): Required<UsageOptions> | undefined {
  return usage === false ? undefined : { ...DEFAULTS[kind], ...usage };
}
