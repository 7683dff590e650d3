/** Amounts that usage consumes of each limit, in tokens and in money. */

import { TOKENS_MAX } from "../domain/check.ts";
import type { LimitStatus } from "../domain/limit-status.ts";
import type { Price } from "../domain/price.ts";
import type { CheckedLlmOptions, CountedLimits } from "./options.ts";
import { pricedTokens, type Usage } from "./usage.ts";

/** A stream corrects money that is off by a hundredth of the allowance, or by $0.05. */
const MONEY_OFF_PART = 100;
const MONEY_OFF_MICRO_MAX = 50_000;

/** Returns how many tokens a stream may be off before it is corrected. */
export function tokensOff(
  { flushEvery: tokens, count }: CheckedLlmOptions,
  statuses: readonly LimitStatus[],
  price: Price | undefined,
): number {
  if (price === undefined) return tokens;
  const allowances = statuses
    .filter(({ limitName }) => count.money.includes(limitName) && price.counts(limitName))
    .map(({ limit }) => limit.capacity);
  if (allowances.length === 0) return tokens;
  const off = Math.min(MONEY_OFF_MICRO_MAX, Math.min(...allowances) / MONEY_OFF_PART);
  return Math.max(1, Math.min(tokens, price.outputFor(Math.floor(off), {})));
}

/** Returns the amount per limit name that usage consumes; without a price no money. */
export function amountsOf(
  count: CountedLimits,
  usage: Usage,
  price?: Price,
): Record<string, number> {
  const bounded = (tokens: number) => Math.min(TOKENS_MAX, tokens);
  const input = usage.input + Math.ceil(usage.cached * count.cachedTokens);
  const amounts: Record<string, number> = {};
  for (const name of count.requests) amounts[name] = 1;
  for (const name of count.slots) amounts[name] = 1;
  for (const name of count.tokens) amounts[name] = bounded(input + usage.output);
  for (const name of count.inputTokens) amounts[name] = bounded(input);
  for (const name of count.outputTokens) amounts[name] = bounded(usage.output);
  if (price === undefined) return amounts;
  const micro = price.cost(pricedTokens(usage), { tier: usage.tier });
  for (const name of count.money) if (price.counts(name)) amounts[name] = bounded(micro);
  return amounts;
}
