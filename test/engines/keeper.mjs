/**
 * Runs a command for as long as whoever started this file lives. The pipe on stdin ends when that
 * process ends, however it ends, so no engine is ever left behind.
 */

import { spawn } from "node:child_process";
import { rmSync } from "node:fs";

const [command, ...args] = process.argv.slice(2);
// dynoxide changes one item at a time whatever its threads: a second one only fights with the first
// for the lock of the allocator, and two make a third fewer writes than one.
const env = { TOKIO_WORKER_THREADS: "1", ...process.env };
const child = spawn(command, args, { env, stdio: ["ignore", "inherit", "inherit"] });
child.on("error", (error) => {
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
});
let isOver = false;
child.on("exit", (code) => {
  const data = process.env.ZAEL_KEEPER_REMOVES;
  if (isOver && data !== undefined) rmSync(data, { recursive: true, force: true });
  process.exit(code ?? 0);
});
process.stdin
  .on("close", () => {
    isOver = true;
    child.kill(process.env.ZAEL_KEEPER_SIGNAL ?? "SIGKILL");
    // A server that a test has stopped acts on no signal before it goes on.
    child.kill("SIGCONT");
  })
  .resume();
