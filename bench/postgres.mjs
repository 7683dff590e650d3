/**
 * A PostgreSQL server to measure with: the one of the tests, whose data has to reach the disk as
 * everywhere else.
 */

import { cpSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const SETTINGS = [
  "listen_addresses=127.0.0.1",
  "unix_socket_directories=",
  "max_connections=300",
  "shared_buffers=256MB",
];

/** Starts a server with an empty schema of ours; `async` is its address without waiting for disks. */
export async function startPostgres() {
  const outfile = here("./dist/postgres-server.mjs");
  const entryPoints = [here("../test/engines/postgres-server.ts")];
  await build({ entryPoints, outfile, bundle: true, platform: "node", format: "esm" });
  cpSync(here("../test/engines/keeper.mjs"), here("./dist/keeper.mjs"));
  const { PostgresServer } = await import(outfile);
  const server = await PostgresServer.start(undefined, SETTINGS);
  const { Repository } = await import("./dist/index.js");
  await Repository.migrate(server.url);
  const async = `${server.url}?options=${encodeURIComponent("-c synchronous_commit=off")}`;
  return { url: server.url, async, stop: () => server.remove() };
}
