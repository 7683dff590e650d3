/** Workers take jobs from a queue and wait for tokens, instead of failing and trying again. */

import { RateLimiter } from "zae-limiter";

const limiter = await RateLimiter.open(process.env.LIMITER_URL ?? "memory:");
await limiter.repository.limits.ensureResource("crawl", ["pages:40/sec:10"]);
const jobs = Array.from({ length: 20 }, (_, number) => ({ number, pages: 1 + (number % 3) }));

/** The jobs in the order in which they were done. */
export const done = [];

async function worker(name) {
  for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) {
    const { number, pages } = job;
    await limiter.run(
      // At most 10 pages at once and 40 per second, over all workers and processes.
      { entityId: "crawler", resource: "crawl", consume: { pages }, maxWaitSeconds: 30 },
      async () => done.push({ worker: name, number, pages }),
    );
  }
}

const startedAt = performance.now();
await Promise.all(["a", "b", "c", "d"].map(worker));
/** How long it took; 39 pages need at least (39 - 10) / 40 seconds. */
export const seconds = (performance.now() - startedAt) / 1000;
console.log(`${done.length} jobs in ${seconds.toFixed(1)} s`);
await limiter.close();
