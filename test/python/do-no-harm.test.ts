/** Settings of Python 0.17 that this version does not enforce: refused by name, never undone. */

import { ResourceDisabled } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { expect, it } from "vitest";
import { limit, type PythonError } from "./library.ts";
import { type Both, SharedTable, sum } from "./shared-table.ts";

const E = "user-1";
const R = "gpt-4";
const CALL = { entityId: E, resource: R };
const HOURLY = { $quota: { name: "quota", amount: 50, cron: "0 0 1 1 *" } };

/** As a stack of the Python library says: otherwise it refuses to store what is new. */
async function claimPythonLambda(table: SharedTable): Promise<void> {
  const key = { PK: "_/SYSTEM#", SK: "#VERSION" };
  await table.items.update(key, { set: { lambda_version: "0.17.0" } });
}

describeEngines("next to Python 0.17.0", (engine) => {
  const table = new SharedTable(engine, "0.17.0");

  async function buckets(both: Both) {
    return table.shards(both, E, R);
  }

  it("a resource that Python switches off is refused by ours, and granted when it is on (H1)", async () => {
    const both = await table.open(60);
    const { python, limiter } = both;
    await python.repo("set_resource_defaults", [R, [limit("rpm", 100)]]);
    await limiter.acquire({ ...CALL, consume: { rpm: 1 } });
    expect(await python.repo("disable_resource", [R])).toBe(1);
    const error = await failureOf(limiter.acquire({ ...CALL, consume: { rpm: 1 } }));
    expect(error).toBeInstanceOf(ResourceDisabled);
    const fresh = await table.another(both);
    const other = { entityId: "user-2", resource: R, consume: { rpm: 1 } };
    expect(await failureOf(fresh.acquire(other))).toBeInstanceOf(ResourceDisabled);
    await python.repo("enable_resource", [R]);
    await (await table.another(both)).acquire({ ...CALL, consume: { rpm: 1 } });
    expect(await python.grants(E, R, { rpm: 1 })).toBe(true);
  });

  it("a cascade policy is followed by ours, on old and new buckets, and stays (H2)", async () => {
    await claimPythonLambda(table);
    const both = await table.open();
    const { python, limiter } = both;
    await python.repo("set_resource_defaults", [R, [limit("rpm", 100)]]);
    await python.repo("create_entity", ["org"]);
    await python.repo("create_entity", [E], { parent_id: "org" });
    await python.repo("create_entity", ["new"], { parent_id: "org" });
    await limiter.acquire({ ...CALL, consume: { rpm: 1 } });
    expect(await table.shards(both, "org", R)).toEqual([]);
    await python.repo("set_resource_cascade", [R, true]);
    for (const entityId of [E, "new", E, "new"]) {
      const fresh = await table.another(both);
      await fresh.acquire({ entityId, resource: R, consume: { rpm: 1 } });
      await python.acquire(entityId, R, { rpm: 1 });
    }
    expect(sum(await table.shards(both, "org", R), "b_rpm_tc")).toBe(8000);
    const [own] = await buckets(both);
    expect(own).toMatchObject({ cascade: true, parent_id: "org" });
  });

  it("a calendar quota is enforced, and survives what ours does next to it (H3, H10)", async () => {
    const both = await table.open();
    const { python, limiter } = both;
    await python.repo("set_resource_defaults", [R, [limit("rpm", 100), HOURLY]]);
    await python.acquire(E, R, { rpm: 1, quota: 20 });
    for (let round = 0; round < 5; round += 1) {
      await limiter.acquire({ ...CALL, consume: { rpm: 1 } });
    }
    await limiter.acquire({ ...CALL, consume: { quota: 1 } });
    expect(await python.grants(E, R, { quota: 30 })).toBe(false);
    expect(await python.grants(E, R, { quota: 29, rpm: 1 })).toBe(true);
    expect((await buckets(both))[0]).toMatchObject({ b_quota_tc: 50_000, b_rpm_tc: 7000 });
  });

  it("a table that asks for a client newer than 0.14 is opened by ours (H4)", async () => {
    await claimPythonLambda(table);
    const both = await table.open();
    const session = { $quota: { name: "session", amount: 9, reset_after: { $seconds: 60 } } };
    await both.python.repo("set_resource_defaults", [R, [limit("rpm", 100), session]]);
    const version = await both.repo.version();
    expect(["0.15.0", "0.16.0", "0.17.0"]).toContain(version?.clientMinVersion);
    const fresh = await table.another(both);
    await fresh.acquire({ ...CALL, consume: { rpm: 1 } });
    await fresh.acquire({ ...CALL, consume: { session: 1 } });
  });

  it("a limit with a schedule keeps its windows next to what ours consumes (H5)", async () => {
    const both = await table.open();
    const { python, limiter } = both;
    const schedule = { $schedule: [{ cron: "* 9-17 * * *", scale: 0.5 }] };
    const scheduled = { $limit: { ...limit("rpm", 100).$limit, schedule } };
    await python.repo("set_resource_defaults", [R, [scheduled, limit("tpm", 100)]]);
    await python.acquire(E, R, { rpm: 1, tpm: 1 });
    const [before] = await buckets(both);
    await limiter.acquire({ ...CALL, consume: { tpm: 1 } });
    await limiter.acquire({ ...CALL, consume: { rpm: 1 } });
    const [after] = await buckets(both);
    for (const name of ["sched", "b_rpm_sched", "b_tpm_sched", "b_rpm_cp", "b_rpm_ra"]) {
      expect(after?.[name]).toEqual(before?.[name]);
    }
    await python.acquire(E, R, { rpm: 1, tpm: 1 });
  });

  it("a session window goes on next to what ours consumes (H6)", async () => {
    await claimPythonLambda(table);
    const both = await table.open();
    const { python, limiter } = both;
    const session = { $quota: { name: "session", amount: 9, reset_after: { $seconds: 3600 } } };
    await python.repo("set_resource_defaults", [R, [limit("rpm", 100), session]]);
    await python.acquire(E, R, { rpm: 1, session: 5 });
    const [before] = await buckets(both);
    await limiter.acquire({ ...CALL, consume: { rpm: 1 } });
    const [after] = await buckets(both);
    for (const field of ["ws", "wa", "rsa", "tk", "tc"]) {
      expect(after?.[`b_session_${field}`]).toEqual(before?.[`b_session_${field}`]);
    }
    expect(await python.grants(E, R, { session: 5 })).toBe(false);
    expect(await python.grants(E, R, { session: 4 })).toBe(true);
  });

  it("ours sets no time to live where Python sets none, and shortens none of a quota (H9)", async () => {
    const both = await table.open();
    const { python, limiter } = both;
    await python.repo("set_limits", [E, [limit("rpm", 100)]]);
    await python.acquire(E, R, { rpm: 1 });
    await limiter.acquire({ ...CALL, consume: { rpm: 1 } });
    expect((await buckets(both))[0]?.ttl).toBeUndefined();
    await python.repo("set_resource_defaults", ["other", [limit("rpm", 100), HOURLY]]);
    await python.acquire("user-2", "other", { rpm: 1, quota: 1 });
    const [before] = await table.shards(both, "user-2", "other");
    await limiter.acquire({ entityId: "user-2", resource: "other", consume: { rpm: 1 } });
    const [after] = await table.shards(both, "user-2", "other");
    expect(after?.ttl).toEqual(before?.ttl);
  });

  it("limits that ours sets leave the flags of the level, and Python reads its quotas (H7)", async () => {
    const { python, repo } = await table.open();
    await python.repo("set_resource_defaults", [R, [limit("rpm", 100), HOURLY]]);
    await python.repo("disable_resource", [R]);
    await repo.limits.setResource(R, ["rpm:7", "quota:50/year"]);
    expect(await python.repo("get_resource_disabled", [R])).toBe(true);
    const limits = await python.repo<{ name: string; capacity: number }[]>(
      "get_resource_defaults",
      [R],
    );
    expect(limits.map(({ name, capacity }) => [name, capacity]).sort()).toEqual([
      ["quota", 50],
      ["rpm", 7],
    ]);
  });

  it("Python resets and disables buckets that ours has made", async () => {
    const both = await table.open();
    const { python, limiter } = both;
    await python.repo("set_resource_defaults", [R, [limit("rpd", 100, 86_400)]]);
    await limiter.acquire({ ...CALL, consume: { rpd: 60 } });
    await python.repo("reset_bucket", [E, R]);
    expect(await limiter.available(CALL)).toEqual({ rpd: 100 });
    expect(await python.repo("disable_entity", [E])).toBe(1);
    const denied = python.acquire(E, R, { rpd: 1 });
    expect(await denied.catch((error: PythonError) => error.type)).toBe("ResourceDisabled");
  });
});
