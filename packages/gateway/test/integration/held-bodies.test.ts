/** Bodies of requests: how long a gateway holds them, and how many. */

import { once } from "node:events";
import { type ClientRequest, type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { chatAnswer, chatEvents } from "@zae-limiter/test-support/llm/shapes.ts";
import { json, stall } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterEach, expect, test } from "vitest";
import { Stage } from "../started-gateway.ts";

const CHAT = "/v1/chat/completions";
const MEGABYTE = 1024 * 1024;
const messages = [{ role: "user", content: "Hi" }];

let stage: Stage;
afterEach(() => stage.stop());

/** Returns the bytes in use after a collection of garbage. */
function usedBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test("a stream does not hold the body of its request", async () => {
  stage = await Stage.start({ bodyBytesMax: 2 * MEGABYTE });
  stage.upstream.replyWith(stall(chatEvents(["12345678"], "none").slice(0, 2)));
  const before = usedBytes();
  const calls: ClientRequest[] = [];
  for (let count = 0; count < 20; count += 1) {
    const headers = { authorization: `Bearer ${stage.key}` };
    const call = request(stage.gateway.url + CHAT, { method: "POST", headers });
    const user = String(count).padStart(MEGABYTE, "x");
    call.end(JSON.stringify({ model: Stage.MODEL, messages, stream: true, user }));
    const [answer] = (await once(call, "response")) as [IncomingMessage];
    expect(answer.statusCode).toBe(200);
    calls.push(call);
    stage.upstream.arrived.length = 0;
  }
  // Less than one copy of each body; it was four.
  expect(usedBytes() - before).toBeLessThan(20 * MEGABYTE);
  for (const call of calls) call.destroy();
});

test("an opened path takes bodies that are no JSON object, and none at all", async () => {
  stage = await Stage.start({ allowPaths: ["/v1/images"] });
  stage.upstream.replyWith(json({}));
  const headers = { authorization: `Bearer ${stage.key}`, "content-type": "application/json" };
  const url = `${stage.gateway.url}/v1/images`;
  for (const body of ["", "[1]", "words"]) {
    expect((await fetch(url, { method: "POST", headers, body })).status).toBe(200);
  }
  expect(await stage.consumed("other")).toEqual({ rpd: 3, tpd: 0 });
});

test("a key may have hundreds of plain calls that wait for their answers", async () => {
  stage = await Stage.start();
  const waiting: (() => void)[] = [];
  stage.upstream.replyWith((arrived, response) => {
    waiting.push(() => void json(chatAnswer)(arrived, response));
  });
  const calls = Array.from({ length: 200 }, () =>
    stage.ask(CHAT, { model: Stage.MODEL, messages }),
  );
  await expect.poll(() => waiting.length, { timeout: 30_000 }).toBe(200);
  for (const answer of waiting) answer();
  const answers = await Promise.all(calls);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
});

test.each([
  ["two cases of its model", "text/plain", '{"model":"gpt-4o","Model":"x"}'],
  ["a model that is no text", "text/plain", '{"model":["gpt-4o"]}'],
  ["more keys than are read", "application/json", `{"model":"gpt-4o"${',"a":1'.repeat(50_000)}}`],
])("an opened path refuses a body with %s", async (_, type, body) => {
  stage = await Stage.start({ allowPaths: ["/v1/images"], bodyBytesMax: MEGABYTE });
  stage.upstream.replyWith(json({}));
  const headers = { authorization: `Bearer ${stage.key}`, "content-type": type };
  const url = `${stage.gateway.url}/v1/images/generations`;
  const answer = await fetch(url, { method: "POST", headers, body });
  expect(answer.status).toBe(400);
  expect(stage.upstream.arrived).toHaveLength(0);
});

test.each([
  ["a body that is too long", 413, CHAT, "zael"],
  ["a key that is not valid", 401, CHAT, "zael-unknown"],
  ["a path that is refused", 404, "/v1/files", "zael"],
])("a client that is still sending can read the answer to %s", async (_, status, path, key) => {
  stage = await Stage.start({ bodyBytesMax: MEGABYTE });
  const { hostname, port } = new URL(stage.gateway.url);
  const socket = connect(Number(port), hostname);
  const errors: Error[] = [];
  socket.on("error", (error) => errors.push(error));
  const own = key === "zael" ? stage.key : key;
  const length = 8 * MEGABYTE;
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${own}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`,
  );
  const [answer] = (await once(socket, "data")) as [Buffer];
  expect(answer.toString()).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  // A connection that was closed with the answer would be closed by now.
  await (await fetch(`${stage.gateway.url}/healthz`)).text();
  expect(socket.readableEnded).toBe(false);
  const ended = once(socket, "end");
  socket.write(Buffer.alloc(length, " "));
  await ended;
  expect(errors).toEqual([]);
});
