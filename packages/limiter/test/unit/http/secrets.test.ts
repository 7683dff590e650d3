/** Keys of clients are no entities: their names, and what looks like a key. */

import { hashKey, rateLimit } from "@zae-limiter/limiter/http/fetch.ts";
import { looksSecret } from "@zae-limiter/limiter/http/secrets.ts";
import { afterEach, expect, test, vi } from "vitest";

afterEach(() => void vi.restoreAllMocks());

test("the name of a key is a legal id, does not reveal it, and is equal for equal keys", () => {
  const name = hashKey("sk-secret");
  expect(name).toMatch(/^key-[0-9a-f]{32}$/);
  expect(hashKey("Bearer sk-secret")).toBe(name);
  expect(hashKey("bearer  sk-secret ")).toBe(name);
  expect(hashKey(["sk-secret"])).toBe(name);
  expect(hashKey("sk-secret2")).not.toBe(name);
  for (const none of [undefined, null, "", "Bearer ", []]) expect(hashKey(none)).toBe("");
});

test.each([
  "Bearer abc",
  "sk-proj-abc",
  "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
  "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
  "eyJhbGciOiJIUzI1NiJ9.e30.x",
  "AKIAIOSFODNN7EXAMPLE",
  "zael-IyIYx",
  "4eC39HqLyjWDarjtT1zdp7dc4eC39HqLyjWD",
])("%j looks like a secret", (text) => {
  expect(looksSecret(text)).toBe(true);
});

test.each([
  "customer-1",
  "018f2b5e-7c3a-7d21-9f40-2b9c1e6a5d77",
  "01ARZ3NDEKTSV4RRFFQ69G5FAV",
  "jane.doe@example.com",
  "auth0|5f7c8ec7c33c6c004bbafe82",
  "V1StGXR8Z5jdHi6BmyTV1StGXR8Z",
  "203.0.113.7",
  hashKey("any"),
])("%j does not look like a secret", (text) => {
  expect(looksSecret(text)).toBe(false);
});

test("a middleware whose entities look like secrets warns once, without the secret", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  const handler = rateLimit(() => new Response("ok"), {
    limits: ["rpm:10"],
    entityId: (request) => request.headers.get("x-api-key") ?? undefined,
  });
  const call = (key: string) =>
    handler(new Request("http://x/", { headers: { "x-api-key": key } }));
  await call("customer-1");
  expect(warn).not.toHaveBeenCalled();
  for (let count = 0; count < 3; count += 1) await call("sk-my-secret-key");
  expect(warn).toHaveBeenCalledTimes(1);
  expect(warn.mock.calls[0]?.[1]).toMatchObject({ code: "ZAEL_HTTP_SECRET_ENTITY" });
  expect(String(warn.mock.calls[0])).not.toContain("my-secret");
});

test("a refusal of a customer whose key was looked up has no trace of the key", async () => {
  const customers = new Map([[hashKey("sk-my-secret-key"), "customer-1"]]);
  const handler = rateLimit(() => new Response("ok"), {
    limits: ["rpm:1"],
    entityId: (request) => customers.get(hashKey(request.headers.get("authorization"))),
  });
  const call = (key: string) =>
    handler(new Request("http://x/", { headers: { authorization: `Bearer ${key}` } }));
  expect((await call("sk-my-secret-key")).status).toBe(200);
  const refused = await call("sk-my-secret-key");
  expect(refused.status).toBe(429);
  const seen = (await refused.text()) + JSON.stringify([...refused.headers]);
  expect(seen).toContain("customer-1");
  expect(seen).not.toMatch(/secret|key-[0-9a-f]{32}/);
  for (let made = 0; made < 5; made += 1) expect((await call(`sk-made-${made}`)).status).toBe(401);
});
