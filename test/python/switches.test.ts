/** Switches, bypasses, soft limits, cascade policies and moves, with Python 0.17 on one table. */

import { ResourceDisabled } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { expect, it } from "vitest";
import { limit, type PythonError } from "./library.ts";
import { type Both, SharedTable, sum } from "./shared-table.ts";
import { aggregateByOurs, aggregateByPython } from "./usage.ts";

const E = "user-1";
const R = "gpt-4";
const CALL = { entityId: E, resource: R };

async function typeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "granted",
    (error: PythonError) => error.type,
  );
}

/** As a stack of the Python library says: otherwise it refuses to store what is new. */
async function claimPythonLambda(table: SharedTable): Promise<void> {
  const key = { PK: "_/SYSTEM#", SK: "#VERSION" };
  await table.items.update(key, { set: { lambda_version: "0.17.0" } });
}

describeEngines("settings of both libraries, next to Python 0.17.0", (engine) => {
  const table = new SharedTable(engine, "0.17.0");
  const consumed = async (both: Both, id: string) =>
    sum(await table.shards(both, id, R), "b_rpd_tc");

  it("what ours switches off is refused by Python, on live buckets and on new ones", async () => {
    const both = await table.open();
    const { python, repo, limiter } = both;
    await repo.limits.setResource(R, ["rpd:100/day"]);
    await python.acquire(E, R, { rpd: 1 });
    await limiter.acquire({ entityId: "other", resource: R, consume: { rpd: 1 } });
    expect(await repo.limits.disable({ resource: R })).toEqual({ stampedBuckets: 2 });
    for (const id of [E, "other", "new"]) {
      expect(await typeOf(python.acquire(id, R, { rpd: 1 }))).toBe("ResourceDisabled");
    }
    expect(await python.repo("get_resource_disabled", [R])).toBe(true);
    await repo.limits.enable({ entityId: E, resource: R });
    expect(await typeOf(python.acquire(E, R, { rpd: 1 }))).toBe("granted");
    await python.repo("clear_entity_disabled", [E], { resource: R });
    const fresh = await table.another(both);
    expect(await failureOf(fresh.acquire({ ...CALL, consume: { rpd: 1 } }))).toBeInstanceOf(
      ResourceDisabled,
    );
    await repo.limits.clear({ resource: R });
    expect(await typeOf(python.acquire("new", R, { rpd: 1 }))).toBe("granted");
  });

  it("a bypass of either library is followed by the other, and counts without a balance", async () => {
    await claimPythonLambda(table);
    const both = await table.open();
    const { python, repo, limiter } = both;
    await repo.limits.setResource(R, ["rpd:10/day"]);
    await limiter.acquire({ ...CALL, consume: { rpd: 9 } });
    await repo.limits.bypass(CALL);
    expect(await python.grants(E, R, { rpd: 50 })).toBe(true);
    expect((await limiter.acquire({ ...CALL, consume: { rpd: 50 } })).bypassed).toBe(true);
    expect(await table.shards(both, E, R)).toMatchObject([{ b_rpd_tc: 109_000, b_rpd_tk: 1000 }]);
    await repo.limits.clear(CALL);
    expect(await python.grants(E, R, { rpd: 50 })).toBe(false);
    await python.repo("bypass_entity", [E]);
    const fresh = await table.another(both);
    expect((await fresh.acquire({ ...CALL, consume: { rpd: 50 } })).bypassed).toBe(true);
    expect(await repo.limits.state({ entityId: E })).toMatchObject({ own: "bypass" });
  });

  it("a soft limit of either library is consumed into debt by the other", async () => {
    await claimPythonLambda(table);
    const both = await table.open();
    const { python, repo, limiter } = both;
    await repo.limits.setResource(R, ["rpd:10/day soft"]);
    expect(await python.grants(E, R, { rpd: 25 })).toBe(true);
    expect((await limiter.acquire({ ...CALL, consume: { rpd: 25 } })).overdrawn).toEqual(["rpd"]);
    expect(await python.grants(E, R, { rpd: 25 })).toBe(true);
    expect(await consumed(both, E)).toBe(75_000);
    const hard = { $limit: { ...limit("rpd", 10, 86_400).$limit, soft: true } };
    await python.repo("set_resource_defaults", ["other", [hard]]);
    const call = { entityId: E, resource: "other", consume: { rpd: 11 } };
    expect((await limiter.acquire(call)).overdrawn).toEqual(["rpd"]);
    // Also on a bucket that ours has made or changed, and under a bypass.
    expect(await python.grants(E, "other", { rpd: 5 })).toBe(true);
    await repo.limits.setResource("free", ["rpd:10/day"]);
    await repo.limits.bypass({ resource: "free" });
    await limiter.acquire({ ...call, resource: "free" });
    expect(await python.grants(E, "free", { rpd: 50 })).toBe(true);
    await repo.limits.setResource("late", ["rpd:10/day"]);
    await limiter.acquire({ ...call, resource: "late", consume: { rpd: 10 } });
    await repo.limits.setResource("late", ["rpd:10/day soft"]);
    expect(await python.grants(E, "late", { rpd: 50 })).toBe(true);
    await repo.limits.setResource("late", ["rpd:10/day"]);
    expect(await python.grants(E, "late", { rpd: 50 })).toBe(false);
  });

  it.each([
    // Python's aggregator does not count the write that creates a bucket.
    ["Python's", aggregateByPython, { rpd: 2 }],
    ["our", aggregateByOurs, { rpd: 3 }],
  ] as const)(
    "%s aggregator counts overdrawn limits, and both read it",
    async (_, aggregate, expected) => {
      await claimPythonLambda(table);
      const both = await table.open();
      const { python, repo, limiter } = both;
      await repo.limits.setResource(R, ["rpd:10/day soft"]);
      await python.acquire(E, R, { rpd: 25 });
      await limiter.acquire({ ...CALL, consume: { rpd: 25 } });
      await python.acquire(E, R, { rpd: 25 });
      await aggregate(table, both);
      const { snapshots } = await repo.usage.snapshots({ ...CALL, window: "hourly" });
      const [theirs] = await python.repo<[{ overdrawn: object }[], unknown]>(
        "get_usage_snapshots",
        [],
        { entity_id: E, resource: R, window_type: "hourly" },
      );
      const read = [...snapshots, ...theirs].map(({ overdrawn }) => overdrawn);
      expect(read).toEqual([expected, expected]);
    },
  );

  it("a cascade policy of ours is followed by Python, on live buckets and on new ones", async () => {
    await claimPythonLambda(table);
    const both = await table.open();
    const { python, repo, limiter } = both;
    await repo.limits.setResource(R, ["rpd:100/day"]);
    await repo.entities.create({ id: "org" });
    for (const id of [E, "new"]) await repo.entities.create({ id, parentId: "org" });
    await limiter.acquire({ ...CALL, consume: { rpd: 1 } });
    await python.acquire(E, R, { rpd: 1 });
    await repo.limits.setCascade({ resource: R }, true);
    for (const id of [E, "new"]) {
      await python.acquire(id, R, { rpd: 1 });
      await limiter.acquire({ entityId: id, resource: R, consume: { rpd: 1 } });
    }
    expect(await consumed(both, "org")).toBe(4000);
    await repo.limits.setCascade({ resource: R }, null);
    await python.acquire(E, R, { rpd: 1 });
    await limiter.acquire({ ...CALL, consume: { rpd: 1 } });
    expect(await consumed(both, "org")).toBe(4000);
  });

  it("a move by either library is followed by the other", async () => {
    await claimPythonLambda(table);
    const both = await table.open();
    const { python, repo, limiter } = both;
    await repo.limits.setResource(R, ["rpd:100/day"]);
    for (const id of ["org-a", "org-b"]) await repo.entities.create({ id });
    await repo.entities.create({ id: E, parentId: "org-a", cascade: true });
    await limiter.acquire({ ...CALL, consume: { rpd: 1 } });
    await python.acquire(E, R, { rpd: 1 });
    await repo.entities.setParent(E, "org-b");
    await python.acquire(E, R, { rpd: 1 });
    await limiter.acquire({ ...CALL, consume: { rpd: 1 } });
    expect([await consumed(both, "org-a"), await consumed(both, "org-b")]).toEqual([2000, 2000]);
    await python.repo("set_parent", [E, "org-a"]);
    await limiter.acquire({ ...CALL, consume: { rpd: 1 } });
    expect([await consumed(both, "org-a"), await consumed(both, "org-b")]).toEqual([3000, 2000]);
    await repo.entities.setParent(E, null);
    await python.acquire(E, R, { rpd: 1 });
    expect([await consumed(both, "org-a"), await consumed(both, "org-b")]).toEqual([3000, 2000]);
  });

  it("a reset or top-up of either library is seen by the other, and its key counts once", async () => {
    const both = await table.open();
    const { python, repo, limiter } = both;
    await repo.limits.setResource(R, ["rpd:100/day"]);
    await python.acquire(E, R, { rpd: 100 });
    const order = { ...CALL, amounts: { rpd: 30 }, idempotencyKey: "order-1" };
    expect((await repo.buckets.topUp(order)).amounts).toEqual({ rpd: 30 });
    const kept = { idempotency_key: "order-1" };
    const again = await python.repo("top_up", [E, R, { rpd: 30 }], kept);
    expect(again).toMatchObject({ shards: 1, amounts: { rpd: 30 } });
    expect(await python.grants(E, R, { rpd: 31 })).toBe(false);
    expect(await python.grants(E, R, { rpd: 30 })).toBe(true);
    const made = await python.repo<{ shards: number; amounts: Record<string, number> }>(
      "reset_bucket",
      [E, R],
      { idempotency_key: "again" },
    );
    expect(await limiter.available(CALL)).toEqual({ rpd: 100 });
    const { shards, amounts } = await repo.buckets.reset({ ...CALL, idempotencyKey: "again" });
    expect([shards, amounts]).toEqual([1, made.amounts]);
    // A part of a token may have accrued since all of it was consumed.
    expect([99, 100]).toContain(amounts["rpd"]);
    await limiter.acquire({ ...CALL, consume: { rpd: 100 } });
    await repo.buckets.reset(CALL);
    // A client of Python refuses by what it knew for up to a second.
    const fresh = await table.anotherPython(both);
    expect(await fresh.grants(E, R, { rpd: 100 })).toBe(true);
    expect(await consumed(both, E)).toBe(330_000);
  });
});
