/** One engine as a process of its own, on a free port of the loopback. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const KEEPER = fileURLToPath(new URL("./keeper.mjs", import.meta.url));
const START_TIMEOUT_MS = 30_000;
const POLL_MS = 50;

export interface EngineProcess {
  readonly endpoint: string;
  stop(): Promise<void>;
}

/** Starts `command`, whose arguments depend on the port, and waits until it answers. */
export async function startEngine(
  command: string,
  args: (port: number) => readonly string[],
): Promise<EngineProcess> {
  const port = await freePort();
  const child = spawn(process.execPath, [KEEPER, command, ...args(port)], {
    stdio: ["pipe", "ignore", "pipe"],
  });
  const endpoint = `http://127.0.0.1:${port}`;
  const said: string[] = [];
  child.stderr.setEncoding("utf8").on("data", (text: string) => said.push(text));
  const stop = () => stopProcess(child);
  try {
    await untilItAnswers(endpoint, child);
    return { endpoint, stop };
  } catch (error) {
    await stop();
    throw new Error(`${(error as Error).message}: ${said.join("").trim().slice(0, 500)}`);
  }
}

async function untilItAnswers(endpoint: string, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (child.exitCode === null) {
    if (Date.now() > deadline) throw new Error(`no answer within ${START_TIMEOUT_MS} ms`);
    // Any answer will do: a request without a signature is refused, by a server that is up.
    const answered = await fetch(endpoint).then(
      () => true,
      () => false,
    );
    if (answered) return;
    await pause(POLL_MS);
  }
  throw new Error("it ended at once");
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = once(child, "exit");
  child.stdin?.end();
  await ended;
}

/** Returns a port of the loopback that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("there is no free port");
  return address.port;
}
