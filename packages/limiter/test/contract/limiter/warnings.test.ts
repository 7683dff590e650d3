/** Failures behind a call that was answered are warnings. */

import { once } from "node:events";
import type { LimiterWarning } from "@zae-limiter/limiter/acquire/events.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { itUnless } from "@zae-limiter/test-support/unless.ts";
import { describe, expect } from "vitest";
import { breakable, IMPATIENT, unavailable } from "./breakable.ts";
import { Faults } from "./faults.ts";
import { describeLimiterStores, milliOf } from "./limiter-stores.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };
const RPM = { ...USER, consume: { rpm: 10 } };

// The failures happen in front of the store, so a fast store is enough: DynamoDB Local would need
// more time for calls that go well than the failing calls are given.
describe("while the store is down", () => {
  describeLimiterStores("what could not be given back", (store) => {
    const whereItFails = itUnless(store.name === "memory" ? "memory does not fail" : store.slow);
    /** Pauses between attempts are random; these are short. */
    const random = () => Math.random() / 50;

    whereItFails(
      "a failed refund is reported as a warning, and never hides the error of the work (A081)",
      async () => {
        const warnings: LimiterWarning[] = [];
        const onWarning = (warning: LimiterWarning) => warnings.push(warning);
        await using broken = await breakable(store, "throttled", { onWarning, random });
        const { subject } = broken;
        const { limiter, repo } = subject;
        await repo.limits.setSystem(["rpm:100"]);
        const error = new Error("of the work");
        const run = limiter.run(RPM, async () => {
          await broken.fail();
          throw error;
        });
        expect(await failureOf(run)).toBe(error);
        await expect.poll(() => warnings.length, { timeout: 10_000 }).toBe(1);
        await broken.repair();
        expect(warnings).toEqual([
          expect.objectContaining({
            kind: "restore_failed",
            entityId: "user-1",
            resource: RESOURCE,
            shard: 0,
            amountsMilli: { rpm: 10_000 },
            cause: expect.any(RateLimiterUnavailable),
          }),
        ]);
        // It stays consumed: the safe side.
        await limiter.acquire({ ...USER, consume: { rpm: 1 } });
        expect(await milliOf(subject, "user-1", RESOURCE, "rpm")).toMatchObject({
          consumed: 11_000,
        });
      },
    );

    whereItFails(
      "a failed refund is repeated when the store answers again, without a warning",
      async () => {
        const warnings: LimiterWarning[] = [];
        const onWarning = (warning: LimiterWarning) => warnings.push(warning);
        await using broken = await breakable(store, "throttled", { onWarning, random });
        const { subject } = broken;
        const { limiter, repo } = subject;
        await repo.limits.setSystem(["rpm:100"]);
        const lease = await limiter.acquire(RPM);
        await broken.fail();
        await lease.rollback();
        await broken.repair();
        const consumed = async () => (await milliOf(subject, "user-1", RESOURCE, "rpm"))?.consumed;
        await expect.poll(consumed, { timeout: 5000 }).toBe(0);
        expect(warnings).toEqual([]);
      },
    );

    itUnless(store.name !== "sqlite" && "only a file can be locked")(
      "a refund that failed is waited for when the limiter is closed",
      async () => {
        await using broken = await breakable(store, "throttled", { random });
        const { subject } = broken;
        const { limiter, repo } = subject;
        await repo.limits.setSystem(["rpm:100"]);
        const other = await store.another(subject);
        const lease = await limiter.acquire(RPM);
        await broken.fail();
        await lease.rollback();
        const closed = limiter.close();
        await broken.repair();
        await closed;
        expect(await milliOf(other, "user-1", RESOURCE, "rpm")).toMatchObject({ consumed: 0 });
      },
    );

    whereItFails(
      "a failed adjustment is an error of the commit, and with allow a warning (A080)",
      async () => {
        const warnings: LimiterWarning[] = [];
        const onWarning = (warning: LimiterWarning) => warnings.push(warning);
        await using broken = await breakable(store, "throttled", { onWarning });
        const { subject } = broken;
        const { limiter, repo } = subject;
        await repo.limits.setSystem(["rpm:100"]);
        const blocked = await limiter.acquire(RPM);
        const allowed = await limiter.acquire({ ...RPM, onUnavailable: "allow" });
        const flushed = await limiter.acquire(RPM);
        for (const lease of [blocked, allowed, flushed]) lease.adjust({ rpm: 5 });
        await broken.fail();
        await unavailable(() => blocked.commit());
        await unavailable(() => flushed.flush());
        expect(warnings).toEqual([]);
        await allowed.commit();
        await broken.repair();
        expect(warnings).toEqual([
          expect.objectContaining({ kind: "adjustment_failed", entityId: "user-1" }),
        ]);
        // Nothing was written, so what was to be flushed is still to be written.
        await flushed.commit();
        expect(await milliOf(subject, "user-1", RESOURCE, "rpm")).toMatchObject({
          consumed: 35_000,
        });
      },
    );

    whereItFails(
      "run returns what the work returned when its adjustment cannot be written, with a warning",
      async () => {
        const warnings: LimiterWarning[] = [];
        const onWarning = (warning: LimiterWarning) => warnings.push(warning);
        await using broken = await breakable(store, "throttled", { onWarning });
        const { limiter, repo } = broken.subject;
        await repo.limits.setSystem(["rpm:100"]);
        const answer = await limiter.run(RPM, async (lease) => {
          lease.adjust({ rpm: 5 });
          await broken.fail();
          return "the answer";
        });
        await broken.repair();
        expect(answer).toBe("the answer");
        const cause = expect.any(RateLimiterUnavailable);
        expect(warnings).toEqual([
          expect.objectContaining({ kind: "adjustment_failed", entityId: "user-1", cause }),
        ]);
      },
    );

    itUnless(store.distributed ? store.slow : "an embedded store cancels no write")(
      "a refund that failed is not repeated when the store will not have it (A087)",
      async () => {
        const warnings: LimiterWarning[] = [];
        const faults = new Faults();
        const onWarning = (warning: LimiterWarning) => warnings.push(warning);
        const { limiter } = await store.open({ ...IMPATIENT, faults, onWarning });
        const lease = await limiter.acquire({ ...RPM, limits: ["rpm:100"] });
        faults.requests.splice(0);
        faults.rule = (request) => (request.operation === "transact" ? "cancelled" : undefined);
        await lease.rollback();
        await limiter.close();
        expect(faults.requests.filter(({ operation }) => operation === "transact")).toHaveLength(1);
        expect(warnings).toEqual([expect.objectContaining({ kind: "restore_failed" })]);
      },
    );

    itUnless(store.name !== "items" && "the test holds every request, which needs items in memory")(
      "a refund that failed is a warning of the process without a listener",
      async () => {
        const faults = new Faults();
        const { limiter } = await store.open({ ...IMPATIENT, faults });
        const request = { ...RPM, limits: ["rpm:100"] };
        const restored = await limiter.acquire(request);
        const adjusted = await limiter.acquire({ ...request, onUnavailable: "allow" });
        faults.rule = () => "cancelled";
        const first = once(process, "warning");
        await restored.rollback();
        expect((await first)[0]).toMatchObject({ code: "ZAEL_RESTORE_FAILED" });
        faults.rule = () => "throttled";
        const second = once(process, "warning");
        adjusted.adjust({ rpm: 1 });
        await adjusted.commit();
        expect((await second)[0]).toMatchObject({ code: "ZAEL_ADJUSTMENT_FAILED" });
      },
    );
  });
});
