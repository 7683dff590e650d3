/** Chat Completions, Completions, Responses and Embeddings of OpenAI, and all compatible APIs. */

import { textIn } from "../prompt-size.ts";
import {
  checkedUsage,
  countOf,
  type Fields,
  fieldsOf,
  type KnownUsage,
  listOf,
  objectOf,
} from "../usage.ts";
import type { EventNews, Format } from "./format.ts";

export const chat: Format = {
  api: "chat",
  provider: "openai",
  promptFields: ["messages", "tools", "functions", "response_format"],
  maxFields: ["max_completion_tokens", "max_tokens"],
  choicesFields: ["n"],
  answerField: "choices",
  hasOutput: true,
  isAskedForUsage: true,
  readUsage: completionUsage,
  readEvent: readChunk,
};

export const completions: Format = {
  ...chat,
  api: "completions",
  promptFields: ["prompt", "suffix"],
  maxFields: ["max_tokens"],
  choicesFields: ["n", "best_of"],
};

export const responses: Format = {
  api: "responses",
  provider: "openai",
  promptFields: ["input", "instructions", "tools", "text"],
  storedFields: ["previous_response_id", "conversation", "prompt"],
  maxFields: ["max_output_tokens"],
  answerField: "output",
  hasOutput: true,
  readUsage: responseUsage,
  readEvent: readResponseEvent,
  pendingIdOf,
};

export const embeddings: Format = {
  api: "embeddings",
  provider: "openai",
  promptFields: ["input"],
  maxFields: [],
  hasOutput: false,
  readUsage: (answer) => {
    const usage = completionUsage(answer);
    return usage?.isAbsurd === true ? usage : usage && { ...usage, output: 0 };
  },
  readEvent: () => ({}),
};

/** Reads `prompt_tokens` and `completion_tokens`; `undefined` where there is no usage. */
export function completionUsage(answer: Fields): KnownUsage | undefined {
  const usage = objectOf(answer["usage"] ?? fieldsOf(answer["x_groq"])["usage"]);
  if (usage === undefined) return undefined;
  const input = fieldsOf(usage["prompt_tokens_details"]);
  const output = fieldsOf(usage["completion_tokens_details"]);
  return checkedUsage({
    input: usage["prompt_tokens"],
    cached: input["cached_tokens"],
    audioInput: input["audio_tokens"],
    includesCached: true,
    output: completionOutput(usage),
    reasoning: output["reasoning_tokens"],
    audioOutput: output["audio_tokens"],
    tier: answer["service_tier"],
  });
}

/**
 * Returns the output with reasoning. Most providers include reasoning in `completion_tokens`. If
 * the total is larger by exactly the reasoning tokens, the provider counts them apart.
 */
function completionOutput(usage: Fields): unknown {
  const given = usage["completion_tokens"];
  const input = countOf(usage["prompt_tokens"]);
  const total = countOf(usage["total_tokens"]);
  // Embeddings have no output, and their usage does not state any.
  if (given === undefined || given === null) {
    return total !== undefined && total === input ? 0 : undefined;
  }
  const output = countOf(given);
  if (output === undefined) return given;
  const reasoning = countOf(fieldsOf(usage["completion_tokens_details"])["reasoning_tokens"]) ?? 0;
  return total === (input ?? 0) + output + reasoning ? total - (input ?? 0) : output;
}

/** Reads `input_tokens` and `output_tokens`; `undefined` where there is no usage. */
export function responseUsage(answer: Fields): KnownUsage | undefined {
  const usage = objectOf(answer["usage"]);
  if (usage === undefined) return undefined;
  const input = fieldsOf(usage["input_tokens_details"]);
  const output = fieldsOf(usage["output_tokens_details"]);
  return checkedUsage({
    input: usage["input_tokens"],
    cached: input["cached_tokens"],
    audioInput: input["audio_tokens"],
    imageInput: input["image_tokens"],
    includesCached: true,
    output: usage["output_tokens"],
    reasoning: output["reasoning_tokens"],
    audioOutput: output["audio_tokens"],
    imageOutput: output["image_tokens"],
    tier: answer["service_tier"],
  });
}

function readChunk(event: Fields): EventNews {
  const usage = completionUsage(event);
  const choices = listOf(event["choices"]);
  const text = choices.length === 1 ? deltaText(choices[0]) : choices.map(deltaText).join("");
  if (usage === undefined) return { text };
  const isUsageOnly = choices.length === 0;
  return { text, usage, isUsageOnly, isLast: choices.every(isFinished) };
}

function isFinished(choice: unknown): boolean {
  return typeof fieldsOf(choice)["finish_reason"] === "string";
}

function deltaText(choice: unknown): string {
  const { delta, text } = fieldsOf(choice);
  if (typeof text === "string") return text;
  const fields = fieldsOf(delta);
  const { content, tool_calls, function_call } = fields;
  if (typeof content === "string" && content !== "") return content;
  // Providers have different names for reasoning.
  const { reasoning_content, reasoning, refusal } = fields;
  return textIn([reasoning_content ?? reasoning, refusal, tool_calls, function_call]);
}

function readResponseEvent(event: Fields): EventNews {
  const { type, delta, response } = event;
  if (typeof delta === "string") {
    // Sound is not text; its transcript comes in events of its own.
    return type === "response.audio.delta" ? {} : { text: delta };
  }
  const whole = objectOf(response);
  if (whole === undefined) return {};
  const pendingId = pendingIdOf(whole);
  return { usage: responseUsage(whole), isLast: pendingId === undefined, pendingId };
}

/** Returns the id of a response that the provider still works on; `undefined` when it is final. */
function pendingIdOf({ status, id }: Fields): string | undefined {
  if (status !== "queued" && status !== "in_progress") return undefined;
  return typeof id === "string" ? id : "";
}
