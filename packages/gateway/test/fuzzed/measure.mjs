/** Loaded into the process of a gateway: answers what it has cost so far. */

import { monitorEventLoopDelay } from "node:perf_hooks";

const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();

process.on("message", () => {
  globalThis.gc();
  const { user, system } = process.cpuUsage();
  const { heapUsed, rss } = process.memoryUsage();
  process.send({ cpuUs: user + system, heapBytes: heapUsed, rssBytes: rss, delayNs: delay.max });
  delay.reset();
});
// The gateway decides when its process ends.
process.channel.unref();
