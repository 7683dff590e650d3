/** A Valkey server to measure with: the one of the tests, which writes nothing to the disk. */

import { cpSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
/** Microseconds of a tick of `/proc`. */
const TICK_US = 10_000;

/** Starts an empty server; `cpuUs` returns the time that its process has taken so far. */
export async function startValkey() {
  const outfile = here("./dist/redis-server.mjs");
  const entryPoints = [here("../test/engines/redis-server.ts")];
  await build({ entryPoints, outfile, bundle: true, platform: "node", format: "esm" });
  cpSync(here("../test/engines/keeper.mjs"), here("./dist/keeper.mjs"));
  const { RedisServer } = await import(outfile);
  const server = await RedisServer.start();
  const cpuUs = () => {
    const fields = readFileSync(`/proc/${server.pid}/stat`, "utf8").split(") ")[1].split(" ");
    return (Number(fields[11]) + Number(fields[12])) * TICK_US;
  };
  return { url: server.url, cpuUs, stop: () => server.remove() };
}
