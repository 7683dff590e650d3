/**
 * Acquires while the store cannot answer. The stores are real: servers on the loopback that
 * misbehave in front of an engine, a port without a server, a file that another process has locked.
 * A memory cannot fail.
 */

import type { RateLimiterOptions } from "@zae-limiter/limiter/acquire/limiter-options.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import {
  InfrastructureError,
  RateLimiterUnavailable,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { describe, expect, it } from "vitest";
import { type Breakable, breakable, IMPATIENT, SLACK_MS, unavailable } from "./breakable.ts";
import { type Failure, Faults, faultyEndpoint, isBucketOf } from "./faults.ts";
import {
  describeDynamo,
  describeItemStores,
  describeLimiterStores,
  milliOf,
  type Subject,
} from "./limiter-stores.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };
const RPM = { ...USER, consume: { rpm: 10 } };
const FAILURES: readonly Failure[] = ["throttled", "hang", "drip", "reset", "broken"];

/** Another limiter on the same repository. */
function withOptions({ repo }: Subject, options: RateLimiterOptions): RateLimiter {
  return new RateLimiter(repo, options);
}

async function expectBlocked({ limiter }: Subject): Promise<void> {
  const error = await unavailable(() => limiter.acquire(RPM));
  expect(error).toMatchObject({ entityId: "user-1", resource: RESOURCE });
  expect(error.stackName).toBeDefined();
  expect(error.cause).toBeDefined();
  expect(error.message.match(/stack=/g)).toHaveLength(1);
}

/** Whatever the store does: decided in time, both ways, and right again afterwards. */
async function survive({ subject, fail, repair }: Breakable): Promise<void> {
  const { limiter, repo } = subject;
  await repo.limits.setSystem(["rpm:100"]);
  await limiter.acquire(RPM);
  await fail();
  await expectBlocked(subject);
  const result = await limiter.run({ ...RPM, onUnavailable: "allow" }, async (lease) => {
    expect(lease).toMatchObject({ degraded: true, consumed: {}, statuses: [] });
    await lease.consume({ rpm: 5 });
    lease.adjust({ rpm: -3 });
    lease.release({ rpm: 1 });
    await lease.flush();
    return "done";
  });
  expect(result).toBe("done");
  await repair();
  const lease = await limiter.acquire(RPM);
  expect(lease.degraded).toBe(false);
  expect(await milliOf(subject, "user-1", RESOURCE, "rpm")).toEqual({
    balance: 80_000,
    consumed: 20_000,
  });
}

// The failures happen in front of the store, so a fast store is enough: DynamoDB Local would need
// more time for calls that go well than the failing calls are given.
describe("while the store is down", () => {
  describe("a store that fails (A185)", () => {
    describeItemStores("is unavailable", (store) => {
      itUnless(store.slow).each(FAILURES)("a store is unavailable when it is: %s", (kind) =>
        breakable(store, kind).then(survive),
      );
    });

    describeLimiterStores("is unavailable", (store) => {
      itUnless(store.name !== "sqlite" && "only a file can be locked")(
        "a store is unavailable when its file is locked",
        async () => {
          await using broken = await breakable(store, "hang");
          await survive(broken);
        },
      );
    });

    describeDynamo("is unavailable", (store) => {
      itUnless(store.slow)("a store is unavailable when the server is gone", async () => {
        const faults = new Faults();
        const server = await faultyEndpoint(store.place.address, faults);
        const subject = await store.open({ ...IMPATIENT, endpoint: server.endpoint });
        await subject.repo.limits.setSystem(["rpm:100"]);
        await subject.limiter.acquire(RPM);
        await server[Symbol.asyncDispose]();
        await expectBlocked(subject);
        const { limiter } = subject;
        const lease = await limiter.acquire({ ...RPM, onUnavailable: "allow" });
        expect(lease.degraded).toBe(true);
        expect(await limiter.isAvailable({ timeoutMs: 100 })).toBe(false);
      });
    });
  });

  describeItemStores("a store that fails", (store) => {
    const inTime = itUnless(store.slow);

    inTime(
      "a store fails, and calls that it allows consume nothing of quotas and sessions (A185)",
      async () => {
        await using broken = await breakable(store, "throttled");
        const { subject, fail, repair } = broken;
        const { limiter, repo } = subject;
        await repo.limits.setSystem(["req:30/year UTC", "ses:30/session:5hour"]);
        const call = { ...USER, consume: { req: 10, ses: 10 } };
        await limiter.acquire(call);
        await fail();
        await unavailable(() => limiter.acquire(call));
        for (let count = 0; count < 2; count += 1) {
          const lease = await limiter.acquire({ ...call, onUnavailable: "allow" });
          expect(lease.degraded).toBe(true);
          await lease.commit();
        }
        await repair();
        await limiter.acquire({ ...USER, consume: { req: 20, ses: 20 } });
        const refused = await limiter.tryAcquire({ ...USER, consume: { req: 1, ses: 1 } });
        expect(refused.granted).toBe(false);
      },
    );

    inTime(
      "a store fails in any step of an acquire: allowed or blocked alike (A088, A185)",
      async () => {
        const faults = new Faults();
        const subject = await store.open({ ...IMPATIENT, faults });
        const { limiter, repo } = subject;
        await repo.limits.setSystem(["rpm:100"]);
        await repo.entities.create({ id: "team" });
        await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
        // The reads of a cold start, then each write.
        for (const operation of ["getMany", "put"] as const) {
          repo.limits.invalidateCache();
          faults.rule = (request) => (request.operation === operation ? "throttled" : undefined);
          await unavailable(() => limiter.acquire(RPM));
          expect((await limiter.acquire({ ...RPM, onUnavailable: "allow" })).degraded).toBe(true);
        }
        faults.rule = () => undefined;
        await limiter.acquire(RPM);
        for (const entity of ["user-1", "team"]) {
          const fails = isBucketOf(entity, "update");
          faults.rule = (request) => (fails(request) ? "throttled" : undefined);
          await unavailable(() => limiter.acquire(RPM));
          expect((await limiter.acquire({ ...RPM, onUnavailable: "allow" })).degraded).toBe(true);
        }
        faults.rule = () => undefined;
        await repo.close();
        const after = await store.another(subject);
        for (const entity of ["user-1", "team"]) {
          expect(await milliOf(after, entity, RESOURCE, "rpm")).toMatchObject({ consumed: 10_000 });
        }
      },
    );

    inTime(
      "bad input, permissions and missing tables are errors in both modes, not an outage (A185)",
      async () => {
        const faults = new Faults();
        const subject = await store.open({ ...IMPATIENT, faults, onUnavailable: "allow" });
        const { limiter, repo } = subject;
        await repo.limits.setSystem(["rpm:100"]);
        await limiter.acquire(RPM);
        for (const [fault, name] of [
          ["denied", "InfrastructureError"],
          ["missing", "InfrastructureNotFoundError"],
        ] as const) {
          faults.rule = () => fault;
          const error = await failureOf(limiter.acquire({ ...RPM, onUnavailable: "allow" }));
          expect(error).toBeInstanceOf(InfrastructureError);
          expect(error).not.toBeInstanceOf(RateLimiterUnavailable);
          expect(error).toMatchObject({ name });
        }
        expect(await failureOf(limiter.acquire({ ...RPM, consume: { tpm: 1 } }))).toMatchObject({
          name: "ValidationError",
        });
      },
    );

    inTime("a lease that consumes more may be allowed in an outage, too (A185)", async () => {
      const faults = new Faults();
      const subject = await store.open({ ...IMPATIENT, faults });
      const { limiter, repo } = subject;
      await repo.limits.setSystem(["rpm:100"]);
      const allowed = await limiter.acquire({ ...RPM, onUnavailable: "allow" });
      const blocked = await limiter.acquire(RPM);
      faults.rule = () => "throttled";
      await allowed.consume({ rpm: 5 });
      expect(allowed.consumed).toEqual({ rpm: 10 });
      await unavailable(() => blocked.consume({ rpm: 5 }));
      faults.rule = () => undefined;
      await Promise.all([allowed.rollback(), blocked.rollback()]);
      expect(await milliOf(subject, "user-1", RESOURCE, "rpm")).toMatchObject({ consumed: 0 });
    });

    inTime("a lease refunds nothing of what passed uncounted, and counts it as used", async () => {
      const faults = new Faults();
      const subject = await store.open({ ...IMPATIENT, faults });
      const { limiter, repo } = subject;
      await repo.limits.setSystem(["rpm:100"]);
      const lease = await limiter.acquire({ ...RPM, onUnavailable: "allow" });
      faults.rule = () => "throttled";
      await lease.consume({ rpm: 50 });
      faults.rule = () => undefined;
      lease.release({ rpm: 20 });
      lease.adjust({ rpm: -34 });
      expect(lease.consumed).toEqual({ rpm: 6 });
      expect(() => lease.release({ rpm: 7 })).toThrow('the lease has consumed 6 of "rpm"');
      await lease.commit();
      expect(await milliOf(subject, "user-1", RESOURCE, "rpm")).toMatchObject({ consumed: 6000 });
    });

    inTime.each(["hang", "lost"] as const)(
      "an adjustment whose request met %s never refunds what may not have been consumed",
      async (fault) => {
        const faults = new Faults();
        const subject = await store.open({ ...IMPATIENT, faults });
        const { limiter, repo } = subject;
        await repo.limits.setSystem(["rpm:1000"]);
        await limiter.acquire({ ...USER, consume: { rpm: 600 } });
        const work = limiter.run(RPM, async (lease) => {
          lease.adjust({ rpm: 300 });
          faults.next(fault, isBucketOf("user-1", "update"));
          await lease.flush();
        });
        await unavailable(() => work);
        const written = fault === "lost" ? 300_000 : 0;
        expect(await milliOf(subject, "user-1", RESOURCE, "rpm")).toMatchObject({
          consumed: 600_000 + written,
        });
      },
    );
  });

  describeLimiterStores("what to do while the store is down", (store) => {
    const whereItFails = itUnless(store.name === "memory" ? "memory does not fail" : store.slow);

    whereItFails(
      "the mode is that of the call, else of the limiter, else of the repository (A185)",
      async () => {
        await using broken = await breakable(store, "throttled", { onUnavailable: "allow" });
        const { subject } = broken;
        await subject.repo.limits.setSystem(["rpm:100"], { onUnavailable: "block" });
        await subject.limiter.acquire(RPM);
        const allowing = withOptions(subject, { onUnavailable: "allow" });
        const blocking = withOptions(subject, { onUnavailable: "block" });
        await broken.fail();
        const passes = async (limiter: RateLimiter, onUnavailable?: "allow" | "block") => {
          const decision = await limiter
            .tryAcquire(onUnavailable === undefined ? RPM : { ...RPM, onUnavailable })
            .catch((error: unknown) => error);
          return !(decision instanceof RateLimiterUnavailable);
        };
        const answers = await Promise.all([
          passes(allowing),
          passes(allowing, "block"),
          passes(blocking),
          passes(blocking, "allow"),
          passes(subject.limiter),
          passes(subject.limiter, "block"),
        ]);
        await broken.repair();
        expect(answers).toEqual([true, false, false, true, true, false]);
      },
    );

    whereItFails(
      "the stored mode applies as it was seen last; nothing stored means block (A186)",
      async () => {
        await using broken = await breakable(store, "throttled");
        const { subject } = broken;
        const { limiter, repo, time } = subject;
        await repo.limits.setSystem(["rpm:100"]);
        await limiter.acquire(RPM);
        await broken.fail();
        await unavailable(() => limiter.acquire(RPM));
        await broken.repair();
        await limiter.acquire(RPM);
        await repo.limits.setSystem(["rpm:100"], { onUnavailable: "allow" });
        await limiter.acquire(RPM);
        const { hits } = repo.limits.cacheStats();
        await limiter.acquire({ ...RPM, consume: { rpm: 1 } });
        expect(repo.limits.cacheStats().hits).toBeGreaterThan(hits);
        await broken.fail();
        expect((await limiter.acquire(RPM)).degraded).toBe(true);
        // Long after, when nothing else that was remembered counts any more.
        time.advance(600_000);
        expect((await limiter.acquire(RPM)).degraded).toBe(true);
        await broken.repair();
      },
    );

    whereItFails(
      "the stored mode is known to all limiters of a namespace, and to the one that stored it",
      async () => {
        await using broken = await breakable(store, "throttled");
        const { repo } = broken.subject;
        await repo.limits.setSystem(["rpm:100"]);
        const scoped = async () => new RateLimiter(await repo.namespace(repo.namespaceName));
        const [one, two] = [await scoped(), await scoped()];
        await one.acquire(RPM);
        await two.acquire(RPM);
        await repo.limits.setSystem(["rpm:100"], { onUnavailable: "allow" });
        await broken.fail();
        const leases = [await one.acquire(RPM), await two.acquire(RPM)];
        await broken.repair();
        expect(leases.map(({ degraded }) => degraded)).toEqual([true, true]);
        await repo.limits.deleteSystem();
        await repo.limits.setResource(RESOURCE, ["rpm:100"]);
        await broken.fail();
        await unavailable(() => two.acquire(RPM));
        await broken.repair();
      },
    );

    whereItFails("the mode is block where no client has read the setting (A186)", async () => {
      await using broken = await breakable(store, "throttled");
      const { subject } = broken;
      const limits = ["rpm:100"];
      await broken.fail();
      await unavailable(() => subject.limiter.acquire({ ...RPM, limits }));
      await broken.repair();
    });
  });

  describeLimiterStores("isAvailable", (store) => {
    it("isAvailable is true while the store answers (A187)", async () => {
      const { limiter } = await store.open();
      expect(await limiter.isAvailable()).toBe(true);
      expect(await limiter.isAvailable({ timeoutMs: 20_000 })).toBe(true);
    });

    itUnless(!store.distributed && "an embedded store has no requests that fail or hang")(
      "isAvailable is false when it fails or hangs, in time (A187)",
      async () => {
        const faults = new Faults();
        const { limiter } = await store.open({ faults });
        for (const failure of ["broken", "hang", "drip", "denied", "missing"] as const) {
          faults.rule = () => failure;
          const startedAt = performance.now();
          expect(await limiter.isAvailable({ timeoutMs: 100 })).toBe(false);
          expect(performance.now() - startedAt).toBeLessThan(100 + SLACK_MS);
        }
        faults.rule = () => undefined;
        expect(await limiter.isAvailable()).toBe(true);
      },
    );
  });
});
