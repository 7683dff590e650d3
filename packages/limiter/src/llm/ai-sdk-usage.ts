/** Reads `usage` of the AI SDK: numbers in major 5, objects since 6. */

import { checkedUsage, countOf, type Fields, fieldsOf, type KnownUsage } from "./usage.ts";

/** Returns the usage of a result or of a `finish` part. */
export function aiSdkUsage(given: unknown, provider: string): KnownUsage {
  const usage = fieldsOf(given);
  const { inputTokens, outputTokens } = usage;
  const isObject = typeof inputTokens === "object" && inputTokens !== null;
  return isObject
    ? objectUsage(fieldsOf(inputTokens), fieldsOf(outputTokens))
    : numbers(usage, provider);
}

function objectUsage(input: Fields, { total: output, reasoning }: Fields): KnownUsage {
  const { total, noCache, cacheRead: cached, cacheWrite: written } = input;
  return total === undefined || total === null
    ? checkedUsage({ input: noCache, written, cached, includesCached: false, output, reasoning })
    : checkedUsage({ input: total, written, cached, includesCached: true, output, reasoning });
}

function numbers(usage: Fields, provider: string): KnownUsage {
  const { inputTokens: input, cachedInputTokens: cached, outputTokens: output } = usage;
  // Anthropic's provider leaves cached input out of `inputTokens` in major 5.
  const isApart =
    provider.startsWith("anthropic") || (countOf(cached) ?? 0) > (countOf(input) ?? 0);
  const reasoning = usage["reasoningTokens"];
  return checkedUsage({ input, cached, includesCached: !isApart, output, reasoning });
}
