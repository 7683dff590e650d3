// One process that takes a token at a time, and says so after each, until it is killed.
// Arguments: the built package, the address of the store.

import { startingShot } from "../sqlite/starting-shot.mjs";

const [, , index, url, atOnce] = process.argv;
const { RateLimiter } = await import(index);
const limiter = await RateLimiter.open(url, { timeoutMs: 20_000 });
const request = { entityId: "hot", resource: "api", consume: { large: 1 } };
await startingShot();
await Promise.all(
  Array.from({ length: Number(atOnce) }, async () => {
    for (;;) {
      await limiter.acquire(request);
      process.stdout.write("1\n");
    }
  }),
);
