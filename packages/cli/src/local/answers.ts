/** Whether something answers, and whether a port is free. */

import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { CommandFailure } from "../frame/command.ts";

const ANSWER_MS = 2000;

/** Returns whether a server answers; a refusal of the unsigned request counts as an answer. */
export async function respondsTo(endpoint: string, timer: Timer): Promise<boolean> {
  const done = new AbortController();
  const tooLate = new AbortController();
  void timer.sleep(ANSWER_MS, done.signal).then(() => tooLate.abort());
  try {
    const response = await fetch(endpoint, { signal: tooLate.signal });
    await response.body?.cancel();
    return true;
  } catch {
    return false;
  } finally {
    done.abort();
  }
}

/** Returns whether a server on the loopback answers these first words as expected. */
export async function says(
  port: number,
  words: string | Buffer,
  expected: RegExp,
  timer: Timer,
): Promise<boolean> {
  const done = new AbortController();
  const socket = connect(port, "127.0.0.1");
  void timer.sleep(ANSWER_MS, done.signal).then(() => socket.destroy());
  try {
    return await new Promise((resolve) => {
      socket.on("connect", () => socket.write(words));
      socket.on("data", (data) => resolve(expected.test(data.toString("latin1"))));
      socket.on("error", () => resolve(false)).on("close", () => resolve(false));
    });
  } finally {
    socket.destroy();
    done.abort();
  }
}

/** Returns the port, or any free one for 0; throws a `CommandFailure` when it is taken. */
export async function freePort(wanted: number): Promise<number> {
  const server = createServer();
  try {
    server.listen(wanted, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    return address === null || typeof address === "string" ? wanted : address.port;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason =
      code === "EADDRINUSE"
        ? `Port ${wanted} is in use by another process`
        : `Port ${wanted} cannot be used: ${message}`;
    throw new CommandFailure(`${reason}; choose another with --port, or 0 for any free one`, 1, {
      cause: error,
    });
  } finally {
    server.close();
  }
}
