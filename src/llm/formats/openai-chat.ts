/** Chat Completions and the older Completions of OpenAI. */

import { collect, type Prompt } from "../prompt-size.ts";
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
  const prompt: Prompt = { texts: [], tokens: 0 };
  for (const choice of choices) {
    const { delta, text } = fieldsOf(choice) as { delta?: unknown; text?: unknown };
    collect(delta ?? text, prompt);
  }
  return {
    usage,
    text: prompt.texts.join(""),
    isUsageOnly: usage !== undefined && !choices.length,
  };
}
