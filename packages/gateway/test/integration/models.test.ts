/** Which resource and which upstream the name of a model has, with real lists of upstreams. */

import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { allowedFor } from "@zae-limiter/gateway/models/allowed-resources.ts";
import { Models, type ModelsOptions } from "@zae-limiter/gateway/models/models.ts";
import { checkUpstream, type UpstreamSpec } from "@zae-limiter/gateway/upstreams.ts";
import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import { Repository } from "@zae-limiter/limiter/index.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { json, type Reply, Upstream } from "@zae-limiter/test-support/llm/upstream.ts";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { ManualTimer } from "../manual-timer.ts";

const ENV = { OPENAI_API_KEY: "sk-openai-secret", ANTHROPIC_API_KEY: "sk-ant-secret" };
const MINUTE_MS = 60_000;

let openai: Upstream;
let local: Upstream;
let repository: Repository;
let timer: ManualTimer;
let lines: string[];
const started: Models[] = [];

beforeAll(async () => {
  openai = await Upstream.start();
  local = await Upstream.start();
});
afterAll(async () => {
  await openai.stop();
  await local.stop();
});
beforeEach(async () => {
  repository = await Repository.open("memory:");
  timer = new ManualTimer();
  lines = [];
  openai.replyWith(lists("gpt-4o", "gpt-4o-mini", "o3"));
  local.replyWith(lists("llama3.1:8b"));
});
afterEach(async () => {
  for (const models of started.splice(0)) models.stop();
  await repository.close();
});

/** Listens on the first port that is free. */
async function listenOnOneOf(server: Server, ports: readonly number[]): Promise<number> {
  for (const port of ports) {
    server.listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (isFree) return port;
  }
  throw new Error(`None of the ports ${ports.join(", ")} is free`);
}

/** Answers as OpenAI lists models. */
function lists(...ids: string[]): Reply {
  const data = ids.map((id) => ({ id, object: "model", created: 1_700_000_000, owned_by: "acme" }));
  return json({ object: "list", data });
}

function specAt(upstream: Upstream, more: object = {}, isOpen = false): UpstreamSpec {
  return checkUpstream({ url: `${upstream.url}/v1`, ...more }, ENV, isOpen);
}

async function start(
  upstreams: readonly UpstreamSpec[],
  more: Partial<ModelsOptions> = {},
): Promise<Models> {
  const models = await Models.start({
    upstreams,
    notes: repository[INTERNALS].notes,
    limits: repository.limits,
    timer,
    tell: (line) => lines.push(line),
    unknownModels: "other",
    ...more,
  });
  started.push(models);
  return models;
}

/** Returns the resource of a name, or why it has none. */
function resourceOf(models: Models, name: string | undefined, deployment?: string): string {
  const found = models.resolve(name, deployment);
  return typeof found === "string" ? found : found.resource;
}

describe("known names", () => {
  test("a list in the config decides, and of a beginning the names that the upstream lists", async () => {
    const spec = specAt(openai, { models: ["gpt-", "o3"] });
    const models = await start([spec]);
    expect(["gpt-4o", "gpt-new", "o3"].map((name) => resourceOf(models, name))).toEqual([
      "gpt-4o",
      "other",
      "o3",
    ]);
    expect(models.resolve("o3-mini", undefined)).toEqual({ resource: "other", upstream: spec });
    expect(resourceOf(models, "claude")).toBe("no upstream");
  });

  test("several spellings of a model count for one resource", async () => {
    const aliases = { "gpt-4o": ["gpt-4o-2024-08-06", "openai/gpt-4o"] };
    const models = await start([specAt(openai, { aliases })]);
    expect(resourceOf(models, "gpt-4o-2024-08-06")).toBe("gpt-4o");
    expect(resourceOf(models, "openai/gpt-4o")).toBe("gpt-4o");
    expect(resourceOf(models, "gpt-4o")).toBe("gpt-4o");
  });

  test("without a list in the config, the upstream's own list decides", async () => {
    const models = await start([specAt(openai)]);
    expect(resourceOf(models, "gpt-4o")).toBe("gpt-4o");
    for (const invented of ["fresh-1", "fresh-2", "GPT-4O", ""]) {
      expect(resourceOf(models, invented)).toBe("other");
    }
    expect(openai.arrived.map(({ path }) => path)).toEqual(["/v1/models"]);
    expect(openai.arrived[0]?.headers.authorization).toBe("Bearer sk-openai-secret");
  });

  test("a deployment in the path goes before the model in the body", async () => {
    const models = await start([specAt(openai, { models: ["prod-4o"] })]);
    expect(resourceOf(models, "fresh-1", "prod-4o")).toBe("prod-4o");
    expect(resourceOf(models, "prod-4o", "fresh-1")).toBe("no upstream");
  });

  test("unknown names are refused where the operator wants that", async () => {
    const models = await start([specAt(openai)], { unknownModels: "refuse" });
    expect(resourceOf(models, "gpt-4o")).toBe("gpt-4o");
    expect(resourceOf(models, "fresh-1")).toBe("unknown");
    expect(resourceOf(models, "")).toBe("unknown");
    expect(resourceOf(models, undefined)).toBe("other");
  });

  test("a reserved name is never a resource, not even where everything is known", async () => {
    const models = await start([specAt(openai, { models: ["*"] })]);
    expect(resourceOf(models, "anything")).toBe("anything");
    for (const name of ["@all", "_default_", "a b"]) expect(resourceOf(models, name)).toBe("other");
  });

  test("without any list, names that limits are stored for are known", async () => {
    openai.replyWith(json({ error: "no such path" }, 404));
    await repository.limits.setResource("gpt-4o", ["rpm:10"]);
    await repository.limits.setEntity("team-a", ["rpm:5"], { resource: "o3" });
    const models = await start([specAt(openai)]);
    const names = ["gpt-4o", "o3", "gpt-4o-mini"];
    expect(names.map((name) => resourceOf(models, name))).toEqual(["gpt-4o", "o3", "other"]);
    expect(lines).toEqual([
      `The models of ${openai.url}/v1 cannot be listed: the answer has the status 404. ` +
        "Until then, only names that limits are stored for are known.",
    ]);
  });

  test("keys of clients are not used to list models", async () => {
    const models = await start([specAt(openai, {}, true)]);
    expect(openai.arrived).toEqual([]);
    expect(resourceOf(models, "gpt-4o")).toBe("other");
  });

  test("an upstream without a key is asked without one", async () => {
    const models = await start([specAt(local, { key: "none" })]);
    expect(resourceOf(models, "llama3.1:8b")).toBe("llama3.1:8b");
    expect(local.arrived[0]?.headers.authorization).toBeUndefined();
  });

  test("a model that only the second upstream lists goes there", async () => {
    const [one, two] = [specAt(openai), specAt(local, { key: "none" })];
    const models = await start([one, two]);
    expect(models.resolve("llama3.1:8b", undefined)).toMatchObject({ upstream: two });
    expect(models.resolve("gpt-4o", undefined)).toMatchObject({ upstream: one });
    expect(models.resolve("fresh", undefined)).toMatchObject({ upstream: one, resource: "other" });
  });

  test("the most output comes from the file; an unknown name gets the largest", async () => {
    const max_output = { "gpt-4o": 16_384, "gpt-": 4096 };
    const aliases = { "gpt-4o": ["latest"] };
    const models = await start([specAt(openai, { max_output, aliases })]);
    const names = ["gpt-4o", "latest", "gpt-4o-mini", "o3", "fresh"];
    const most = names
      .map((name) => models.resolve(name, undefined))
      .map((found) => (typeof found === "string" ? found : found.modelOutputMax));
    expect(most).toEqual([16_384, 16_384, 4096, undefined, 16_384]);
  });
});

describe("lists of upstreams", () => {
  test("Anthropic's pages are read one after the other, with its headers", async () => {
    const page = (id: string, has_more: boolean) =>
      json({ data: [{ type: "model", id, display_name: id }], has_more, last_id: id });
    local.replyWith(page("claude-a", true), page("claude-b", false));
    const models = await start([specAt(local, { api: "anthropic" })]);
    expect(["claude-a", "claude-b"].map((name) => resourceOf(models, name))).toEqual([
      "claude-a",
      "claude-b",
    ]);
    expect(local.arrived.map(({ path }) => path)).toEqual([
      "/v1/models?limit=1000",
      "/v1/models?limit=1000&after_id=claude-a",
    ]);
    expect(local.arrived[0]?.headers).toMatchObject({
      "x-api-key": "sk-ant-secret",
      "anthropic-version": "2023-06-01",
    });
  });

  test("pages that never end stop at 5,000 models", async () => {
    let next = 0;
    local.replyWith((request, response) => {
      const data = Array.from({ length: 1000 }, () => ({ id: `m-${next++}` }));
      return json({ data, has_more: true, last_id: data.at(-1)?.id })(request, response);
    });
    const models = await start([specAt(local, { api: "anthropic" })]);
    expect(local.arrived).toHaveLength(5);
    expect([resourceOf(models, "m-4999"), resourceOf(models, "m-5000")]).toEqual([
      "m-4999",
      "other",
    ]);
  });

  test("an answer without an end is given up, and the key is not sent to a redirect", async () => {
    openai.replyWith((_, response) => {
      response.writeHead(302, { location: `${local.url}/v1/models` }).end();
    });
    await start([specAt(openai)]);
    expect(local.arrived).toEqual([]);
    expect(lines[0]).toContain("the answer has the status 302");
    const chunk = Buffer.alloc(1024 * 1024, 32);
    openai.replyWith(async (_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      while (!response.destroyed) {
        await new Promise((resolve) => response.write(chunk, resolve));
      }
    });
    await start([specAt(openai)]);
    expect(lines[1]).toContain("the answer has more than 16777216 bytes");
  });

  test("a slow upstream delays the start for three seconds, and no call", async () => {
    let answer = () => {};
    openai.replyWith((request, response) => {
      answer = () => void lists("gpt-4o")(request, response);
    });
    const starting = start([specAt(openai)]);
    await vi.waitFor(() => expect(openai.arrived).toHaveLength(1));
    timer.pass(3000);
    const models = await starting;
    expect(resourceOf(models, "gpt-4o")).toBe("other");
    answer();
    await vi.waitFor(() => expect(resourceOf(models, "gpt-4o")).toBe("gpt-4o"));
    expect(openai.arrived).toHaveLength(1);
  });

  test("a list that begins and never ends is given up after ten seconds", async () => {
    let begun = () => {};
    const isRead = new Promise<void>((resolve) => {
      begun = resolve;
    });
    openai.replyWith((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      response.write('{"data":[', begun);
    });
    const starting = start([specAt(openai)]);
    await isRead;
    timer.pass(3000);
    await starting;
    timer.pass(7000);
    await openai.untilHungUp(1);
    await vi.waitFor(() => expect(lines).toHaveLength(1));
    expect(lines[0]).toContain("cannot be listed: no answer within 10000 ms.");
  });

  test("calls make a list be read again once a minute, and time does every five", async () => {
    const models = await start([specAt(openai)]);
    for (let call = 0; call < 1000; call += 1) models.resolve(`fresh-${call}`, undefined);
    expect(openai.arrived).toHaveLength(1);
    openai.replyWith(lists("gpt-4o", "gpt-5"));
    timer.pass(MINUTE_MS);
    for (let call = 0; call < 1000; call += 1) models.resolve("gpt-5", undefined);
    await vi.waitFor(() => expect(resourceOf(models, "gpt-5")).toBe("gpt-5"));
    expect(openai.arrived).toHaveLength(1);
    openai.replyWith(lists("gpt-6"));
    timer.pass(5 * MINUTE_MS);
    await vi.waitFor(() => expect(openai.arrived).toHaveLength(1));
    await vi.waitFor(() => expect(resourceOf(models, "gpt-6")).toBe("gpt-6"));
  });

  test("a list is kept in the store until a newer one comes", async () => {
    const { notes } = repository[INTERNALS];
    const kept = new Promise<void>((resolve, reject) => {
      const set = (name: string, value: JsonValue) => notes.set(name, value).then(resolve, reject);
      void start([specAt(openai)], { notes: { get: (name) => notes.get(name), set } });
    });
    await kept;
    openai.replyWith(json({}, 503));
    const later = await start([specAt(openai)]);
    await vi.waitFor(() => expect(lines.join()).toContain("The last list stays."));
    expect([resourceOf(later, "gpt-4o"), resourceOf(later, "fresh")]).toEqual(["gpt-4o", "other"]);
    openai.replyWith(lists("gpt-9"));
    timer.pass(5 * MINUTE_MS);
    await vi.waitFor(() => expect(resourceOf(later, "gpt-9")).toBe("gpt-9"));
    expect(resourceOf(later, "gpt-4o")).toBe("other");
  });

  test("an upstream on a port that browsers refuse is asked like any other", async () => {
    const server = createServer((_, response) => response.end('{"data":[{"id":"llama"}]}'));
    const port = await listenOnOneOf(server, [10_080, 6000, 6566, 6665, 6666, 6667, 6668, 6697]);
    const url = `http://127.0.0.1:${port}/v1`;
    const models = await start([checkUpstream({ url, key: "none" }, {}, false)]);
    expect([resourceOf(models, "llama"), lines]).toEqual(["llama", []]);
    server.close();
  });

  test("no line about a list shows the key", async () => {
    openai.replyWith(json({ error: "bad key sk-openai-secret" }, 401));
    await start([specAt(openai)]);
    expect(lines).toHaveLength(1);
    expect(lines.join()).not.toContain("sk-openai");
  });
});

describe("GET models", () => {
  const everything = async () => true;

  test("models of all upstreams are listed once, in the shape of OpenAI", async () => {
    local.replyWith(lists("llama3.1:8b", "gpt-4o"));
    const models = await start([specAt(openai), specAt(local, { key: "none" })]);
    const answer = await models.list(everything);
    const model = { object: "model", created: 1_700_000_000, owned_by: "gateway" };
    expect(answer.list("openai")).toEqual({
      object: "list",
      data: ["gpt-4o", "gpt-4o-mini", "o3", "llama3.1:8b"].map((id) => ({ id, ...model })),
    });
    expect(await answer.get("o3", "openai")).toEqual({ id: "o3", ...model });
    expect(await answer.get("fresh", "openai")).toBeUndefined();
  });

  test("the list has one page in the shape of Anthropic", async () => {
    const created_at = "2025-02-19T00:00:00Z";
    const claude = { type: "model", id: "claude-a", display_name: "Claude A", created_at };
    local.replyWith(json({ data: [claude], has_more: false, last_id: "claude-a" }));
    const models = await start([specAt(local, { api: "anthropic" })]);
    const shown = { ...claude, created_at: "2025-02-19T00:00:00.000Z" };
    const answer = await models.list(everything);
    expect(answer.list("anthropic")).toEqual({
      data: [shown],
      has_more: false,
      first_id: "claude-a",
      last_id: "claude-a",
    });
    expect(await answer.get("claude-a", "anthropic")).toEqual(shown);
  });

  test("names and beginnings of the config cut the upstream's list", async () => {
    const models = await start([specAt(openai, { models: ["gpt-", "own-name"] })]);
    const answer = await models.list(everything);
    const { data } = answer.list("openai") as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toEqual(["own-name", "gpt-4o", "gpt-4o-mini"]);
  });

  test("what is switched off for the entity is neither listed nor shown", async () => {
    const { limits, entities } = repository;
    await entities.create({ id: "org" });
    await entities.create({ id: "team-a", parentId: "org", cascade: true });
    await limits.disable({ resource: "o3" });
    await limits.disable({ entityId: "org", resource: "gpt-4o-mini" });
    const models = await start([specAt(openai)]);
    const idsFor = async (entityId: string) => {
      const answer = await models.list(allowedFor(repository, entityId), entityId);
      const { data } = answer.list("openai") as { data: { id: string }[] };
      return data.map(({ id }) => id);
    };
    expect(await idsFor("team-a")).toEqual(["gpt-4o"]);
    expect(await idsFor("team-b")).toEqual(["gpt-4o", "gpt-4o-mini"]);
    const answer = await models.list(allowedFor(repository, "team-a"), "team-a");
    expect(await answer.get("o3", "openai")).toBeUndefined();
    expect(await answer.get("gpt-4o", "openai")).toBeDefined();
    await limits.disable({ entityId: "team-b" });
    await limits.enable({ entityId: "team-b", resource: "o3" });
    timer.pass(30_000);
    expect(await idsFor("team-b")).toEqual(["o3"]);
  });

  test("one question answers for all models that no level names, and is kept", async () => {
    openai.replyWith(lists(...Array.from({ length: 500 }, (_, at) => `m-${at}`)));
    await repository.limits.setResource("m-7", ["rpm:1"]);
    const models = await start([specAt(openai)]);
    const asked: string[] = [];
    const isAllowed = async (resource: string) => {
      asked.push(resource);
      return true;
    };
    await models.list(isAllowed, "team-a");
    expect(asked).toEqual(["m-0", "m-7"]);
    await models.list(isAllowed, "team-a");
    expect(asked).toHaveLength(2);
    timer.pass(30_000);
    await models.list(isAllowed, "team-a");
    expect(asked).toHaveLength(4);
  });

  test("a model of a beginning is shown also while the list cannot be read", async () => {
    openai.replyWith(json({}, 503));
    const models = await start([specAt(openai, { models: ["gpt-"] })]);
    const answer = await models.list(everything);
    expect(await answer.get("gpt-4o", "openai")).toMatchObject({ id: "gpt-4o" });
    expect(await answer.get("claude", "openai")).toBeUndefined();
  });
});
