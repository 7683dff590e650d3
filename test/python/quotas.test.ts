/** Quotas and sessions of either library, enforced by the other, with Python 0.17 on one table. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { expect, it } from "vitest";
import { SharedTable } from "./shared-table.ts";

const E = "user-1";
const R = "gpt-4";
const CALL = { entityId: E, resource: R };
const YEARLY = { $quota: { name: "req", amount: 10, cron: "0 0 1 1 *", tz: "Asia/Tokyo" } };
const SESSION = { $quota: { name: "ses", amount: 10, reset_after: { $seconds: 18_000 } } };
/** Twenty a day, and ten in a window that is always open. */
const SCHEDULED = {
  $limit: {
    ...{ name: "rpd", capacity: 20, refill_amount: 20, refill_period_seconds: 86_400 },
    schedule: { $schedule: [{ cron: "* * * * *", capacity: 10 }] },
  },
};

describeEngines("quotas of both libraries, next to Python 0.17.0", (engine) => {
  const table = new SharedTable(engine, "0.17.0");
  const claimLambda = () =>
    table.items.update({ PK: "_/SYSTEM#", SK: "#VERSION" }, { set: { lambda_version: "0.17.0" } });

  it("a quota that ours stores is enforced by Python, and what it consumed is seen by ours", async () => {
    const { python, repo, limiter } = await table.open();
    await repo.limits.setResource(R, ["req:10/year Asia/Tokyo", "rpm:100"]);
    expect(await python.grants(E, R, { req: 7, rpm: 1 })).toBe(true);
    expect(await python.grants(E, R, { req: 4 })).toBe(false);
    await limiter.acquire({ ...CALL, consume: { req: 2 } });
    const refused = await limiter.tryAcquire({ ...CALL, consume: { req: 2 } });
    expect(refused.granted).toBe(false);
    if (!refused.granted) {
      expect(refused.violations).toMatchObject([{ kind: "quota", available: 1, used: 9 }]);
    }
    expect(await python.grants(E, R, { req: 1 })).toBe(true);
    expect(await python.grants(E, R, { req: 1 })).toBe(false);
  });

  it("a quota that Python stores is enforced by ours", async () => {
    const { python, repo, limiter } = await table.open();
    await python.repo("set_resource_defaults", [R, [YEARLY]]);
    expect((await repo.limits.getResource(R)).map(String)).toEqual(["req:10/year Asia/Tokyo"]);
    await limiter.acquire({ ...CALL, consume: { req: 6 } });
    expect(await python.grants(E, R, { req: 5 })).toBe(false);
    expect(await python.grants(E, R, { req: 4 })).toBe(true);
    expect((await limiter.tryAcquire({ ...CALL, consume: { req: 1 } })).granted).toBe(false);
  });

  it("a session that ours stores is enforced by Python, and the other way round", async () => {
    await claimLambda();
    const { python, repo, limiter } = await table.open();
    await repo.limits.setResource(R, ["ses:10/session:5hour"]);
    await limiter.acquire({ ...CALL, consume: { ses: 6 } });
    expect(await python.grants(E, R, { ses: 5 })).toBe(false);
    expect(await python.grants(E, R, { ses: 4 })).toBe(true);
    expect((await limiter.tryAcquire({ ...CALL, consume: { ses: 1 } })).granted).toBe(false);

    await python.repo("set_resource_defaults", ["other", [SESSION]]);
    expect((await repo.limits.getResource("other")).map(String)).toEqual(["ses:10/session:5hour"]);
    expect(await python.grants(E, "other", { ses: 6 })).toBe(true);
    const call = { entityId: E, resource: "other" };
    expect((await limiter.tryAcquire({ ...call, consume: { ses: 5 } })).granted).toBe(false);
    expect((await limiter.tryAcquire({ ...call, consume: { ses: 4 } })).granted).toBe(true);
    expect(await python.grants(E, "other", { ses: 1 })).toBe(false);
  });

  it("windows that ours stores are enforced by Python, and the other way round", async () => {
    const { python, repo, limiter } = await table.open();
    const always = [{ when: "0-24", timeZone: "Asia/Tokyo", scale: 0.5 }];
    const daily = Limit.parse("rpd:20/day").withSchedule(always);
    await repo.limits.setResource(R, [daily, "rpm:100"]);
    expect(await python.grants(E, R, { rpd: 7, rpm: 1 })).toBe(true);
    expect(await python.grants(E, R, { rpd: 4 })).toBe(false);
    const lease = await limiter.acquire({ ...CALL, consume: { rpd: 2 } });
    expect(lease.statuses.find(({ limitName }) => limitName === "rpd")).toMatchObject({
      available: 1,
      limit: { capacity: 10 },
    });
    expect(await python.grants(E, R, { rpd: 2 })).toBe(false);
    expect(await python.grants(E, R, { rpd: 1 })).toBe(true);

    await python.repo("set_resource_defaults", ["other", [SCHEDULED]]);
    const [stored] = await repo.limits.getResource("other");
    expect(stored?.toJSON().schedule).toEqual([{ cron: "* * * * *", capacity: 10 }]);
    const call = { entityId: E, resource: "other" };
    await limiter.acquire({ ...call, consume: { rpd: 6 } });
    expect(await python.grants(E, "other", { rpd: 5 })).toBe(false);
    expect(await python.grants(E, "other", { rpd: 4 })).toBe(true);
    expect((await limiter.tryAcquire({ ...call, consume: { rpd: 1 } })).granted).toBe(false);
  });
});
