// One process that takes two slots, says so, and gives them back at the next line of its input.
// Arguments: the built package, the address of the store, and the expiry of its slots in seconds.

import { once } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { startingShot } from "../sqlite/starting-shot.mjs";

const [, , index, url, slotExpirySeconds] = process.argv;
const { RateLimiter } = await import(index);
const limiter = await RateLimiter.open(url, {
  timeoutMs: 120_000,
  slotExpirySeconds: Number(slotExpirySeconds),
});
const request = { entityId: "hot", resource: "api", consume: { parallel: 1 } };

async function take() {
  for (;;) {
    const { granted, lease } = await limiter.tryAcquire(request);
    if (granted) return lease;
    await turn();
  }
}

await startingShot();
const leases = [await take(), await take()];
console.log('"held"');
process.stdin.resume();
await once(process.stdin, "data");
process.stdin.pause();
for (const lease of leases) await lease.commit();
await limiter.close();
console.log('"ended"');
