/** The account of the provider behind a gateway: clients reach none of it. */

import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AttackedGateway, bodyFor, CHAT, MESSAGES, RESPONSES } from "../attacked-gateway.ts";
import { KEYS } from "../started-gateway.ts";

let attacked: AttackedGateway;
beforeEach(async () => {
  attacked = await AttackedGateway.start();
});
afterEach(() => attacked.stop());

/** Returns the requests of clients that reached the upstream. */
function forwarded() {
  return attacked.upstream.arrived.filter(({ path }) => !path.endsWith("/models"));
}

describe("paths and methods", () => {
  test.each([
    "GET /v1/files",
    "GET /v1/files/file-of-another-team/content",
    "DELETE /v1/files/file-1",
    "DELETE /v1/models/ft:gpt-4o:team-b",
    "GET /v1/responses/resp_of_another_team",
    "DELETE /v1/responses/resp_1",
    "POST /v1/responses/compact",
    "GET /v1/chat/completions",
    "GET /v1/chat/completions/chatcmpl-1",
    "POST /v1/fine_tuning/jobs",
    "POST /v1/batches",
    "POST /v1/messages/batches",
    "POST /v1/threads/runs",
    "POST /v1/complete",
    "POST /v1/images/generations",
    "POST /v1/audio/speech",
    "POST /api/chat",
    "POST /v2/chat",
    "POST /v1beta/models/gemini-pro:generateContent",
    "PUT /v1/chat/completions",
    "PATCH /v1/messages",
    "DELETE /v1/chat/completions",
    "OPTIONS /v1/chat/completions",
    "TRACE /v1/chat/completions",
    "POST /v1/chat/completions/",
    "POST /v1//chat/completions/../../files",
    "POST /v1/chat/completions%2f..%2ffiles",
    "POST /v1/chat/completions;a=b/../../files",
    "POST /V1/CHAT/COMPLETIONS/x",
    "GET /v1/organization/costs",
  ])("%s does not reach the upstream, or is the call it is counted as", async (line) => {
    const [method = "", path = ""] = line.split(" ");
    const plan = attacked.plan();
    const body = method === "GET" ? "" : JSON.stringify(bodyFor(CHAT, plan));
    const { status } = await attacked.send(method, path, body);
    if (status === 200) {
      expect(forwarded().map((each) => [each.method, each.path])).toEqual([["POST", CHAT]]);
      expect(await attacked.consumedAtLast()).toBe(attacked.billed());
      return;
    }
    expect(Math.floor(status / 100)).toBe(4);
    expect(forwarded()).toEqual([]);
  });

  test.each(["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"])(
    "a request with %s is refused",
    async (name) => {
      const headers = { [name]: "POST" };
      expect((await attacked.send("GET", CHAT, "", { headers })).status).toBe(400);
      expect(forwarded()).toEqual([]);
    },
  );

  test.each(["CONNECT a:443", "CONNECT /v1/chat/completions"])(
    "a request %s is refused, and reaches no upstream",
    async (line) => {
      const socket = await attacked.connect();
      socket.write(`${line} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${attacked.key}\r\n\r\n`);
      const read: Buffer[] = [];
      socket.on("data", (data) => read.push(data));
      await once(socket, "close");
      expect(Buffer.concat(read).toString()).not.toMatch(/^HTTP\/1\.1 2/);
      expect(forwarded()).toEqual([]);
    },
  );

  test("a request to switch protocols is refused, and reaches no upstream", async () => {
    const headers = { connection: "upgrade", upgrade: "websocket" };
    const answer = await attacked.send("GET", CHAT, "", { headers }).catch(() => ({ status: 400 }));
    expect(Math.floor(answer.status / 100)).toBe(4);
    expect(forwarded()).toEqual([]);
  });
});

describe("the provider's key", () => {
  test.each([CHAT, MESSAGES, RESPONSES])(
    "an error of %s that repeats it shows none",
    async (path) => {
      const plan = attacked.plan({ fates: [{ kind: "leak" }] });
      const { status, text, headers } = await attacked.call(path, plan);
      expect(status).toBe(400);
      expect(text).toContain("Incorrect API key provided");
      for (const secret of Object.values(KEYS)) {
        expect(text + JSON.stringify(headers)).not.toContain(secret);
      }
    },
  );

  test("credentials of clients do not reach the upstream", async () => {
    const plan = attacked.plan();
    const headers = {
      "api-key": "client-azure",
      "x-goog-api-key": "client-google",
      "openai-organization": "org-client",
      "openai-project": "proj-client",
      "proxy-authorization": "Basic client",
      cookie: "session=client",
    };
    const body = JSON.stringify(bodyFor(CHAT, plan));
    expect((await attacked.send("POST", CHAT, body, { headers })).status).toBe(200);
    const sent = JSON.stringify(forwarded()[0]?.headers);
    expect(sent).not.toContain("client");
    expect(sent).not.toContain(attacked.key);
  });

  test("a redirect is not followed, and its target not shown", async () => {
    const { arrived } = attacked.upstream;
    const to = `${attacked.upstream.url}/stolen`;
    const { status, headers } = await attacked.call(
      CHAT,
      attacked.plan({ fates: [{ kind: "redirect", to }] }),
    );
    expect(status).toBe(502);
    expect(headers.location).toBeUndefined();
    expect(arrived.filter(({ path }) => path === "/stolen")).toHaveLength(0);
  });
});

describe("connections to the upstream", () => {
  test("a switch of protocols that no client asked for ends at once", {
    timeout: 10_000,
  }, async () => {
    const { status } = await attacked.call(CHAT, attacked.plan({ fates: [{ kind: "upgrade" }] }));
    expect(status).toBe(502);
  });

  test("idle connections are bounded", async () => {
    const keys = await Promise.all(
      ["b", "c", "d", "e"].map((name) => attacked.keyOf(`team-${name}`)),
    );
    const plans = Array.from({ length: 150 }, () => {
      return attacked.plan({ fates: [{ kind: "hold", at: 0 }] });
    });
    const calls = plans.map((plan, at) => attacked.call(CHAT, plan, {}, keys[at % keys.length]));
    await Promise.all(plans.map((plan) => attacked.upstream.reached(plan)));
    expect(attacked.upstream.openSockets).toBeGreaterThanOrEqual(150);
    for (const plan of plans) attacked.upstream.release(plan);
    await Promise.all(calls);
    await expect.poll(() => attacked.upstream.openSockets).toBeLessThanOrEqual(100);
  });
});
