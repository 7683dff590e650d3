/** Clients that hang up at moments at which Node.js says nothing about it. */

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { chatAnswer } from "@zae-limiter/test-support/llm/shapes.ts";
import { json } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Stage } from "../started-gateway.ts";

const OPEN = /^zae_limiter_gateway_open_requests (\d+)$/m;
const BODY = JSON.stringify({ model: Stage.MODEL, messages: [{ role: "user", content: "Hi" }] });

let stage: Stage;
beforeEach(async () => {
  stage = await Stage.start();
  stage.upstream.replyWith(json(chatAnswer));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await stage.stop();
});

async function connected(): Promise<Socket> {
  const { hostname, port } = new URL(stage.gateway.url);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  return socket;
}

function chat(): string {
  return (
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${stage.key}\r\n` +
    `content-length: ${BODY.length}\r\n\r\n${BODY}`
  );
}

test("a client that hangs up while its key is looked up leaves nothing open", async () => {
  const { entities } = stage.limiter.repository;
  const get = entities.get.bind(entities);
  let answer = () => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const asked = vi.spyOn(entities, "get").mockImplementation(async (id) => {
    await answered;
    return get(id);
  });
  const socket = await connected();
  socket.write(chat());
  await expect.poll(() => asked.mock.calls.length).toBe(1);
  socket.destroy();
  await once(socket, "close");
  // The gateway has seen the end of the connection when it serves another one.
  await fetch(`${stage.gateway.url}/healthz`);
  answer();
  await expect.poll(() => stage.metric(OPEN)).toBe(1);
  expect(stage.upstream.arrived).toHaveLength(0);
});

test("a call that is read on holds its slot until the provider ends, and no call goes before", async () => {
  const { limiter, upstream } = stage;
  await limiter.repository.limits.setSystem(["rpm:100", "parallel:1 concurrent"]);
  let answer = () => {};
  upstream.replyWith((_, response) => {
    answer = () => {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(chatAnswer));
    };
  }, json(chatAnswer));
  const socket = await connected();
  socket.write(chat());
  await expect.poll(() => upstream.arrived.length).toBe(1);
  socket.destroy();
  await once(socket, "close");
  await fetch(`${stage.gateway.url}/healthz`);
  const again = () =>
    fetch(`${stage.gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${stage.key}`, "content-type": "application/json" },
      body: BODY,
    });
  const refused = await again();
  expect(refused.status).toBe(429);
  expect(JSON.stringify(await refused.json())).toContain("parallel");
  answer();
  await expect.poll(async () => (await again()).status).toBe(200);
  expect(upstream.arrived).toHaveLength(2);
});
