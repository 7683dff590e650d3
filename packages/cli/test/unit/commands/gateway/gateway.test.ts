/** The command `gateway`: what it says at its start, and what deleting an entity does to keys. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryStore } from "../../temporary.ts";

const store = temporaryStore();
const env = { OPENAI_API_KEY: "sk-real", ANTHROPIC_API_KEY: "sk-ant-real" };
const PORT = ["--port", "0"];

/** Said of an upstream that does not answer. */
const UNLISTED =
  "The models of http://127.0.0.1:9/v1 cannot be listed: connect ECONNREFUSED 127.0.0.1:9. " +
  "Until then, only names that limits are stored for are known.";

/** A namespace whose gateways end as soon as they listen. */
function stopping() {
  return store.namespace({ env, onOutput: (_, interrupt) => interrupt("SIGINT") });
}

describe("the start of a gateway", () => {
  test("the start names the commands that add the limits and keys that are missing", async () => {
    const { run } = stopping();
    const { err } = await run("gateway", "-u", "http://127.0.0.1:9/v1", ...PORT);
    expect(err.split("\n")).toEqual([
      UNLISTED,
      "There are no limits yet, for the system or for a resource: calls of entities without " +
        "limits of their own get an error. Set some, which takes up to a minute, with: " +
        "zae-limiter system set-limits -l rpm:60 -l tpm:100000",
      "There are no keys yet: every call gets a 401. Create one with: " +
        "zae-limiter gateway key create --entity team-a --create-entity",
      "Stopping: calls in flight may end first",
      "",
    ]);
  });

  test("a suggested command names the store and the namespace of the gateway", async () => {
    const { run, name } = stopping();
    const place = ["--url", store.url, "--namespace", name];
    const { err } = await run("gateway", "-u", "http://127.0.0.1:9/v1", ...PORT, ...place);
    expect(err).toContain(`--entity team-a --create-entity ${place.join(" ")}\n`);
  });

  test("limits of a resource and a key are enough, and an open gateway needs no key", async () => {
    const { run } = stopping();
    await run("resource", "set-limits", "gpt-4o", "-l", "rpm:1");
    const open = await run("gateway", "-u", "http://127.0.0.1:9/v1", ...PORT, "--open");
    expect(open.err).toBe("Stopping: calls in flight may end first\n");
    await run("gateway", "key", "create", "--entity", "team-a", "--create-entity");
    const closed = await run("gateway", "-u", "http://127.0.0.1:9/v1", ...PORT);
    expect(closed.err).toBe(`${UNLISTED}\nStopping: calls in flight may end first\n`);
  });

  test("the first line names each upstream with its path, and the store", async () => {
    const { run, name } = stopping();
    for (const address of ["http://127.0.0.1:9/v1", "http://127.0.0.1:9"]) {
      const { out } = await run("gateway", "-u", address, ...PORT);
      expect(out).toMatch(/^Listening on http:\/\/127\.0\.0\.1:\d+, in front of .*\n$/);
      expect(out).toContain(`in front of ${address}, with the limits of namespace ${name} in `);
      expect(out).toContain(store.folder);
    }
  });

  test("with --json the start is an object with the store and the upstreams", async () => {
    const { run, name } = stopping();
    const { out } = await run("gateway", "-u", "http://127.0.0.1:9/v1", ...PORT, "--json");
    expect(JSON.parse(out)).toEqual({
      url: expect.stringMatching(/^http:/),
      dashboard: null,
      store: expect.stringContaining(store.folder),
      namespace: name,
      upstreams: ["http://127.0.0.1:9/v1"],
    });
  });

  test("an upstream without a key needs no variable of the environment", async () => {
    const { run } = store.namespace({ env: {}, onOutput: (_, stop) => stop("SIGINT") });
    const local = ["gateway", "-u", "http://127.0.0.1:11434/v1", ...PORT];
    expect(await run(...local)).toMatchObject({
      code: 1,
      err: expect.stringContaining("--keyless"),
    });
    expect(await run(...local, "--keyless")).toMatchObject({ code: 0 });
    expect((await run("gateway", "--config", "x.yaml", "--keyless")).err).toContain(
      "--keyless is for --upstream; in a file, write key: none for an upstream",
    );
  });

  test("tags of an option are for an upstream without a file, and are names", async () => {
    const { run } = stopping();
    const upstream = ["gateway", "-u", "http://127.0.0.1:9/v1", ...PORT];
    expect(await run(...upstream, "--tag", "research", "--tag", "support")).toMatchObject({
      code: 0,
    });
    expect((await run(...upstream, "--tag", "a b")).err).toContain(
      'expected 1 to 64 letters, digits and _ . -, got "a b"',
    );
    expect((await run("gateway", "--config", "x.yaml", "--tag", "research")).err).toContain(
      "--tag is for --upstream; a file has a list of tags",
    );
  });

  test("a path to allow is the beginning of a path, without escapes and queries", async () => {
    const { run } = stopping();
    const allowing = (prefix: string) =>
      run("gateway", "-u", "http://127.0.0.1:9/v1", ...PORT, "--allow-path", prefix);
    expect(await allowing("/v1/images")).toMatchObject({ code: 0 });
    for (const prefix of ["v1/images", "/v1/%69mages", "/v1?x", "/v1/../files", "/v1;a"]) {
      expect((await allowing(prefix)).err).toContain("expected the beginning of a path");
    }
  });

  test("an access log that cannot be opened is an error at the start", async () => {
    const { run } = stopping();
    const file = join(store.folder, "no", "access.log");
    const args = ["gateway", "-u", "http://127.0.0.1:9/v1", ...PORT, "--access-log", file];
    expect(await run(...args)).toMatchObject({
      code: 1,
      err: expect.stringContaining("Cannot open the access log: ENOENT"),
    });
  });

  test("an address of OpenAI or Anthropic without /v1 causes a warning", async () => {
    const { run } = stopping();
    for (const host of ["https://api.openai.com", "https://api.anthropic.com"]) {
      expect((await run("gateway", "-u", host, ...PORT)).err).toContain(
        `Warning: the upstream ${host} lacks /v1, so that calls go to ${host}/chat/completions ` +
          `and the like. Use ${host}/v1\n`,
      );
      expect((await run("gateway", "-u", `${host}/v1`, ...PORT)).err).not.toContain("Warning");
    }
  });
});

describe("the file of upstreams", () => {
  const file = join(store.folder, "upstreams.yaml");

  test("each problem has a line of its own, with the file, the line and the column", async () => {
    writeFileSync(file, "upstreams:\n  - url: nonsense\n    models: 7\nmore: 1\n");
    const { run } = stopping();
    const lines = [
      `${file}:2:5: upstreams[0].url: expected a URL like https://api.openai.com/v1, got "nonsense"`,
      `${file}:3:5: upstreams[0].models: expected a list of names of models, and of beginnings like "gpt-", got 7`,
      `${file}:4:1: there is no "more" here; expected upstreams, tags, webhooks`,
    ];
    expect(await run("gateway", "--config", file)).toMatchObject({
      code: 1,
      out: "",
      err: `${lines.join("\n")}\nzae-limiter: ${file} has 3 problems; the gateway did not start\n`,
    });
    const { err } = await run("gateway", "--config", file, "--json");
    expect(JSON.parse(err)).toEqual({ error: "FAILED", message: lines.join("; ") });
  });

  test("a file that does not exist is refused in plain words", async () => {
    const { run } = stopping();
    expect(await run("gateway", "--config", "nope.yaml")).toMatchObject({
      code: 1,
      err: "zae-limiter: Cannot read nope.yaml: there is no such file\n",
    });
  });
});

test("entity delete names the gateway keys of the entity and the commands that revoke them", async () => {
  const { run, json, under } = store.namespace();
  const create = (entity: string) =>
    json<{ id: string }>("gateway", "key", "create", "--entity", entity, "--create-entity");
  await create("team-a");
  const { id } = await create("team-b");
  await run("entity", "create", "child", "--parent", "team-b");
  const err =
    "team-b has 1 gateway key. Gateways refuse the keys of a deleted entity. Revoke them with:\n" +
    `  zae-limiter gateway key revoke ${id}\n`;
  const declined = await under({ answers: [false] }, "entity", "delete", "team-b");
  expect(declined.err).toBe(`${err}zae-limiter: Aborted: nothing was deleted\n`);
  const deleted = await run("entity", "delete", "team-b", "--yes");
  expect(deleted).toMatchObject({ code: 0, out: "Deleted team-b\n", err });
  expect(await run("gateway", "key", "revoke", id)).toMatchObject({ code: 0 });
});
