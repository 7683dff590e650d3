// One process that takes from a bucket as fast as it can, and says how much it got.
// Arguments: the built package, the address of the store, how long in milliseconds.

import { setImmediate as turn } from "node:timers/promises";
import { startingShot } from "../sqlite/starting-shot.mjs";

const [, , index, url, duration] = process.argv;
const { RateLimiter } = await import(index);
const limiter = await RateLimiter.open(url, { timeoutMs: 20_000 });
const request = { entityId: "hot", resource: "api", consume: { rps: 1 } };
await limiter.status({ entityId: "hot", resource: "api" });
await startingShot();

const startedAt = Date.now();
let granted = 0;
while (Date.now() - startedAt < Number(duration)) {
  const decision = await limiter.tryAcquire(request);
  if (decision.granted) granted += 1;
  else await turn();
}
console.log(JSON.stringify({ granted, startedAt, endedAt: Date.now() }));
await limiter.close();
