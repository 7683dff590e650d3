/** The option `usage`, for stores that count usage themselves. */

import type { OpenOptions } from "../options.ts";
import { checkUsageOptions, type UsageOptions } from "../usage-options.ts";
import type { OptionTable } from "./open-option.ts";

/** Returns the option in the table of a store, with the defaults of that store. */
export function usageOption(
  defaults: Required<UsageOptions>,
): OptionTable<Pick<OpenOptions, "usage">> {
  return {
    usage: {
      type: "any",
      check: checkUsageOptions,
      default: defaults,
      doc: "what `memory:` and `sqlite:` keep of usage; `false`: nothing",
      elsewhere: "on DynamoDB the aggregator counts usage",
    },
  };
}
