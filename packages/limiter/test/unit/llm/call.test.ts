/** The most output that a request can have, by its body. */

import { type CallFacts, readFacts } from "@zae-limiter/limiter/llm/call.ts";
import type { Format } from "@zae-limiter/limiter/llm/formats/format.ts";
import { chat, completions, responses } from "@zae-limiter/limiter/llm/formats/openai.ts";
import { expect, test } from "vitest";

function facts(format: Format, body: Record<string, unknown>): CallFacts {
  const call = { api: format.api, model: "gpt-4o", stream: false, body };
  return readFacts(format, body, call);
}

test.each<[string, Format, object, number | undefined]>([
  ["one answer", chat, { max_tokens: 100 }, 100],
  ["several answers", chat, { max_tokens: 100, n: 3 }, 300],
  ["no bound", chat, { n: 3 }, undefined],
  [
    "two bounds, of which servers read either",
    chat,
    { max_tokens: 9, max_completion_tokens: 5 },
    9,
  ],
  ["choices of the best", completions, { max_tokens: 10, n: 2, best_of: 5 }, 50],
  ["a list of prompts", completions, { max_tokens: 10, n: 2, prompt: ["a", "b", "c"] }, 60],
  ["one prompt of numbers", completions, { max_tokens: 10, prompt: [1, 2, 3] }, 10],
  ["a response", responses, { max_output_tokens: 70 }, 70],
  ["a bound that is no number of tokens", chat, { max_tokens: -5 }, undefined],
])("the most output of a call with %s is known", (_, format, body, most) => {
  expect(facts(format, { ...body }).outputMax).toBe(most);
});
