/** Everything by way of pgbouncer, which gives each transaction another connection. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { startPgbouncer } from "@zae-limiter/test-engines/pgbouncer.ts";
import { describePostgres, ownSchema } from "@zae-limiter/test-engines/postgres.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect } from "vitest";

const ACQUIRES = 10_000;
const KEYS = 100;
/** All of them, on a machine that has much else to do. */
const LONG = { timeout: 600_000 };

describePostgres("a pooler", (server) => {
  itUnless(NIGHTLY_ONLY)("10,000 acquires through pgbouncer have no error", LONG, async () => {
    await using pooler = await startPgbouncer(server);
    const { url } = ownSchema(pooler.url);
    await Repository.migrate(url);
    const limiters = await Promise.all(
      [1, 2].map(() => RateLimiter.open(url, { timeoutMs: 20_000 })),
    );
    const [first] = limiters as [RateLimiter];
    await first.repository.limits.setSystem(["n:1000000/day"]);
    await first.repository.entities.create({ id: "team" });
    await first.repository.entities.create({ id: "key", parentId: "team", cascade: true });
    let failures = 0;
    await Promise.all(
      Array.from({ length: KEYS }, async (_, at) => {
        const limiter = limiters[at % 2] as RateLimiter;
        const entityId = at % 10 === 0 ? "key" : `key-${at}`;
        for (let call = 0; call < ACQUIRES / KEYS; call += 1) {
          const request = { entityId, resource: "api", consume: { n: 1 } };
          const lease = await limiter.acquire(request).catch(() => undefined);
          if (lease === undefined) failures += 1;
          else if (call % 10 === 0) await lease.rollback();
        }
      }),
    );
    expect(failures).toBe(0);
    const [team] = await first.repository.buckets.list("team");
    expect(team?.totalConsumed).toBe((ACQUIRES / 10) * 0.9);
    for (const limiter of limiters) await limiter.close();
  });
});
