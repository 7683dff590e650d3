/** Everything by way of pgbouncer, which gives each transaction another connection. */

import { inspect } from "node:util";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { startPgbouncer } from "@zae-limiter/test-engines/pgbouncer.ts";
import { describePostgres, ownSchema } from "@zae-limiter/test-engines/postgres.ts";
import { POSTGRES_PASSWORD, PostgresServer } from "@zae-limiter/test-engines/postgres-server.ts";
import { NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { expect } from "vitest";

const ACQUIRES = 10_000;
const KEYS = 100;
/** All of them, on a machine that has much else to do. */
const SOON = { timeoutMs: 20_000 };
const POLL = { timeout: 60_000, interval: 50 };
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

  itUnless(NIGHTLY_ONLY)(
    "a server that stops behind pgbouncer loses and makes nothing",
    LONG,
    async () => {
      const own = await PostgresServer.start();
      const pooler = await startPgbouncer(own.url);
      await Repository.migrate(own.url);
      const limiter = await RateLimiter.open(pooler.url, SOON);
      await limiter.repository.limits.setSystem(["n:1000000/day"]);
      let [grants, unknown, isOver] = [0, 0, false];
      const failures: unknown[] = [];
      const clients = Array.from({ length: 10 }, async () => {
        while (!isOver) {
          try {
            await limiter.acquire({ entityId: "key", resource: "api", consume: { n: 1 } });
            grants += 1;
          } catch (error) {
            failures.push(error);
            if (!(error as RateLimiterUnavailable).nothingWritten) unknown += 1;
          }
        }
      });
      await expect.poll(() => grants, POLL).toBeGreaterThan(100);
      await own.stop();
      await expect.poll(() => failures.length, POLL).toBeGreaterThan(0);
      await own.start();
      const before = grants;
      await expect.poll(() => grants, POLL).toBeGreaterThan(before + 100);
      isOver = true;
      await Promise.all(clients);
      for (const failure of failures) {
        expect(failure).toBeInstanceOf(RateLimiterUnavailable);
        expect(inspect(failure, { depth: 9, showHidden: true })).not.toContain(POSTGRES_PASSWORD);
      }
      const [state] = await limiter.repository.buckets.list("key");
      expect(state?.totalConsumed).toBeGreaterThanOrEqual(grants);
      expect(state?.totalConsumed).toBeLessThanOrEqual(grants + unknown);
      await limiter.close();
      await pooler[Symbol.asyncDispose]();
      await own.remove();
    },
  );
});
