// Acquires from one file as fast as it can, and reports how long each acquire took.

import { once } from "node:events";
import { RateLimiter } from "../dist/index.js";

const [path, durationMs] = process.argv.slice(2);
const limiter = await RateLimiter.open(`sqlite:${path}`);
const acquire = async (at) => {
  const request = { entityId: `key-${at % 100}`, resource: "api", consume: { rpm: 1, tpm: 1 } };
  const lease = await limiter.acquire(request);
  await lease.commit();
};
for (let at = 0; at < 100; at += 1) await acquire(at);
process.send("ready");
await once(process, "message");
const waits = [];
const until = performance.now() + Number(durationMs);
for (let at = 0; performance.now() < until; at += 1) {
  const startedAt = performance.now();
  await acquire(at);
  waits.push(performance.now() - startedAt);
}
await limiter.close();
process.send(waits, () => process.disconnect());
