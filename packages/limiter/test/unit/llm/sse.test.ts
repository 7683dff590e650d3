import { dataOf, SseSplitter } from "@zae-limiter/limiter/llm/sse.ts";
import { chatEvents, messagesEvents, sse } from "@zae-limiter/test-support/llm/shapes.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

const TEXTS = ["Grüße, ", "世界 ", "👋🏽 ok\n\ndata: no event"];
const ENDS = ["\n", "\r", "\r\n"] as const;

/** Splits the bytes at the given places and returns what comes out. */
function split(bytes: Uint8Array, at: readonly number[]) {
  const splitter = new SseSplitter();
  const places = [0, ...at, bytes.length];
  const events = places
    .slice(1)
    .flatMap((end, index) => splitter.push(bytes.subarray(places[index], end)));
  const data = events.map(dataOf).filter((each) => each !== "");
  const rest = splitter.takeRest();
  return { data, events, rest, isWhole: Buffer.concat([...events, rest]).equals(bytes) };
}

/** Every place where the bytes can be split. */
function everywhere(bytes: Uint8Array): number[] {
  return Array.from({ length: bytes.length - 1 }, (_, at) => at + 1);
}

describe("the splitter of server-sent events", () => {
  const streams = [
    ["OpenAI", sse(chatEvents(TEXTS), { done: true })],
    ["Anthropic", sse(messagesEvents(TEXTS), { named: true })],
    ["several lines each", "data: 1\ndata: 2\n\nevent: a\ndata: 3\ndata: 4\n\n"],
  ] as const;
  for (const [name, text] of streams) {
    for (const end of ENDS) {
      const bytes = Buffer.from(text.replaceAll("\n", end));
      const lines = JSON.stringify(end);

      test(`the same events of ${name} with ${lines} are found wherever the stream is split`, () => {
        const whole = split(Buffer.from(text), []).data.join("|");
        const isFound = (at: number) => {
          const { data, isWhole } = split(bytes, [at]);
          return isWhole && data.join("|") === whole;
        };
        expect(everywhere(bytes).filter((at) => !isFound(at))).toEqual([]);
      });

      test(`the same events of ${name} with ${lines} are found byte by byte`, () => {
        const found = split(bytes, everywhere(bytes));
        expect(found.data).toEqual(split(Buffer.from(text), []).data);
        expect(found.isWhole).toBe(true);
      });
    }
  }

  test("the same events are found with any mixture of line ends, split anywhere", () => {
    const end = fc.constantFrom(...ENDS);
    const line = fc.tuple(fc.nat(99), end);
    const event = fc.tuple(fc.array(line, { minLength: 1, maxLength: 3 }), end);
    const places = fc.array(fc.nat(200), { maxLength: 8 });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 6 }), places, (list, cuts) => {
        const framed = list.map(([lines, blank]) => {
          // An LF right after a CR would be one line end, so a blank line must not begin with it.
          const isOne = lines.at(-1)?.[1] === "\r" && blank === "\n";
          const text = lines.map(([value, lineEnd]) => `data: ${value}${lineEnd}`).join("");
          return text + (isOne ? "\r" : blank);
        });
        const bytes = Buffer.from(framed.join(""));
        const at = cuts.filter((place) => place < bytes.length).sort((a, b) => a - b);
        const found = split(bytes, at);
        const values = list.map(([lines]) => lines.map(([value]) => value).join("\n"));
        expect(found.data).toEqual(values);
        expect(found.isWhole).toBe(true);
      }),
    );
  });

  test("the data lines of one event are joined, and comments and names are skipped", () => {
    const bytes = Buffer.from(": keep-alive\n\nevent: a\ndata: 1\nid: 7\ndata:2\n\n");
    const { events } = split(bytes, []);
    expect(events.map(dataOf)).toEqual(["", "1\n2"]);
  });

  test("bytes that are no event are told from an event without data", () => {
    expect(dataOf(Buffer.from([0x1f, 0x8b, 8, 0]))).toBeUndefined();
    expect(dataOf(Buffer.from("<html>\n\n"))).toBeUndefined();
    expect(dataOf(Buffer.from("event: ping\n\n"))).toBe("");
    expect(dataOf(Buffer.from("\n"))).toBe("");
  });

  test("the splitter of server-sent events keeps the bytes of an event that is not complete", () => {
    const { data, rest } = split(Buffer.from("data: 1\n\ndata: 2\n"), []);
    expect(data).toEqual(["1"]);
    expect(Buffer.from(rest).toString()).toBe("data: 2\n");
  });

  test("a long event in small chunks is read in linear time", () => {
    const splitter = new SseSplitter();
    const part = Buffer.from("x".repeat(64));
    for (let at = 0; at < 100_000; at += 1) splitter.push(part);
    expect(splitter.restBytes).toBe(6_400_000);
    expect(splitter.push(Buffer.from("\n\n"))[0]).toHaveLength(6_400_002);
  });
});
