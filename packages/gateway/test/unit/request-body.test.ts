/** Bodies: how many of them are held. */

import type { IncomingMessage } from "node:http";
import { PassThrough, Readable } from "node:stream";
import type { Refused } from "@zae-limiter/gateway/answers.ts";
import { RequestBodies } from "@zae-limiter/gateway/request-body.ts";
import { describe, expect, test } from "vitest";

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
