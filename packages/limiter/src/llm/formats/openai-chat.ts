/** Chat Completions and the older Completions of OpenAI. */

import { textIn } from "../prompt-size.ts";
import { type Fields, fieldsOf, listOf } from "../usage.ts";
import type { EventNews, Format } from "./format.ts";
import { completionUsage } from "./openai-usage.ts";

export const openaiChat: Format = {
  api: "chat",
  provider: "openai",
  promptFields: ["messages", "tools", "functions", "response_format"],
  maxFields: ["max_completion_tokens", "max_tokens"],
  choicesField: "n",
  answerField: "choices",
  readUsage: completionUsage,
  textPrefix: '"delta":{"content":"',
  readEvent,
};

export const openaiCompletions: Format = {
  ...openaiChat,
  api: "completions",
  promptFields: ["prompt", "suffix"],
  maxFields: ["max_tokens"],
};

function readEvent(event: Fields): EventNews {
  const usage = completionUsage(event);
  const choices = listOf(event["choices"]);
  const text = choices.length === 1 ? textOf(choices[0]) : choices.map(textOf).join("");
  return { usage, text, isUsageOnly: usage !== undefined && choices.length === 0 };
}

function textOf(choice: unknown): string {
  const { delta, text } = fieldsOf(choice);
  if (typeof text === "string") return text;
  const fields = fieldsOf(delta);
  const { content, tool_calls, function_call } = fields;
  if (typeof content === "string" && content !== "") return content;
  // Reasoning has a name of its own with every provider.
  const { reasoning_content, reasoning, refusal } = fields;
  return textIn([reasoning_content ?? reasoning, refusal, tool_calls, function_call]);
}
