/** Messages of Anthropic. */

import { countOf, type Fields, fieldsOf, type KnownUsage, objectOf } from "../usage.ts";
import type { EventNews, Format } from "./format.ts";

export const anthropicMessages: Format = {
  api: "messages",
  provider: "anthropic",
  promptFields: ["messages", "system", "tools"],
  maxFields: ["max_tokens"],
  answerField: "content",
  readUsage: (answer) => readUsage(answer["usage"]),
  textPrefix: '"delta":{"type":"text_delta","text":"',
  readEvent,
};

function readUsage(given: unknown): KnownUsage | undefined {
  const usage = objectOf(given);
  if (usage === undefined) return undefined;
  const uncached = countOf(usage["input_tokens"]);
  const written = countOf(usage["cache_creation_input_tokens"]) ?? 0;
  return {
    input: uncached === undefined ? undefined : uncached + written,
    cached: countOf(usage["cache_read_input_tokens"]),
    output: countOf(usage["output_tokens"]),
  };
}

function readEvent(event: Fields): EventNews {
  switch (event["type"]) {
    case "message_start": {
      // `message_start` counts the first output tokens only, so its output is left out.
      const usage = readUsage(fieldsOf(event["message"])["usage"]);
      return { usage: usage && { ...usage, output: undefined } };
    }
    case "message_delta":
      return { usage: readUsage(event["usage"]) };
    case "content_block_start":
      return { text: textOf(fieldsOf(event["content_block"])) };
    case "content_block_delta":
      return { text: textOf(fieldsOf(event["delta"])) };
    default:
      return {};
  }
}

function textOf(part: Fields): string {
  const { text, thinking, partial_json, name } = part;
  return [text, thinking, partial_json, name].filter((each) => typeof each === "string").join("");
}
