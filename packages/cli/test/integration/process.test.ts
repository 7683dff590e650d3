/** Tests of the binary as a process: signals, pipes, folders, the modules it loads. */

import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { Binary, collect } from "@zae-limiter/test-support/binary.ts";
import { compileSources } from "@zae-limiter/test-support/build.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

const NODE = process.execPath;
const binary = new Binary();
let folder: string;
let repository: Repository;
let env: Record<string, string>;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-cli-"));
  const url = `sqlite:${join(folder, "limits.db")}`;
  env = { ZAEL_URL: url };
  repository = await Repository.open(url);
  await repository.limits.setSystem(["rpm:10/day"]);
  return async () => {
    await repository.close();
    rmSync(folder, { recursive: true });
  };
});

const left = async () => {
  const [bucket] = await repository.buckets.list("key-1");
  return bucket?.tokens;
};

describe("the default store", () => {
  test("reading leaves a fresh folder as it was; writing makes the file", async () => {
    const cwd = join(folder, "fresh");
    mkdirSync(cwd);
    const [shown, listed, peeked] = await Promise.all([
      binary.run(["system", "get-defaults"], { cwd }),
      binary.run(["namespace", "list", "--json"], { cwd }),
      binary.run(["peek", "key-1", "gpt-4"], { cwd }),
    ]);
    const note = "Nothing is stored in .zae-limiter/limits.db yet\n";
    expect(shown).toEqual({ code: 0, out: "No limits are stored for the system\n", err: note });
    expect(listed).toMatchObject({ code: 0, err: note });
    expect(peeked.code).toBe(1);
    expect(readdirSync(cwd)).toEqual([]);
    const set = await binary.run(["system", "set-defaults", "-l", "rpd:1/day"], { cwd });
    const path = join(".zae-limiter", "limits.db");
    expect(set).toMatchObject({ code: 0, err: `Created the store ${join(cwd, path)}\n` });
    expect(readdirSync(join(cwd, ".zae-limiter"))).toEqual(["limits.db"]);
    const take = ["acquire", "key-1", "gpt-4", "-c", "rpd=1"];
    expect(await binary.run(take, { cwd })).toMatchObject({ code: 0, err: "" });
    expect((await binary.run(take, { cwd })).code).toBe(3);
    // In a folder below, another store would be made: the command names both.
    const below = join(cwd, "below");
    mkdirSync(below);
    const other = `there is another: --url sqlite:${join(cwd, path)}\n`;
    const read = await binary.run(["system", "get-defaults"], { cwd: below });
    expect(read.err).toBe(`${note}The store is ${join(below, path)}; ${other}`);
    const made = await binary.run(["system", "set-defaults", "-l", "rpm:1"], { cwd: below });
    expect(made.err).toContain(`Created the store ${join(below, path)}\n`);
    expect(made.err).toContain(other);
  });
});

describe("a closed pipe", () => {
  test("a signal ends an endless command without a message", async () => {
    const child = binary.start(["watch", "key-1", "gpt-4", "--json", "-i", "0.1"], { env });
    const ended = collect(child);
    await once(child.stdout as NonNullable<typeof child.stdout>, "data");
    child.stdout?.destroy();
    expect(await ended).toMatchObject({ code: 0, err: "" });
  });

  test("a closed pipe does not hurt what ends anyway", async () => {
    const child = binary.start(["completion", "zsh"], { env });
    child.stdout?.destroy();
    expect(await collect(child)).toMatchObject({ code: 0, err: "" });
  });
});

describe("Ctrl-C", () => {
  test("Ctrl-C ends a watch in good order", async () => {
    const child = binary.start(["watch", "key-1", "gpt-4"], { env });
    const ended = collect(child);
    await once(child.stdout as NonNullable<typeof child.stdout>, "data");
    child.kill("SIGINT");
    expect(await ended).toMatchObject({ code: 130, err: "" });
  });

  test("Ctrl-C ends a question, and nothing was done", async () => {
    const child = binary.start(["system", "delete-defaults"], { env, keepsAsking: true });
    const ended = collect(child);
    await once(child.stderr as NonNullable<typeof child.stderr>, "data");
    child.kill("SIGINT");
    expect(await ended).toMatchObject({ code: 130, out: "" });
    expect((await repository.limits.getSystem()).limits).toHaveLength(1);
  });
});

describe("run", () => {
  const take = ["run", "key-1", "gpt-4", "-c", "rpm=4", "--"];

  test("run has the output and the exit code of the command", async () => {
    const script = "console.log('out'); console.error('err'); process.exit(8)";
    const ran = await binary.run([...take, NODE, "-e", script, "--", "--json", "-c"], { env });
    expect(ran).toMatchObject({ code: 8, out: "out\n" });
    expect(ran.err).toBe("err\nThe command ended with 8; everything was refunded\n");
    expect(await left()).toBe(10);
    const good = await binary.run([...take, NODE, "-p", "process.argv[1]", "x y"], { env });
    expect(good).toEqual({ code: 0, out: "x y\n", err: "" });
    expect(await left()).toBe(6);
  });

  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "run passes %s on, and waits",
    async (signal) => {
      const script = `process.on("${signal}", () => { console.log("heard"); process.exit(5); });
      setInterval(() => {}, 1000); console.log("ready");`;
      const child = binary.start([...take, NODE, "-e", script], { env });
      const ended = collect(child);
      await once(child.stdout as NonNullable<typeof child.stdout>, "data");
      expect(await left()).toBe(6);
      child.kill(signal);
      expect(await ended).toMatchObject({ code: 5, out: "ready\nheard\n" });
      expect(await left()).toBe(10);
    },
  );
});

describe("start-up", () => {
  /** Module by module: in a bundle the names of the sources are gone. */
  let compiled: Awaited<ReturnType<typeof compileSources>>;
  let binary: Binary;
  beforeAll(async () => {
    compiled = await compileSources();
    binary = new Binary(compiled.binary);
  });
  afterAll(() => compiled?.remove());

  test("--version loads nothing but the version", async () => {
    const { code, out } = await binary.run(["--version"], { env: { NODE_OPTIONS: LOADED } });
    expect(code).toBe(0);
    const [version, ...modules] = out.trimEnd().split("\n");
    expect(version).toBe(CLIENT_VERSION);
    expect(modules).toEqual(["cli/main.js", "limiter/domain/version.js"]);
  });

  test("a command loads what it needs: no AWS code, no charts and no other commands", async () => {
    const { out } = await binary.run(["resource", "list", "--json"], {
      env: { ...env, NODE_OPTIONS: LOADED },
    });
    const modules = out.split("\n");
    expect(modules).toContain("cli/commands/records/resource.js");
    // Those two make commands of its own group.
    const own = "resource|flag-commands|limit-commands";
    const others = new RegExp(
      `@aws|smithy|cli-table3|clack|undici|yaml|commands/(?!records/(?:${own})\\.js)`,
    );
    expect(modules.filter((name) => others.test(name))).toEqual([]);
  });
});

/** Prints the modules that were loaded, when the process ends. */
const LOADED = loaded();

function loaded(): string {
  const hook =
    "export async function load(url, context, next) {" +
    "if (url.startsWith('file:')) port.postMessage(url); return next(url, context); }" +
    "let port; export function initialize(data) { port = data.port; }";
  const start =
    "import { register } from 'node:module'; import { MessageChannel, receiveMessageOnPort } from " +
    "'node:worker_threads'; const { port1, port2 } = new MessageChannel();" +
    `register('data:text/javascript,' + ${JSON.stringify(encodeURIComponent(hook))}, ` +
    "{ data: { port: port2 }, transferList: [port2] }); port1.unref();" +
    "process.on('exit', () => { for (let at; (at = receiveMessageOnPort(port1)); ) {" +
    "console.log(at.message.replace(/^.*\\/zae-limiter-[^/]+\\//, '')); } });";
  return `--import=data:text/javascript,${encodeURIComponent(start)}`;
}
