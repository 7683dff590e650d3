/** The Responses API of OpenAI. */

import { countOf, type Fields, fieldsOf, inputParts, type KnownUsage, objectOf } from "../usage.ts";
import type { EventNews, Format } from "./format.ts";

export const openaiResponses: Format = {
  api: "responses",
  provider: "openai",
  promptFields: ["input", "instructions", "tools", "text"],
  maxFields: ["max_output_tokens"],
  answerField: "output",
  readUsage,
  readEvent,
};

function readUsage(answer: Fields): KnownUsage | undefined {
  const usage = objectOf(answer["usage"]);
  if (usage === undefined) return undefined;
  const cached = countOf(fieldsOf(usage["input_tokens_details"])["cached_tokens"]);
  return {
    ...inputParts(countOf(usage["input_tokens"]), cached),
    output: countOf(usage["output_tokens"]),
  };
}

function readEvent(event: Fields): EventNews {
  const { type, delta, response } = event;
  if (typeof delta === "string") {
    // Sound is not text; its transcript comes in events of its own.
    return type === "response.audio.delta" ? {} : { text: delta };
  }
  return { usage: readUsage(fieldsOf(response)) };
}
