/** Valkey, or Redis, with its data in a file. */

import { mkdir } from "node:fs/promises";
import { basename } from "node:path";
import { CommandFailure } from "../../frame/command.ts";
import { says } from "../answers.ts";
import { executableIn, existing, foldersOf } from "./programs.ts";
import {
  type Engine,
  type EngineSearch,
  inNamespace,
  type LocalStore,
  migrateAndRegister,
} from "./store.ts";

const PROGRAMS = ["valkey-server", "redis-server"];
const PRIVATE_FOLDER = 0o700;
const SETTINGS = [
  ["--bind", "127.0.0.1"],
  ["--daemonize", "no"],
  ["--appendonly", "yes"],
  ["--save", ""],
  // Its command line stays, by which later commands recognise the process.
  ["--set-proc-title", "no"],
].flat();

export const valkey: LocalStore = {
  engines: ["valkey", "redis"],
  // Another than that of a server that runs here already.
  port: 6399,
  hasTables: false,
  stopSignal: "SIGTERM",
  find,
  endpoint: (port) => `redis://127.0.0.1:${port}`,
  url: ({ port, namespace }) => inNamespace(valkey.endpoint(port), namespace),
  answers: (port, timer) => says(port, "PING\r\n", /^\+PONG/, timer),
  create: ({ port, namespace }) => migrateAndRegister(valkey.endpoint(port), namespace),
};

function find({ engine, env }: EngineSearch): Engine {
  const wanted = engine === undefined ? PROGRAMS : PROGRAMS.filter((name) => name === engine);
  if (engine !== undefined && wanted.length === 0) return engineAt(existing("--engine", engine));
  const folders = foldersOf(env.PATH);
  const found = wanted.map((name) => executableIn(folders, name)).find(Boolean);
  if (found !== undefined) return engineAt(found);
  throw new CommandFailure(
    `No ${wanted.join(" or ")} in the PATH. Install Valkey or Redis, as with ` +
      "`apt-get install valkey-server` or `brew install valkey`, or name the program with --engine",
  );
}

function engineAt(command: string): Engine {
  return {
    name: basename(command).startsWith("redis") ? "redis" : "valkey",
    command,
    args: (port, data) => ["--port", String(port), "--dir", data, ...SETTINGS],
    prepare: async (data) => void (await mkdir(data, { recursive: true, mode: PRIVATE_FOLDER })),
  };
}
