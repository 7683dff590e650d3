/** The usage of an answer, found without parsing the rest. */

import { fastUsage } from "@zae-limiter/limiter/llm/formats/fast-usage.ts";
import { chatAnswer, messagesAnswer } from "@zae-limiter/test-support/llm/shapes.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const bytes = (text: string) => new TextEncoder().encode(text);
const usage = { prompt_tokens: 8, total_tokens: 8 };

describe("the usage at the end of an answer", () => {
  test.each([
    ["chat completions", chatAnswer],
    ["messages of Anthropic", messagesAnswer],
    ["embeddings", { data: [{ embedding: [0.1, -2e-9] }], model: "m", usage }],
    ["an answer with members behind it", { usage, user: null, metadata: {}, tools: [], n: -1.5e3 }],
    ["an answer with details", { usage: { ...usage, details: { cached_tokens: 3, tier: "x" } } }],
  ])("the usage at the end of an answer is found in %s", (_, answer) => {
    const { usage: whole } = answer as { usage: unknown };
    for (const spaces of [0, 2]) {
      // Spaces may stand behind the colon, and a line break at the end.
      const text = JSON.stringify(answer, undefined, spaces);
      expect(fastUsage(bytes(`${text}\n`))).toEqual({ usage: whole });
    }
  });

  test.each([
    ["there is none", '{"id":"x"}'],
    ["it belongs to something in the answer", '{"steps":[{"usage":{"prompt_tokens":1}}]}'],
    ["it belongs to an object in the answer", '{"x_groq":{"usage":{"prompt_tokens":1}}}'],
    ["a text says so", JSON.stringify({ content: 'write {"usage":{"prompt_tokens":1}}' })],
    ["an object follows", '{"usage":{"prompt_tokens":1},"more":{"usage":2}}'],
    ["the answer broke off", '{"usage":{"prompt_tokens":1}'],
    ["it is no object", '{"usage":null}'],
    ["it is no JSON", '{"usage":{prompt_tokens}}'],
  ])("the usage at the end of an answer is left to the parser where %s", (_, text) => {
    expect(fastUsage(bytes(text))).toBeUndefined();
  });

  test("the usage at the end of an answer is the one that a parser finds, whatever else the answer has", () => {
    const plain = fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.boolean());
    const anything = fc.jsonValue({ maxDepth: 3 });
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), anything),
        fc.dictionary(fc.string(), fc.oneof(plain, fc.dictionary(fc.string(), plain))),
        fc.dictionary(fc.string(), anything),
        (before, given, after) => {
          const answer = { ...before, usage: given, ...after };
          const found = fastUsage(bytes(JSON.stringify(answer)));
          // Bytes are read one by one, so only texts in ASCII come out as they went in.
          if (found === undefined || !/^[\x20-\x7e]*$/.test(JSON.stringify(answer))) return;
          expect(found["usage"]).toEqual(JSON.parse(JSON.stringify(answer)).usage);
        },
      ),
    );
  });
});
