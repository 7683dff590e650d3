// One process that takes slots and writes to a file when it has one, and before it gives it back.
// Arguments: the built package, the address of the store, calls, the expiry of its slots in seconds,
// the file. Without calls it takes two slots, and gives them back at the next line of its input.

import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import { startingShot } from "../sqlite/starting-shot.mjs";

const [, , index, url, calls, slotExpirySeconds, file] = process.argv;
const { RateLimiter } = await import(index);
const limiter = await RateLimiter.open(url, {
  timeoutMs: 120_000,
  slotExpirySeconds: Number(slotExpirySeconds),
});
const request = { entityId: "hot", resource: "api", consume: { parallel: 1 } };
/** In all processes a few more than there are slots. */
const AT_ONCE = 3;
const say = (word) => appendFileSync(file, word);

async function take() {
  for (;;) {
    const { granted, lease } = await limiter.tryAcquire(request);
    if (granted) {
      say("+");
      return lease;
    }
    await turn();
  }
}

await startingShot();
if (Number(calls) === 0) {
  const leases = [await take(), await take()];
  console.log('"held"');
  process.stdin.resume();
  await once(process.stdin, "data");
  process.stdin.pause();
  for (const lease of leases) await lease.commit();
} else {
  let left = Number(calls);
  const lane = async () => {
    while (left > 0) {
      left -= 1;
      const lease = await take();
      for (let turns = left % 7; turns > 0; turns -= 1) await turn();
      say("-");
      await lease.commit();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}
await limiter.close();
console.log('"ended"');
