/** Messages of Anthropic. */

import { checkedUsage, type Fields, fieldsOf, type KnownUsage, objectOf } from "../usage.ts";
import type { EventNews, Format } from "./format.ts";

export const messages: Format = {
  api: "messages",
  provider: "anthropic",
  promptFields: ["messages", "system", "tools"],
  storedFields: ["container"],
  maxFields: ["max_tokens"],
  answerField: "content",
  hasOutput: true,
  readUsage: messageUsage,
  readEvent,
};

/** Reads usage whose `input_tokens` exclude the cache; `undefined` where there is no usage. */
export function messageUsage(answer: Fields): KnownUsage | undefined {
  const usage = objectOf(answer["usage"]);
  if (usage === undefined) return undefined;
  return checkedUsage({
    input: usage["input_tokens"],
    written: usage["cache_creation_input_tokens"],
    writtenForHour: fieldsOf(usage["cache_creation"])["ephemeral_1h_input_tokens"],
    cached: usage["cache_read_input_tokens"],
    includesCached: false,
    output: usage["output_tokens"],
    tier: usage["service_tier"],
  });
}

function readEvent(event: Fields): EventNews {
  switch (event["type"]) {
    case "message_start": {
      // `message_start` counts the first output tokens only, so its output is left out.
      const usage = messageUsage(fieldsOf(event["message"]));
      return { usage: usage && { ...usage, output: undefined } };
    }
    case "message_delta":
      return { usage: messageUsage(event), isLast: true };
    case "content_block_start":
      return { text: textOf(fieldsOf(event["content_block"])) };
    case "content_block_delta":
      return { text: textOf(fieldsOf(event["delta"])) };
    default:
      return {};
  }
}

function textOf({ text, thinking, partial_json, name }: Fields): string {
  return [text, thinking, partial_json, name].filter((each) => typeof each === "string").join("");
}
