/** The JSON of bodies: what is read of it, and what is sent on. */

import { Refused } from "@zae-limiter/gateway/answers.ts";
import { readFields, textOf } from "@zae-limiter/gateway/json-body.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

function fields(text: string | Buffer) {
  try {
    return readFields(Buffer.from(text));
  } catch (error) {
    if (error instanceof Refused) return error.status;
    throw error;
  }
}

describe("fields of a body", () => {
  test("every object that JSON can write is read as JSON reads it", () => {
    const keys = fc.string().map((key) => `_${key.toLowerCase()}`);
    const bodies = fc.dictionary(keys, fc.jsonValue({ maxDepth: 20 }));
    fc.assert(
      fc.property(bodies, (body) => {
        const folds = new Set(Object.keys(body).map((key) => key.toLowerCase().toUpperCase()));
        fc.pre(folds.size === Object.keys(body).length);
        const text = JSON.stringify(body);
        expect(fields(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  test.each([
    ["another case of a field that is read", '{"Model":"a"}'],
    ["another case of the number of choices", '{"Best_of":5}'],
    ["choices as a text", '{"best_of":"5"}'],
    ["two cases of a field that is not", '{"user":"a","USER":"b"}'],
    ["a long s", '{"\u017ftream":true}'],
    ["a model that is no text", '{"model":5}'],
    ["a number as a text, which some servers convert", '{"max_tokens":"100000"}'],
    ["a number for a truth value", '{"stream":1}'],
    ["a byte order mark", '\ufeff{"model":"a"}'],
    ["no object", "[1]"],
    ["nothing", ""],
    ["half an object", '{"a":"\\'],
    ["half a text", '{"a":"b'],
  ])("a body with %s is a 400", (_, text) => {
    expect(fields(text)).toBe(400);
  });

  test("of two equal keys the last one is read, and sent", () => {
    expect(fields('{"model":"a","model":"b"}')).toEqual({ model: "b" });
  });

  test("bytes that are not UTF-8 are a 400", () => {
    expect(fields(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toBe(400);
  });

  test("nesting and keys are bounded before anything is parsed", () => {
    const nested = (depth: number) => `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`;
    expect(fields(nested(127))).toBeTypeOf("object");
    expect(fields(nested(128))).toBe(400);
    const many = (count: number) =>
      `{"a":{${Array.from({ length: count }, (_, at) => `"${at}":1`).join(",")}}}`;
    expect(fields(many(49_999))).toBeTypeOf("object");
    expect(fields(many(50_000))).toBe(400);
  });

  test("objects, lists and values without keys are bounded too", () => {
    const list = (value: string, count: number) =>
      `{"a":[${Array.from({ length: count }, () => value).join(",")}]}`;
    // Embeddings take lists of numbers: providers allow 300,000 in one call.
    expect(fields(list("1", 300_000))).toBeTypeOf("object");
    expect(fields(list("1", 600_000))).toBe(400);
    expect(fields(list("[]", 40_000))).toBeTypeOf("object");
    expect(fields(list("[]", 60_000))).toBe(400);
    expect(fields(list("{}", 60_000))).toBe(400);
  });

  test.each([
    ["an integer above 2^53", "9007199254740993"],
    ["the smallest seed", "-9223372036854775808"],
    ["more digits than a number has", "0.1234567890123456789"],
    ["a number beyond all numbers", "1e400"],
    ["a number that has another spelling", "1.0E+5"],
  ])("%s is sent as it came", (_, number) => {
    const text = `{"model":"a","seed":${number},"b":[${number},{"c":${number}},1,"x"]}`;
    expect(textOf(readFields(Buffer.from(text)))).toBe(text);
  });

  test("a field that is read is no such number", () => {
    expect(fields('{"max_tokens":9007199254740993}')).toBe(400);
    expect(fields('{"n":1e400}')).toBe(400);
  });

  test.each(["01234567890123456789", "-", "1e", "1.e5555", "--12345678901234567890", "1-2345e6"])(
    "%s is no number, and a 400",
    (number) => expect(fields(`{"a":${number}}`)).toBe(400),
  );

  test("a long number is no key", () => {
    expect(fields('{"a":{12345678901234567890:1}}')).toBe(400);
    expect(fields('{"a":{12345678901234567890 :1}}')).toBe(400);
  });

  test("every body is written as JSON writes it", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom("a", "b"), fc.jsonValue()), (body) => {
        const text = JSON.stringify(body);
        expect(textOf(readFields(Buffer.from(text)))).toBe(text);
      }),
    );
  });

  test("brackets, colons and quotes in texts are not counted", () => {
    const text = `${'["{:\\"'.repeat(100_000)}\\\\`;
    expect(fields(JSON.stringify({ model: "a", text }))).toEqual({ model: "a", text });
  });
});
