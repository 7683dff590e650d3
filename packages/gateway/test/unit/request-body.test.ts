/** Bodies: what is read of them, and how many of them are held. */

import type { IncomingMessage } from "node:http";
import { PassThrough, Readable } from "node:stream";
import { Refused } from "@zae-limiter/gateway/answers.ts";
import { RequestBodies, readFields } from "@zae-limiter/gateway/request-body.ts";
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

  test("brackets, colons and quotes in texts are not counted", () => {
    const text = `${'["{:\\"'.repeat(100_000)}\\\\`;
    expect(fields(JSON.stringify({ model: "a", text }))).toEqual({ model: "a", text });
  });
});

describe("bodies that are held", () => {
  const bytesMax = 1000;

  function request(body: string, headers: Record<string, string> = {}): IncomingMessage {
    const length = { "content-length": String(Buffer.byteLength(body)) };
    const sent = Object.keys(headers).length > 0 ? headers : length;
    return Object.assign(Readable.from([Buffer.from(body)]), { headers: sent }) as never;
  }

  async function statusOf(read: Promise<unknown>): Promise<number | "read"> {
    try {
      await read;
      return "read";
    } catch (error) {
      return (error as Refused).status;
    }
  }

  test("a body is read whole, and one that is longer than it says is a 413", async () => {
    const bodies = new RequestBodies(bytesMax);
    const { bytes } = await bodies.read(request("hello"), "a");
    expect(bytes.toString()).toBe("hello");
    const chunked = { "transfer-encoding": "chunked" };
    expect(await statusOf(bodies.read(request("x".repeat(1001), chunked), "a"))).toBe(413);
    expect(await statusOf(bodies.read(request("", { "content-length": "1001" }), "a"))).toBe(413);
  });

  /** Returns a request whose body begins, and ends when the test says so. */
  function slow(headers: Record<string, string>): { request: IncomingMessage; end(): void } {
    const body = new PassThrough();
    body.write("{");
    return {
      request: Object.assign(body, { headers }) as never,
      end: () => body.end("}"),
    };
  }

  test("64 bodies of a key are read at a time, and another key is not concerned", async () => {
    const bodies = new RequestBodies(bytesMax);
    const open = Array.from({ length: 64 }, () => slow({ "content-length": "2" }));
    const reads = open.map(({ request: each }) => bodies.read(each, "a"));
    expect(await statusOf(bodies.read(request("{}"), "a"))).toBe(429);
    expect(await statusOf(bodies.read(request("{}"), "b"))).toBe("read");
    open[0]?.end();
    const first = await reads[0];
    // A body that was read waits for the provider, and holds its bytes alone.
    expect(await statusOf(bodies.read(request("{}"), "a"))).toBe("read");
    first?.release();
    first?.release();
    for (const { end } of open) end();
    await Promise.all(reads);
  });

  test("a key holds the bytes of 8 largest bodies, and all keys together those of 64", async () => {
    const bodies = new RequestBodies(bytesMax);
    const largest = "x".repeat(bytesMax);
    for (let count = 0; count < 64; count += 1) {
      await bodies.read(request(largest), `key ${Math.floor(count / 8)}`);
    }
    expect(await statusOf(bodies.read(request("x"), "key 1"))).toBe(429);
    expect(await statusOf(bodies.read(request("x"), "key 8"))).toBe(503);
  });

  test("a body whose length is not known holds room for the largest until it is read", async () => {
    const bodies = new RequestBodies(bytesMax);
    const chunked = { "transfer-encoding": "chunked" };
    const open = Array.from({ length: 8 }, () => slow(chunked));
    const reads = open.map(({ request: each }) => bodies.read(each, "a"));
    expect(await statusOf(bodies.read(request("{}", chunked), "a"))).toBe(429);
    for (const { end } of open) end();
    await Promise.all(reads);
    expect(await statusOf(bodies.read(request("{}", chunked), "a"))).toBe("read");
  });

  test("a body that could not be read releases its room", async () => {
    const bodies = new RequestBodies(bytesMax);
    const chunked = { "transfer-encoding": "chunked" };
    for (let count = 0; count < 20; count += 1) {
      expect(await statusOf(bodies.read(request("x".repeat(1001), chunked), "a"))).toBe(413);
    }
  });
});
