import { bytesOf, byteTextOf, decoded } from "@zae-limiter/limiter/llm/byte-text.ts";
import { dataOf, SseSplitter } from "@zae-limiter/limiter/llm/sse.ts";
import { chatEvents, messagesEvents, sse } from "@zae-limiter/test-support/llm/shapes.ts";
import { describe, expect, test } from "vitest";

const TEXTS = ["Grüße, ", "世界 ", "👋🏽 ok\n\ndata: no event"];

/** Splits the bytes at the given places and returns what comes out. */
function split(bytes: Buffer, at: readonly number[]) {
  const splitter = new SseSplitter();
  const places = [0, ...at, bytes.length];
  const events = places
    .slice(1)
    .flatMap((end, index) => splitter.push(byteTextOf(bytes.subarray(places[index], end))));
  return { data: events.map((event) => decoded(dataOf(event))), events, rest: splitter.rest };
}

describe("the splitter of server-sent events", () => {
  for (const [name, text] of [
    ["OpenAI", sse(chatEvents(TEXTS), { done: true })],
    ["Anthropic", sse(messagesEvents(TEXTS), { named: true })],
    ["a provider that ends lines with CRLF", sse(chatEvents(TEXTS), { done: true, crlf: true })],
  ] as const) {
    test(`the same events of ${name} are found wherever the stream is split in two`, () => {
      const bytes = Buffer.from(text);
      const whole = split(bytes, []);
      expect(whole.rest).toHaveLength(0);
      expect(bytesOf(whole.events.join(""))).toEqual(bytes);
      for (let at = 1; at < bytes.length; at += 1) {
        expect(split(bytes, [at]).data, `split at ${at}`).toEqual(whole.data);
      }
    });

    test(`the same events of ${name} are found byte by byte`, () => {
      const bytes = Buffer.from(text);
      const everywhere = Array.from({ length: bytes.length - 1 }, (_, at) => at + 1);
      expect(split(bytes, everywhere).data).toEqual(split(bytes, []).data);
    });
  }

  test("the data lines of one event are joined, and comments and names are skipped", () => {
    const bytes = Buffer.from(": keep-alive\n\nevent: a\ndata: 1\nid: 7\ndata:2\n\n");
    expect(split(bytes, []).data).toEqual(["", "1\n2"]);
  });

  test("the splitter of server-sent events keeps the bytes of an event that is not complete", () => {
    const { data, rest } = split(Buffer.from("data: 1\n\ndata: 2\n"), []);
    expect(data).toEqual(["1"]);
    expect(rest).toBe("data: 2\n");
  });
});
