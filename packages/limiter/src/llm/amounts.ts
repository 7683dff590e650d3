/** What a call consumes of each limit, by its usage. */

import type { CountedLimits } from "./options.ts";
import type { Usage } from "./usage.ts";

/** Returns the amount per limit name. */
export function amountsOf(count: CountedLimits, usage: Usage): Record<string, number> {
  const input = usage.input + Math.ceil(usage.cached * count.cachedTokens);
  const amounts: Record<string, number> = { ...count.nothing };
  for (const name of count.requests) amounts[name] = 1;
  for (const name of count.tokens) amounts[name] = input + usage.output;
  for (const name of count.inputTokens) amounts[name] = input;
  for (const name of count.outputTokens) amounts[name] = usage.output;
  return amounts;
}
