/** Engines, servers and folders that scenarios need, all gone at the end. */

import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { enginePath } from "./engine.mjs";

const KEEPER = fileURLToPath(new URL("../test/engines/keeper.mjs", import.meta.url));

/** Creates a folder for a scenario. */
export function scratch() {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-bench-"));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Starts the faster one of the two local DynamoDB of the tests. */
export async function startDynoxide() {
  const port = await freePort();
  const args = [KEEPER, enginePath(), "--host", "127.0.0.1", "--port", port];
  const child = spawn(process.execPath, args.map(String), { stdio: ["pipe", "ignore", "ignore"] });
  const endpoint = `http://127.0.0.1:${port}`;
  const answers = () => fetch(endpoint).then(Boolean, () => false);
  while (!(await answers())) await pause(20);
  const stop = async () => {
    child.stdin.end();
    await once(child, "exit");
  };
  return { endpoint, stop, cpuUs: cpuOf(childOf(child.pid)) };
}

/** Returns the process that a keeper has started. */
function childOf(pid) {
  const list = `/proc/${pid}/task/${pid}/children`;
  return existsSync(list) ? Number(readFileSync(list, "utf8").trim()) : undefined;
}

/** Returns the CPU time of a process in microseconds; only Linux has it. */
function cpuOf(pid) {
  if (pid === undefined) return undefined;
  const tasks = `/proc/${pid}/task`;
  if (existsSync(`${tasks}/${pid}/schedstat`)) {
    // Exact, where the other figure is in hundredths of a second.
    const spentNs = (task) =>
      Number(readFileSync(`${tasks}/${task}/schedstat`, "utf8").split(" ")[0]);
    return () => readdirSync(tasks).reduce((sum, task) => sum + spentNs(task), 0) / 1000;
  }
  return () => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10_000;
  };
}

/**
 * Starts a server in a new process, from a file that sends its port. `ask` sends it a message and
 * waits for the answer.
 */
export async function startServer(file, args) {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args);
  const [port] = await once(child, "message");
  const stop = async () => {
    child.kill();
    await once(child, "exit");
  };
  const ask = async (message) => {
    child.send(message);
    await once(child, "message");
  };
  return { endpoint: `http://127.0.0.1:${port}`, stop, ask, cpuUs: cpuOf(child.pid) };
}

/** Returns a contender that acquires and commits for one key after the other. */
export function taking(limiter, names, consume = { rpm: 1, tpm: 500 }) {
  let at = 0;
  const loop = async (count) => {
    for (let left = count; left > 0; left -= 1) {
      at = at + 1 === names.length ? 0 : at + 1;
      const lease = await limiter.acquire({ entityId: names[at], resource: "api", consume });
      await lease.commit();
    }
  };
  return { loop };
}

export function keys(count) {
  return Array.from({ length: count }, (_, at) => `key-${String(at).padStart(7, "0")}`);
}

async function freePort() {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
