/**
 * How long the dashboard's overview takes with 100,000 entities: the first answer, which does not
 * wait for all buckets, and later ones. `npm run build` first; `node bench/dashboard.mjs`.
 */

import { dashboard } from "../dist/dashboard/index.js";
import { RateLimiter, Repository } from "../dist/index.js";

const ENTITIES = 100_000;
const LOOKS = 30;

const repository = await Repository.open("memory:");
await repository.limits.setSystem(["rpm:10", "tpm:1000"]);
const limiter = new RateLimiter(repository);
for (let n = 0; n < ENTITIES; n += 1) {
  const consume = { rpm: n % 11, tpm: 10 };
  await limiter.acquire({ entityId: `key-${n}`, resource: "gpt-4", consume });
}
const handler = dashboard(repository, { authorize: () => true });
const times = [];
let overview;
for (let look = 0; look < LOOKS; look += 1) {
  const startedAt = performance.now();
  const response = await handler(new Request("http://localhost/api/overview"));
  overview = await response.json();
  times.push(performance.now() - startedAt);
  await new Promise((done) => setTimeout(done, 100));
}
const [first, ...rest] = times;
console.log(`first ${first.toFixed(0)} ms, slowest of the next ${Math.max(...rest).toFixed(0)} ms`);
console.log(
  `${overview.buckets} buckets in ${overview.durationMs} ms, complete: ${overview.complete}`,
);
await limiter.close();
