/** `usage` of OpenAI's APIs, and of those that are compatible with them. */

import { countOf, type Fields, fieldsOf, inputParts, type KnownUsage, objectOf } from "../usage.ts";

/** Reads `prompt_tokens` and `completion_tokens`; `undefined` where there is no usage. */
export function completionUsage(answer: Fields): KnownUsage | undefined {
  const usage = objectOf(answer["usage"] ?? fieldsOf(answer["x_groq"])["usage"]);
  if (usage === undefined) return undefined;
  const input = countOf(usage["prompt_tokens"]);
  const cached = countOf(fieldsOf(usage["prompt_tokens_details"])["cached_tokens"]);
  return { ...inputParts(input, cached), output: completionOutput(usage, input) };
}

/**
 * Most providers include reasoning in `completion_tokens`. Where the total is larger by exactly the
 * reasoning tokens, the provider counts them apart.
 */
function completionOutput(usage: Fields, input: number | undefined): number | undefined {
  const output = countOf(usage["completion_tokens"]);
  const total = countOf(usage["total_tokens"]);
  // Embeddings have no output and say nothing about it.
  if (output === undefined) return input === undefined || total !== input ? undefined : 0;
  const details = fieldsOf(usage["completion_tokens_details"]);
  const reasoning = countOf(details["reasoning_tokens"]) ?? 0;
  const isApart = total !== undefined && total === (input ?? 0) + output + reasoning;
  return isApart ? output + reasoning : output;
}
