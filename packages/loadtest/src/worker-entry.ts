/** `zae-limiter/loadtest/worker`: what `zae-limiter loadtest` starts elsewhere. */

import { type Order, serveWorker } from "./worker-process.ts";

export { type RoundAnswer, type RoundOrder, workerHandler } from "./lambda-worker.ts";

/**
 * Works for the process that has started this one with a channel. `zae-limiter loadtest run
 * --workers` starts such processes.
 *
 * @example
 * ```ts no-run: needs a channel to another process
 * import { runWorkerProcess } from 'zae-limiter/loadtest/worker';
 * await runWorkerProcess();
 * ```
 */
export async function runWorkerProcess(): Promise<void> {
  // Ctrl-C reaches all processes of a terminal; the one that gives the orders decides.
  process.on("SIGINT", () => undefined);
  await serveWorker({
    send: (report) => {
      if (process.connected) process.send?.(report);
    },
    onOrder: (listener) => process.on("message", (order) => listener(order as Order)),
    onLeft: (listener) => process.once("disconnect", listener),
  });
  // The process ends when the one that gives the orders has read the last report and hangs up.
}
