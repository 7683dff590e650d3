/** `usage` of the AI SDK: numbers in major 5, objects since 6. */

import { countOf, type Fields, fieldsOf, inputParts, type KnownUsage } from "./usage.ts";

/** Reads the usage of a result or of a `finish` part. */
export function aiSdkUsage(given: unknown, provider: string): KnownUsage {
  const usage = fieldsOf(given);
  const { inputTokens, outputTokens } = usage;
  if (typeof inputTokens === "object") {
    const output = countOf(fieldsOf(outputTokens)["total"]);
    return { ...objectInput(fieldsOf(inputTokens)), output };
  }
  const input = countOf(inputTokens);
  const cached = countOf(usage["cachedInputTokens"]);
  // Anthropic's provider leaves cached input out of `inputTokens` in major 5.
  const isApart = provider.startsWith("anthropic") || (cached ?? 0) > (input ?? 0);
  const parts = isApart ? { input, cached } : inputParts(input, cached);
  return { ...parts, output: countOf(outputTokens) };
}

function objectInput({ total, noCache, cacheRead, cacheWrite }: Fields): KnownUsage {
  const cached = countOf(cacheRead);
  const whole = countOf(total);
  if (whole !== undefined) return inputParts(whole, cached);
  const uncached = countOf(noCache);
  if (uncached === undefined) return {};
  return { input: uncached + (countOf(cacheWrite) ?? 0), cached };
}
