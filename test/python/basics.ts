/** Common behaviour of both releases of the Python library and ours, in both directions. */

import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { expect, it } from "vitest";
import { limit, type Release } from "./library.ts";
import { itAppliesLimits } from "./limits-file.ts";
import { SharedTable, sum } from "./shared-table.ts";
import { itCountsUsage } from "./usage.ts";

const E = "user-1";
const R = "gpt-4";
const CALL = { entityId: E, resource: R };
const DAY_SECONDS = 86_400;
const DAILY = [limit("rpd", 100, DAY_SECONDS)];

/** The suite for one release; a file each, so that they run at the same time. */
export function describeBasics(release: Release): void {
  describeEngines(`one table with Python ${release}`, (engine) => {
    const table = new SharedTable(engine, release);
    itCountsUsage(table);
    itAppliesLimits(table);

    it("limits that Python stores at each level are those that ours resolves", async () => {
      const { python, repo } = await table.open();
      await python.repo("set_system_defaults", [[limit("rpm", 10)]]);
      expect(await repo.limits.resolve(E, R)).toMatchObject({ source: "system" });
      await python.repo("set_resource_defaults", [R, [limit("rpm", 20)]]);
      expect(await repo.limits.resolve(E, R)).toMatchObject({ source: "resource" });
      await python.repo("set_limits", [E, [limit("rpm", 30)]]);
      expect(await repo.limits.resolve(E, R)).toMatchObject({ source: "entity_default" });
      await python.repo("set_limits", [E, [limit("rpm", 40)]], { resource: R });
      const resolved = await repo.limits.resolve(E, R);
      expect([resolved?.source, String(resolved?.limits[0])]).toEqual(["entity", "rpm:40/min"]);
    });

    it("limits that ours stores are those that Python reads", async () => {
      const { python, repo } = await table.open();
      await repo.limits.setResource(R, ["rpm:20", "tpm:1000/min:2000"]);
      await repo.limits.setEntity(E, ["rpm:7"], { resource: R });
      const read = (method: string, args: unknown[], kwargs = {}) =>
        python.repo<{ name: string; capacity: number }[]>(method, args, kwargs);
      const resource = await read("get_resource_defaults", [R]);
      expect(resource.map(({ name, capacity }) => [name, capacity]).sort()).toEqual([
        ["rpm", 20],
        ["tpm", 2000],
      ]);
      const [own] = await read("get_limits", [E], { resource: R });
      expect(own).toMatchObject({ name: "rpm", capacity: 7 });
    });

    it("alternating acquires, adjustments and rollbacks add up on one bucket", async () => {
      const both = await table.open();
      const { python, limiter } = both;
      await python.repo("set_resource_defaults", [R, DAILY]);
      for (let round = 0; round < 4; round += 1) {
        await python.acquire(E, R, { rpd: 3 }, { adjust: { rpd: 2 } });
        const lease = await limiter.acquire({ ...CALL, consume: { rpd: 4 } });
        lease.adjust({ rpd: -1 });
        await lease.commit();
        await python.acquire(E, R, { rpd: 9 }, { how: "rollback" });
        await (await limiter.acquire({ ...CALL, consume: { rpd: 9 } })).rollback();
      }
      const items = await table.shards(both, E, R);
      expect(sum(items, "b_rpd_tc")).toBe(4 * 8 * 1000);
      expect(await limiter.available(CALL)).toEqual({ rpd: 68 });
      expect(await python.grants(E, R, { rpd: 69 })).toBe(false);
      expect(await python.grants(E, R, { rpd: 68 })).toBe(true);
      expect((await limiter.tryAcquire({ ...CALL, consume: { rpd: 1 } })).granted).toBe(false);
    });

    it("concurrent acquires on one bucket: ours grants no more than is stored", async () => {
      const both = await table.open();
      const { python, limiter } = both;
      await python.repo("set_resource_defaults", [R, DAILY]);
      await python.acquire(E, R, { rpd: 1 });
      const other = await table.another(both);
      const ours = Array.from({ length: 60 }, (_, at) =>
        (at % 2 === 0 ? limiter : other)
          .tryAcquire({ ...CALL, consume: { rpd: 1 } })
          .then(({ granted }) => granted),
      );
      const theirs = Array.from({ length: 60 }, () => python.grants(E, R, { rpd: 1 }));
      const granted = (await Promise.all([...ours, ...theirs])).filter(Boolean).length + 1;
      const items = await table.shards(both, E, R);
      expect(sum(items, "b_rpd_tc")).toBe(granted * 1000);
      expect(granted).toBeLessThanOrEqual(100);
      expect(sum(items, "b_rpd_tk")).toBe((100 - granted) * 1000);
    });

    it("cascades consume from the parent, whichever library created the entities", async () => {
      const both = await table.open();
      const { python, repo, limiter } = both;
      await python.repo("set_system_defaults", [DAILY]);
      await python.repo("create_entity", ["org"]);
      await python.repo("create_entity", ["a"], { parent_id: "org", cascade: true });
      await repo.entities.create({ id: "b", parentId: "org", cascade: true });
      for (const entityId of ["a", "b"]) {
        await limiter.acquire({ entityId, resource: R, consume: { rpd: 2 } });
        await python.acquire(entityId, R, { rpd: 3 });
      }
      expect(sum(await table.shards(both, "org", R), "b_rpd_tc")).toBe(10_000);
      expect(await limiter.available({ entityId: "a", resource: R })).toEqual({ rpd: 90 });
      const children = await repo.entities.children("org");
      expect(children.map(({ id }) => id)).toEqual(["a", "b"]);
    });

    it("quiet acquires by ours leave Python's meter of writes healthy: no shard is added", async () => {
      const both = await table.open();
      const { python, limiter } = both;
      await python.repo("set_resource_defaults", [R, [limit("rpm", 1000)]]);
      for (let round = 0; round < 10; round += 1) {
        await limiter.acquire({ ...CALL, consume: { rpm: 1 } });
        expect(await python.grants(E, R, { rpm: 1 })).toBe(true);
      }
      const items = await table.shards(both, E, R);
      expect(items.map(({ shard_count }) => shard_count)).toEqual([1]);
      expect(Number(items[0]?.b_wcu_tk)).toBeGreaterThan(900_000);
    });

    it("a limit that Python lowers reaches a bucket of ours", async () => {
      const both = await table.open();
      const { python, limiter } = both;
      await python.repo("set_resource_defaults", [R, DAILY]);
      await limiter.acquire({ ...CALL, consume: { rpd: 1 } });
      await python.repo("set_resource_defaults", [R, [limit("rpd", 10, DAY_SECONDS)]]);
      const granted = [];
      for (let round = 0; round < 20; round += 1) {
        granted.push((await limiter.tryAcquire({ ...CALL, consume: { rpd: 1 } })).granted);
      }
      expect(granted.filter(Boolean).length).toBeLessThanOrEqual(10);
      expect((await table.shards(both, E, R))[0]).toMatchObject({ b_rpd_cp: 10_000 });
    });

    it("every token of a bucket that Python doubles can be acquired by ours", async () => {
      const both = await table.open();
      const { python, limiter } = both;
      await python.repo("set_resource_defaults", [R, DAILY]);
      await python.acquire(E, R, { rpd: 1 });
      await python.repo("bump_shard_count", [E, R, 1]);
      let granted = 0;
      while ((await limiter.tryAcquire({ ...CALL, consume: { rpd: 1 } })).granted) granted += 1;
      expect(granted).toBe(99);
      expect(sum(await table.shards(both, E, R), "b_rpd_tc")).toBe(100_000);
    });

    it("audit events of both libraries are in one log", async () => {
      const { python, repo } = await table.open();
      await python.repo("create_entity", [E], { principal: "python" });
      await repo.limits.setEntity(E, ["rpm:5"], { principal: "node" });
      const events = await repo.audit.list(E);
      const found = events.map(({ action, principal }) => `${action} ${principal}`).sort();
      expect(found).toEqual(["entity_created python", "limits_set node"]);
      const theirs = await python.repo<{ action: string }[]>("get_audit_events", [E]);
      expect(theirs.map(({ action }) => action).sort()).toEqual(["entity_created", "limits_set"]);
    });
  });
}
