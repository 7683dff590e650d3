/** The gateway as a process: what SIGTERM does, and what it serves besides calls. */

import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createKey } from "@zae-limiter/gateway/keys.ts";
import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { Binary, collect } from "@zae-limiter/test-support/binary.ts";
import { chatEvents, sse } from "@zae-limiter/test-support/llm/shapes.ts";
import { json, stall, Upstream } from "@zae-limiter/test-support/llm/upstream.ts";
import OpenAI from "openai";
import { afterEach, beforeEach, expect, test } from "vitest";

const binary = new Binary();
const messages = [{ role: "user" as const, content: "x".repeat(40) }];
let folder: string;
let repository: Repository;
let upstream: Upstream;
let env: Record<string, string>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-gateway-"));
  const url = `sqlite:${join(folder, "limits.db")}`;
  env = { ZAEL_URL: url, OPENAI_API_KEY: "sk-real" };
  repository = await Repository.open(url);
  await repository.limits.setSystem(["rpd:100/day", "tpd:1000/day"]);
  upstream = await Upstream.start();
});
afterEach(async () => {
  await repository.close();
  await upstream.stop();
  rmSync(folder, { recursive: true });
});

test("SIGTERM lets a stream and its lease end, and the dashboard is served until then", async () => {
  const { key } = await createKey(repository, "team-a", undefined);
  let finish = () => {};
  const events = chatEvents(["12345678"]);
  upstream.replyWith(async (request, response) => {
    await stall(events.slice(0, 2))(request, response);
    finish = () => response.end(sse(events.slice(2), { done: true }));
  });
  const child = binary.start(
    ["gateway", "-u", `${upstream.url}/v1`, "--port", "0", "--json"].concat([
      "--dashboard",
      "--dashboard-port",
      "0",
    ]),
    { env },
  );
  const ended = collect(child);
  const [line] = (await once(child.stdout as NonNullable<typeof child.stdout>, "data")) as [string];
  const served = JSON.parse(line) as { url: string; dashboard: string };
  const page = await fetch(served.dashboard, { redirect: "manual" });
  expect(page.status).toBe(303);
  const openai = new OpenAI({ apiKey: key, baseURL: `${served.url}/v1`, maxRetries: 0 });
  const asked = { model: "gpt-4o", messages, stream: true as const };
  const parts = (await openai.chat.completions.create(asked))[Symbol.asyncIterator]();
  await parts.next();
  child.kill("SIGTERM");
  // The dashboard closes when the signal has arrived; the stream is still open then.
  while (await fetch(served.dashboard, { redirect: "manual" }).catch(() => undefined));
  finish();
  while (!(await parts.next()).done);
  expect(await ended).toMatchObject({ code: 0, err: "Stopping: calls in flight may end first\n" });
  const buckets = await repository.buckets.list("team-a");
  const left = buckets.map(({ limitName, tokens }) => [limitName, tokens]);
  expect(Object.fromEntries(left)).toEqual({ rpd: 99, tpd: 1000 - 21 });
});

test("Ctrl-C that is pressed again breaks a stream off and keeps what was streamed", async () => {
  const { key } = await createKey(repository, "team-a", undefined);
  upstream.replyWith(stall(chatEvents(["12345678"]).slice(0, 2)));
  const args = ["gateway", "-u", `${upstream.url}/v1`, "--port", "0", "--json", "--grace", "3600"];
  const child = binary.start(args, { env });
  const ended = collect(child);
  const [line] = (await once(child.stdout as NonNullable<typeof child.stdout>, "data")) as [string];
  const { url } = JSON.parse(line) as { url: string };
  const openai = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 });
  const asked = { model: "gpt-4o", messages, stream: true as const };
  const parts = (await openai.chat.completions.create(asked))[Symbol.asyncIterator]();
  await parts.next();
  await parts.next();
  // Once the stream is broken off, a further press would end the process before it has written.
  const pressing = setInterval(() => child.kill("SIGINT"), 300);
  await parts.next().catch(() => undefined);
  clearInterval(pressing);
  expect(await ended).toMatchObject({ code: 0, err: "Stopping: calls in flight may end first\n" });
  const buckets = await repository.buckets.list("team-a");
  const left = buckets.map(({ limitName, tokens }) => [limitName, tokens]);
  expect(Object.fromEntries(left)).toEqual({ rpd: 99, tpd: 1000 - 12 });
});

test.each([[[]], [["--access-log"]]])("SIGHUP does not stop the gateway with %j", async (flags) => {
  const file = join(folder, "access.log");
  const args = ["gateway", "-u", `${upstream.url}/v1`, "--port", "0", "--json"];
  const child = binary.start([...args, ...flags.flatMap((flag) => [flag, file])], { env });
  const ended = collect(child);
  const [line] = (await once(child.stdout as NonNullable<typeof child.stdout>, "data")) as [string];
  const { url } = JSON.parse(line) as { url: string };
  if (flags.length > 0) renameSync(file, `${file}.1`);
  child.kill("SIGHUP");
  // The signal has arrived when there is a new file.
  while (flags.length > 0 && !existsSync(file)) await fetch(`${url}/metrics`);
  child.kill("SIGHUP");
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  child.kill("SIGTERM");
  expect(await ended).toMatchObject({ code: 0 });
});

test("the access log has each call, and neither prompts nor answers nor keys", async () => {
  await repository.entities.create({ id: "team-a" });
  const { key, stored } = await createKey(repository, "team-a", undefined);
  upstream.models = ["gpt-4o"];
  const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
  const message = { role: "assistant", content: "ANSWER-TEXT" };
  upstream.replyWith(json({ object: "chat.completion", choices: [{ index: 0, message }], usage }));
  const file = join(folder, "access.log");
  const args = ["gateway", "-u", `${upstream.url}/v1`, "--port", "0", "--json"];
  const child = binary.start([...args, "--access-log", file], { env });
  const ended = collect(child);
  const [line] = (await once(child.stdout as NonNullable<typeof child.stdout>, "data")) as [string];
  const { url } = JSON.parse(line) as { url: string };
  const call = async (apiKey: string, model: string) => {
    const openai = new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });
    const asked = [{ role: "user" as const, content: "PROMPT-TEXT" }];
    await openai.chat.completions.create({ model, messages: asked }).catch(() => undefined);
  };
  await call(key, "gpt-4o");
  await call(key, "invented");
  await call("zael-guessed-key", "gpt-4o");
  child.kill("SIGTERM");
  expect(await ended).toMatchObject({ code: 0 });
  const text = readFileSync(file, "utf8");
  for (const secret of ["PROMPT-TEXT", "ANSWER-TEXT", key, "guessed", "sk-real"]) {
    expect(text).not.toContain(secret);
  }
  const known = { key: stored.hint, entity_id: "team-a", upstream: upstream.url, api: "chat" };
  const tokens = { input_tokens: 7, output_tokens: 3, cached_tokens: 0, is_estimated: false };
  const entries = text
    .trim()
    .split("\n")
    .map((entry) => JSON.parse(entry) as object);
  expect(entries).toMatchObject([
    { ...known, ...tokens, status: 200, model: "gpt-4o", resource: "gpt-4o" },
    { ...known, ...tokens, status: 200, model: "invented", resource: "other" },
    { status: 401, key: null, entity_id: null, model: null, path: "/v1/chat/completions" },
  ]);
});

test("a file of upstreams that cannot be used is refused with its lines", async () => {
  const config = join(folder, "upstreams.yaml");
  writeFileSync(config, "upstreams:\n  - url: nonsense\n");
  expect(await binary.run(["gateway", "--config", config], { env })).toEqual({
    code: 1,
    out: "",
    err:
      `${config}:2:5: upstreams[0].url: expected a URL like https://api.openai.com/v1, ` +
      `got "nonsense"\nzae-limiter: ${config} has 1 problem; the gateway did not start\n`,
  });
});

test("tags and webhooks of the file count calls, and get the alerts of their budget", async () => {
  const { key } = await createKey(repository, "team-a", undefined);
  const usage = { prompt_tokens: 20, completion_tokens: 10 };
  const budget = ["usd:$0.0002/month UTC alerts 50"];
  await repository.limits.setEntity("team-a", budget, { resource: TOTAL });
  const posted = new Promise<string>((resolve) => {
    upstream.replyWith(async (request, response) => {
      if (request.path !== "/hook") return json({ usage })(request, response);
      resolve(JSON.stringify(request.body));
      response.end("{}");
    });
  });
  const config = join(folder, "upstreams.yaml");
  writeFileSync(
    config,
    `upstreams: [{ url: "${upstream.url}/v1", models: ["*"] }]
tags: [research]
webhooks: [{ name: chat, url: "${upstream.url}/hook", format: slack, allow_private: true }]
`,
  );
  const args = ["gateway", "--config", config, "--port", "0", "--json"];
  const child = binary.start(args, { env });
  const ended = collect(child);
  const [line] = (await once(child.stdout as NonNullable<typeof child.stdout>, "data")) as [string];
  const { url } = JSON.parse(line) as { url: string };
  const headers = { authorization: `Bearer ${key}`, "x-zael-tag": "research" };
  const body = JSON.stringify({ model: "gpt-4o", messages, max_tokens: 5 });
  const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
  expect(answer.status).toBe(200);
  expect(await posted).toContain("50 % of usd of team-a is used");
  child.kill("SIGTERM");
  await ended;
  const { out } = await binary.run(["usage", "report", "--by", "tag,model"], { env });
  expect(out).toMatch(/research +gpt-4o .*\$0\.00015/);
});
