// A process that acquires one token after the other and writes a byte for each grant, until it is
// killed. Arguments: the address of the store, the entity, and options as JSON.
import { writeSync } from "node:fs";
import { RateLimiter } from "../../bench/dist/modules/index.js";

const [, , url, entityId, options] = process.argv;
const limiter = await RateLimiter.open(url, JSON.parse(options));
const request = { entityId, resource: "api", consume: { n: 1 } };
writeSync(1, "o");
for (;;) {
  const { granted } = await limiter.tryAcquire(request);
  writeSync(1, granted ? "+" : "-");
}
