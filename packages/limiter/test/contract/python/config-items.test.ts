/**
 * Config items that the Python library 0.17 wrote: what is in them survives, and is not ignored.
 */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { ResourceDisabled, ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { UnsupportedLimitError } from "@zae-limiter/limiter/domain/errors/unsupported-limit.ts";
import { pythonItem, pythonItems } from "@zae-limiter/test-support/golden-items.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { describeStores, type TestStore } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";

async function opened(store: TestStore, ...files: string[]) {
  const repo = await store.open();
  const { namespaceId } = repo;
  const puts = files.flatMap((file) => pythonItems(file, namespaceId));
  await store.items.writeMany({ puts });
  const read = async (file: string) => {
    const { PK, SK } = pythonItem(file, namespaceId);
    return store.items.get({ PK, SK }, { consistent: true });
  };
  return { repo, limiter: new RateLimiter(repo), read, namespaceId };
}

describeStores("a level that the Python library wrote", (store) => {
  /** Makes windows of a form that only a later version of Python may have. */
  const spoil = (namespaceId: string) => {
    const { PK, SK } = pythonItem("40-config-resource-schedules", namespaceId);
    return store.items.update({ PK, SK }, { set: { l_rpm_sched: "2h9s500" } });
  };

  it("a level of Python is enforced with the windows of its limits (H3)", async () => {
    const { repo, limiter } = await opened(store, "40-config-resource-schedules");
    const lease = await limiter.acquire({ entityId: "u2", resource: "sched", consume: { rpm: 1 } });
    expect(lease.statuses.map(({ limitName, scheduled }) => [limitName, scheduled?.name])).toEqual([
      ["rpd", undefined],
      ["rpm", "rpm"],
      ["tpm", undefined],
    ]);
    const rpm = (await repo.limits.getResource("sched"))?.find(({ name }) => name === "rpm");
    expect(rpm?.toJSON().schedule).toEqual([
      { cron: "* 9-17 * * 1-5", tz: "America/New_York", scale: 0.5 },
      {
        cron: "*/15 0-6 1,15 1-6 *",
        tz: "America/New_York",
        capacity: 2000,
        refill_amount: 50,
        refill_period_seconds: 30,
      },
    ]);
    await limiter.acquire({ entityId: "u2", resource: "sched", consume: { rpm: 1, rpd: 1 } });
  });

  it("a level of Python refuses only the limits whose windows ours cannot read (H3, H5)", async () => {
    const { repo, limiter, namespaceId } = await opened(store, "40-config-resource-schedules");
    await spoil(namespaceId);
    const call = { entityId: "u2", resource: "sched" };
    const lease = await limiter.acquire({ ...call, consume: { tpm: 10 } });
    expect(lease.statuses.map(({ limitName, kind }) => `${limitName} ${kind}`)).toEqual([
      "rpd quota",
      "tpm rate",
    ]);
    await limiter.acquire({ ...call, consume: { tpm: 1, rpd: 1 } });
    const window = await failureOf(limiter.acquire({ ...call, consume: { rpm: 1 } }));
    expect(window).toMatchObject({ limitName: "rpm", kind: "schedule" });
    const ignored = limiter.acquire({ ...call, consume: { rpm: 1 }, missingLimits: "ignore" });
    expect(await failureOf(ignored)).toBeInstanceOf(UnsupportedLimitError);
    const limits = await repo.limits.getResource("sched");
    expect(limits?.map(String)).toEqual(["rpd:10000/day America/New_York", "tpm:50000/min"]);
    expect((await repo.limits.resolve("u2", "sched"))?.unsupported).toEqual([
      { name: "rpm", kind: "schedule" },
    ]);
  });

  it("a session of Python is enforced as it is stored, and so is the limit next to it (H6)", async () => {
    const { limiter } = await opened(store, "42-config-resource-session-quota");
    const call = { entityId: "u2", resource: "session" };
    await limiter.acquire({ ...call, consume: { rpm: 1 } });
    const [status] = (await limiter.status(call)).filter(({ kind }) => kind === "session");
    expect(status).toMatchObject({ available: 10_000 });
    expect(status).not.toHaveProperty("resetsAtMs");
    const lease = await limiter.acquire({ ...call, consume: { session: 4 } });
    const [open] = lease.statuses.filter(({ kind }) => kind === "session");
    expect(open).toMatchObject({ available: 9996, used: 4 });
    expect((open?.resetsAtMs ?? 0) - (open?.periodStartMs ?? 0)).toBe(18_000_000);
  });

  it("a resource that Python switched off is refused, also with limits of a call (H1)", async () => {
    const { limiter } = await opened(store, "45-config-resource-disabled");
    const call = { entityId: "u1", resource: "dis" };
    for (const request of [
      { ...call, consume: { rpm: 1 } },
      { ...call, consume: { x: 1 }, limits: ["x:10"] },
      { ...call, consume: { rpm: 1 }, onUnavailable: "allow" as const },
    ]) {
      const error = await failureOf(limiter.acquire(request));
      expect(error).toBeInstanceOf(ResourceDisabled);
      expect(error).toMatchObject({ entityId: "u1", resource: "dis", level: "resource" });
    }
    expect(await failureOf(limiter.status(call))).toBeInstanceOf(ResourceDisabled);
  });

  it("an acquire is granted where an entity's own level switches the resource on again (H1)", async () => {
    const { limiter } = await opened(
      store,
      "45-config-resource-disabled",
      "46-config-entity-enabled",
    );
    await limiter.acquire({ entityId: "u2", resource: "dis", consume: { rpm: 1 } });
    const error = await failureOf(
      limiter.acquire({ entityId: "u1", resource: "dis", consume: { rpm: 1 } }),
    );
    expect(error).toBeInstanceOf(ResourceDisabled);
  });

  it("an entity that is switched off and has no limits is refused as switched off (H1)", async () => {
    const { limiter } = await opened(store, "72-flag-only-configs-and-registries");
    for (const [entityId, resource, level] of [
      ["e1", "r", "entity"],
      ["e2", "any", "entity_default"],
      ["e3", "zz", "resource"],
    ] as const) {
      const error = await failureOf(limiter.acquire({ entityId, resource, consume: { rpm: 1 } }));
      expect(error).toBeInstanceOf(ResourceDisabled);
      expect(error).toMatchObject({ entityId, resource, level });
    }
  });

  it("a child whose ancestor is switched off is refused in the name of the ancestor (H1)", async () => {
    const { repo, limiter, namespaceId } = await opened(store, "45-config-resource-disabled");
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "u2", parentId: "team", cascade: true });
    const [enabled] = pythonItems("46-config-entity-enabled", namespaceId);
    await store.items.put(enabled as NonNullable<typeof enabled>);
    const call = { entityId: "u2", resource: "dis", consume: { rpm: 1 } };
    const error = await failureOf(limiter.acquire(call));
    expect(error).toMatchObject({ entityId: "team", resource: "dis", level: "resource" });
    expect(await repo.buckets.list("u2")).toEqual([]);
  });

  it("flags of Python stay when limits are replaced (H7)", async () => {
    for (const [file, resource] of [
      ["45-config-resource-disabled", "dis"],
      ["52-config-resource-cascade", "casc"],
    ] as const) {
      const { repo, read } = await opened(store, file);
      const before = await read(file);
      await repo.limits.setResource(resource, ["rpm:7", "new:3"]);
      expect(await read(file), file).toEqual({
        ...before,
        l_rpm_cp: 7,
        l_rpm_ra: 7,
        l_rpm_rp: 60,
        l_new_cp: 3,
        l_new_ra: 3,
        l_new_rp: 60,
        config_version: 2,
      });
    }
    const { repo, read } = await opened(store, "50-config-resource-soft");
    await repo.limits.setResource("soft", ["tpm:9"]);
    const soft = await read("50-config-resource-soft");
    expect(soft).toMatchObject({ l_tpm_cp: 9 });
    expect(soft).not.toHaveProperty("l_tpm_soft");
    expect(soft).not.toHaveProperty("l_rpm_cp");
  });

  it("a level of Python keeps limits that ours cannot express, and they cannot be replaced (H7)", async () => {
    const file = "40-config-resource-schedules";
    const { repo, read, namespaceId } = await opened(store, file);
    await spoil(namespaceId);
    const before = await read(file);
    const error = await failureOf(repo.limits.setResource("sched", ["rpm:5"]));
    expect(error).toBeInstanceOf(UnsupportedLimitError);
    const rate = await failureOf(repo.limits.setResource("sched", ["rpd:5/day"]));
    expect(rate).toBeInstanceOf(ValidationError);
    expect(await read(file)).toEqual(before);
    await repo.limits.setResource("sched", ["other:5"]);
    const isReplaced = (name: string) => /^l_(?:tpm|rpd)_/.test(name);
    const kept = Object.entries(before ?? {}).filter(([name]) => !isReplaced(name));
    expect(await read(file)).toEqual({
      ...Object.fromEntries(kept),
      l_other_cp: 5,
      l_other_ra: 5,
      l_other_rp: 60,
      config_version: 2,
    });
  });

  it("flags of a level stay when its limits are deleted, as Python stores flags alone (H7)", async () => {
    const { repo, read, limiter } = await opened(store, "45-config-resource-disabled");
    await repo.limits.deleteResource("dis");
    const left = await read("45-config-resource-disabled");
    expect(left).toMatchObject({ disabled: true, resource: "dis" });
    expect(Object.keys(left ?? {}).filter((name) => name.startsWith("l_"))).toEqual([]);
    expect(left).not.toHaveProperty("config_version");
    await repo.limits.deleteResource("dis");
    expect(await read("45-config-resource-disabled")).toEqual(left);
    const call = { entityId: "u1", resource: "dis", consume: { rpm: 1 } };
    expect(await failureOf(limiter.acquire(call))).toBeInstanceOf(ResourceDisabled);
  });

  it("a quota of Python is deleted together with its level (H7)", async () => {
    const { repo, read, limiter } = await opened(store, "42-config-resource-session-quota");
    await repo.limits.deleteResource("session");
    expect(await read("42-config-resource-session-quota")).toBeUndefined();
    const call = { entityId: "u1", resource: "session", consume: { session: 1 } };
    expect(await failureOf(limiter.acquire(call))).toBeInstanceOf(ValidationError);
  });

  it("the flags of an entity's level and of the namespace's stay (H7)", async () => {
    const { repo, namespaceId } = await opened(store, "46-config-entity-enabled");
    const { PK, SK } = pythonItem("46-config-entity-enabled", namespaceId);
    await repo.limits.setEntity("u2", ["rpm:5"], { resource: "dis" });
    const stored = await store.items.get({ PK, SK }, { consistent: true });
    expect(stored).toMatchObject({ disabled: false, l_rpm_cp: 5, config_version: 1 });
    await repo.limits.setSystem(["rpm:5"]);
    const system = { PK: `${namespaceId}/SYSTEM#`, SK: "#CONFIG" };
    const quota = { w_day_cp: 5, w_day_ra: 0, w_day_rp: 1, w_day_rsa: 60 };
    await store.items.update(system, { set: { ...quota, of_the_future: "x" } });
    await repo.limits.setSystem(["tpm:7", "day:5/session:1min"]);
    const after = await store.items.get(system, { consistent: true });
    expect(after).toMatchObject({ ...quota, of_the_future: "x", l_tpm_cp: 7 });
    expect(after).not.toHaveProperty("l_rpm_cp");
  });
});
