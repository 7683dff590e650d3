/** The option `usage`, for stores that count usage themselves. */

import type { OpenOptions } from "../options.ts";
import { checkUsageOptions, type UsageOptions } from "../usage-options.ts";
import type { OpenOptionTable } from "./open-option.ts";

/** The defaults of a store that outlives the process. */
export const DURABLE_USAGE = { retentionDays: 90, maxEntities: 10_000 } as const;

/** Returns the option in the table of a store, with the defaults of that store. */
export function usageOption(
  defaults: Required<UsageOptions>,
): OpenOptionTable<Pick<OpenOptions, "usage">> {
  return {
    usage: {
      check: checkUsageOptions,
      default: defaults,
      doc: "what a store that counts usage itself keeps of it; `false`: nothing",
      elsewhere: "on DynamoDB the aggregator counts usage",
    },
  };
}
