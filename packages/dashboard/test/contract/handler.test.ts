/** The dashboard's handler on every store. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { isoSeconds } from "@zae-limiter/limiter/core/windows.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { usageItem } from "@zae-limiter/test-support/usage-item.ts";
import { expect, test } from "vitest";
import { Browser, ORIGIN } from "./suite.ts";

const HOUR_MS = 3_600_000;
/** Half past an hour of today: stores may drop what expired by their own clock. */
const NOW_MS = Math.floor(Date.now() / HOUR_MS) * HOUR_MS + HOUR_MS / 2;
const clock = () => NOW_MS;

describeStores("the dashboard", (store) => {
  test("the overview lists empty, indebted and scarce buckets, and the busiest", async () => {
    const repository = await store.open({ clock });
    const limiter = new RateLimiter(repository);
    await repository.limits.setSystem(["rpm:10", "tpm:1000"]);
    for (const [entityId, rpm, tpm] of [
      ["idle", 1, 10],
      ["empty", 10, 100],
      ["scarce", 9, 100],
    ] as const) {
      await limiter.acquire({ entityId, resource: "gpt-4", consume: { rpm, tpm } });
    }
    const lease = await limiter.acquire({
      entityId: "debt",
      resource: "claude",
      consume: { rpm: 1, tpm: 500 },
    });
    lease.adjust({ tpm: 900 });
    await lease.commit();
    const browser = new Browser(repository);
    const overview = await browser.overview();
    expect(overview).toMatchObject({ buckets: 4, emptyCount: 2, debtCount: 1, scarceCount: 1 });
    expect(overview.empty).toMatchObject([
      { entityId: "debt", resource: "claude", limitName: "tpm", available: -400, capacity: 1000 },
      { entityId: "empty", resource: "gpt-4", limitName: "rpm", available: 0, capacity: 10 },
    ]);
    expect(overview.scarce).toMatchObject([{ entityId: "scarce", limitName: "rpm", available: 1 }]);
    const tpm = overview.busiest.find((each: { limitName: string }) => each.limitName === "tpm");
    expect(tpm.entities[0]).toMatchObject({ name: "debt", resource: "claude", inUse: 1400 });
    expect(tpm.resources).toMatchObject([
      { name: "claude", inUse: 1400, buckets: 1 },
      { name: "gpt-4", inUse: 210, buckets: 3 },
    ]);
  });

  test("closed periods are shown in the time of their zone, and by which part they are written", async () => {
    let nowMs = NOW_MS - 24 * HOUR_MS;
    const repository = await store.open({ clock: () => nowMs });
    await repository.limits.setResource("gpt-4", ["tok:1000/day Asia/Tokyo"]);
    const limiter = new RateLimiter(repository);
    await limiter.acquire({ entityId: "key-1", resource: "gpt-4", consume: { tok: 300 } });
    nowMs = NOW_MS;
    const browser = new Browser(repository);
    const found = await browser.ok("periods?entity=key-1");
    expect(await browser.ok("periods?resource=gpt-4")).toEqual(found);
    const { countedBy } = repository.usage;
    expect(found).toMatchObject({ countedBy, complete: true });
    expect(found.periods).toHaveLength(countedBy === "store" ? 1 : 0);
    for (const period of found.periods) {
      expect(period.end).toMatch(/^\d{4}-\d\d-\d\d 00:00 Asia\/Tokyo$/);
      expect(period).toMatchObject({ limitName: "tok", used: 300, granted: 1000 });
    }
    expect((await browser.get("periods")).status).toBe(400);
  });

  test("alerts of an entity are shown with their use and their delivery", async () => {
    const repository = await store.open({ clock });
    await repository.limits.setResource("gpt-4", ["usd:$2/month UTC alerts 50,90"]);
    const limiter = new RateLimiter(repository);
    await limiter.acquire({ entityId: "key-1", resource: "gpt-4", consume: { usd: 1_500_000 } });
    const browser = new Browser(repository);
    const { alerts } = await browser.ok("alerts?entity=key-1");
    expect(alerts).toEqual([
      {
        id: alerts[0].id,
        entityId: "key-1",
        resource: "gpt-4",
        limitName: "usd",
        percent: 50,
        used: 1_500_000,
        granted: 2_000_000,
        at: new Date(NOW_MS).toISOString(),
        state: "open",
        problem: null,
      },
    ]);
    expect((await browser.ok("alerts?entity=key-2")).alerts).toEqual([]);
  });

  test("entities are listed by page and prefix, as a tree, and with all that they have", async () => {
    const repository = await store.open({ clock });
    await repository.limits.setResource("gpt-4", ["rpm:10"]);
    await repository.limits.setEntity("key-01", ["tpm:500"], { resource: "claude" });
    await repository.entities.create({ id: "org", name: "<img src=x onerror=alert(1)>" });
    for (const id of ["key-01", "key-02", "key-03"]) {
      await repository.entities.create({ id, parentId: "org", cascade: true });
    }
    const limiter = new RateLimiter(repository);
    const consume = { tpm: 200 };
    await (await limiter.acquire({ entityId: "key-01", resource: "claude", consume })).commit();
    const browser = new Browser(repository);
    const roots = await browser.ok("entities?roots=1");
    expect(roots.entities).toMatchObject([
      { id: "org", name: "<img src=x onerror=alert(1)>", parentId: null, hasChildren: true },
    ]);
    const idsOf = (page: { entities: { id: string }[] }) => page.entities.map(({ id }) => id);
    const first = await browser.ok("entities?prefix=key-&limit=2");
    expect(idsOf(first)).toEqual(["key-01", "key-02"]);
    const rest = await browser.ok(`entities?prefix=key-&limit=2&cursor=${first.cursor}`);
    expect(idsOf(rest)).toEqual(["key-03"]);
    expect(rest.cursor).toBeNull();
    expect((await browser.ok("children?id=org")).entities).toHaveLength(3);
    const detail = await browser.ok("entity?id=key-01");
    expect(detail).toMatchObject({ id: "key-01", ancestors: ["org"], entity: { cascade: true } });
    expect(detail.allowances).toMatchObject([
      {
        resource: "claude",
        source: "entity",
        limits: ["tpm:500/min"],
        balances: [{ limitName: "tpm", available: 300, capacity: 500 }],
      },
      { resource: "gpt-4", source: "resource", limits: ["rpm:10/min"], balances: [] },
    ]);
  });

  test("keys of a gateway are listed only where they are searched for", async () => {
    const repository = await store.open({ clock });
    await repository.entities.create({ id: "team-a" });
    for (const id of ["gateway-key:1", "gateway-key:2", "gatekeeper"]) {
      await repository.entities.create({ id, parentId: "team-a" });
    }
    const browser = new Browser(repository);
    const idsOf = async (query: string) =>
      (await browser.ok(`entities?${query}`)).entities.map(({ id }: { id: string }) => id);
    expect(await idsOf("")).toEqual(["gatekeeper", "team-a"]);
    expect(await idsOf("prefix=gate")).toEqual(["gatekeeper"]);
    expect(await idsOf("prefix=gateway-key:")).toEqual(["gateway-key:1", "gateway-key:2"]);
  });

  test("a preview names the entities that change and the hours that used too much", async () => {
    const repository = await store.open({ clock });
    await repository.limits.setResource("gpt-4", ["tpm:600/hour:1000"]);
    await repository.limits.setEntity("own", ["tpm:5000/hour"], { resource: "gpt-4" });
    const start = isoSeconds(NOW_MS - 3.5 * HOUR_MS);
    for (const [entity, tpm] of [
      ["heavy", 900],
      ["light", 50],
      ["own", 900],
    ] as const) {
      const seed = { entity, window: "hourly", start, events: 1, counters: { tpm } } as const;
      await store.items.put(usageItem(repository.namespaceId, seed));
    }
    const limiter = new RateLimiter(repository);
    const target = { entityId: "new", resource: "gpt-4", consume: { tpm: 1 } };
    await (await limiter.acquire(target)).commit();
    const browser = new Browser(repository);
    const { status, body } = await browser.post("preview", {
      level: "resource",
      resource: "gpt-4",
      limits: ["tpm:100/hour:200", "rpm:5"],
      expected: ["tpm:600/hour:1000"],
    });
    expect(status).toBe(200);
    expect(body.differences).toEqual([
      { limitName: "tpm", before: "tpm:600/hour:1000", after: "tpm:100/hour:200" },
      { limitName: "rpm", before: null, after: "rpm:5/min" },
    ]);
    expect(body).toMatchObject({ affectedCount: 3, exceededCount: 1, complete: true });
    expect(body.effects[0]).toMatchObject({
      entityId: "heavy",
      exceeded: [{ limitName: "tpm", used: 900, allowed: 300, hour: start }],
    });
    const rest = body.effects.slice(1).map(({ entityId }: { entityId: string }) => entityId);
    expect(rest.sort()).toEqual(["light", "new"]);
    const usage = await browser.ok("usage?resource=gpt-4&window=hourly&group=entity");
    expect(usage.limitNames).toContain("tpm");
    expect(usage.windows).toContain(start);
  });

  test("usage without a filter has every resource, also one that has nothing but snapshots", async () => {
    const repository = await store.open({ clock });
    const limiter = new RateLimiter(repository);
    const start = isoSeconds(NOW_MS - 3.5 * HOUR_MS);
    const resources = Array.from({ length: 12 }, (_, n) => `model-${n}`);
    for (const resource of resources) {
      const counters = { tpm: 5 };
      const seed = { entity: "a", resource, window: "hourly", start, events: 1, counters } as const;
      await store.items.put(usageItem(repository.namespaceId, seed));
    }
    const target = { entityId: "b", resource: "model-12", consume: { tpm: 1 } };
    await (await limiter.acquire({ ...target, limits: ["tpm:100/hour"] })).commit();
    const usage = await new Browser(repository).ok("usage?window=hourly&group=entity");
    expect(usage.complete).toBe(true);
    const at = usage.windows.indexOf(start);
    expect(usage.groups[0]).toMatchObject({ name: "a" });
    expect(usage.groups[0].values.tpm[at]).toBe(60);
    const { handler } = new Browser(repository);
    const request = new Request(`${ORIGIN}/api/usage.csv?window=hourly`);
    const csv = await (await handler(request)).text();
    for (const resource of resources) expect(csv).toContain(`,a,${resource},`);
  });

  test("the busiest resource has what its calls use, however fast ancestors refill", async () => {
    const now = { ms: Date.parse("2030-01-01T00:00:00Z") };
    const repository = await store.open({ clock: () => now.ms });
    const limiter = new RateLimiter(repository);
    await repository.limits.setSystem(["rpm:60"]);
    await repository.limits.setEntity("org", ["rpm:6000"]);
    await repository.entities.create({ id: "org" });
    await repository.entities.create({ id: "team", parentId: "org", cascade: true });
    const call = { resource: "gpt-4", consume: { rpm: 30 } };
    for (const id of ["key-1", "key-2"]) {
      await repository.entities.create({ id, parentId: "team", cascade: true });
      await limiter.acquire({ ...call, entityId: id });
    }
    const resources = async () => {
      const { busiest } = await new Browser(repository).overview();
      return busiest[0].resources;
    };
    // All three levels have the same 60.
    expect(await resources()).toMatchObject([{ name: "gpt-4", inUse: 60 }]);
    // The bucket of org is full again; that of team lacks 58, and those of the keys 28 each.
    now.ms += 2000;
    await limiter.acquire({ entityId: "other", ...call });
    expect(await resources()).toMatchObject([{ name: "gpt-4", inUse: 58 + 30 }]);
  });

  test("an entity shows switches, soft limits, and the ancestor that refuses", async () => {
    const repository = await store.open({ clock });
    const limiter = new RateLimiter(repository);
    await repository.limits.setSystem(["rpm:10/min", "tpm:100/min soft"]);
    await repository.limits.setEntity("org", ["rpm:2/min"]);
    await repository.entities.create({ id: "org" });
    await repository.entities.create({ id: "team", parentId: "org", cascade: true });
    const call = { entityId: "team", resource: "gpt-4" };
    for (let at = 0; at < 2; at += 1) {
      await limiter.acquire({ ...call, consume: { rpm: 1, tpm: 10 } });
    }
    const browser = new Browser(repository);
    const [allowance] = (await browser.ok("entity?id=team")).allowances;
    expect(allowance).toMatchObject({ resource: "gpt-4", state: "enforced", disabledAt: null });
    const marks = allowance.balances.map((balance: { limitName: string; mark?: string }) => [
      balance.limitName,
      balance.mark,
    ]);
    expect(marks.sort()).toEqual([
      ["rpm", undefined],
      ["tpm", "soft"],
    ]);
    expect(allowance.ancestors).toMatchObject([
      { entityId: "org", state: "enforced", balances: [{ limitName: "rpm", available: 0 }] },
    ]);
    // The calls of the team are part of those of its org.
    const overview = await browser.overview();
    const [rpm] = overview.busiest.filter(
      (each: { limitName: string }) => each.limitName === "rpm",
    );
    expect(rpm.resources).toMatchObject([{ name: "gpt-4", inUse: 2 }]);
    expect(overview).toMatchObject({ disabledCount: 0, bypassCount: 0 });

    await repository.limits.disable({ entityId: "team", resource: "gpt-4" });
    await repository.limits.disable({ resource: "gpt-5" });
    await repository.limits.bypass({ entityId: "org" });
    await repository.limits.disable({ entityId: "team", resource: "gpt-6" });
    const { allowances } = await browser.ok("entity?id=team");
    expect(allowances.map(({ resource }: { resource: string }) => resource).sort()).toEqual([
      "gpt-4",
      "gpt-5",
      "gpt-6",
    ]);
    const [off] = allowances;
    expect(off).toMatchObject({ state: "disabled", disabledAt: "entity" });
    expect(off.ancestors).toMatchObject([{ entityId: "org", state: "bypass" }]);
    const limits = await browser.ok("limits");
    expect(limits.resources).toMatchObject([{ resource: "gpt-5", limits: [], state: "disabled" }]);
    const own = await browser.ok("entity-limits?resource=gpt-4");
    expect(own.limits).toMatchObject([{ entityId: "team", state: "disabled" }]);
    const seen = await new Browser(repository).overview();
    expect(seen).toMatchObject({ disabledCount: 3, bypassCount: 1 });
  });

  test("the audit log does not show a switch as a change of limits", async () => {
    const repository = await store.open();
    await repository.limits.setResource("gpt-4", ["rpm:5"]);
    await repository.limits.disable({ resource: "gpt-4" });
    await repository.limits.setResource("gpt-4", ["rpm:6"]);
    const { events } = await new Browser(repository).ok("audit");
    const differences = events.map((event: { differences: object[] }) => event.differences);
    expect(differences).toEqual([
      [{ limitName: "rpm", before: "rpm:5/min", after: "rpm:6/min" }],
      [],
      [{ limitName: "rpm", before: null, after: "rpm:5/min" }],
    ]);
  });

  test("the tree has entities whose parent does not exist at its top, with a mark", async () => {
    const repository = await store.open();
    await repository.entities.create({ id: "org" });
    await repository.entities.create({ id: "team", parentId: "org" });
    await repository.entities.create({ id: "gone" });
    await repository.entities.create({ id: "lost", parentId: "gone" });
    await repository.entities.delete("gone");
    const { entities } = await new Browser(repository).ok("entities?roots=1");
    const roots = entities.map((entity: { id: string; isOrphan?: boolean }) => [
      entity.id,
      entity.isOrphan ?? false,
    ]);
    expect(roots).toEqual([
      ["lost", true],
      ["org", false],
    ]);
    expect(await new Browser(repository).ok("entity?id=lost")).toMatchObject({
      ancestors: ["gone"],
    });
  });

  test("a save stores limits with the principal, and refuses when they changed since", async () => {
    const repository = await store.open();
    const browser = new Browser(repository);
    const place = { level: "entity", entityId: "key-1", resource: "gpt-4" };
    const saved = await browser.post("limits", { ...place, limits: ["rpm:5"], expected: [] });
    expect(saved).toEqual({ status: 200, body: { ...place, limits: ["rpm:5/min"] } });
    expect((await repository.limits.getEntity("key-1", { resource: "gpt-4" })).map(String)).toEqual(
      ["rpm:5/min"],
    );
    const [event] = await repository.audit.list("key-1");
    expect(event).toMatchObject({ action: "limits_set", principal: "ops", resource: "gpt-4" });
    const late = await browser.post("limits", { ...place, limits: ["rpm:6"], expected: [] });
    expect(late).toMatchObject({ status: 409, body: { error: "changed" } });
    const removed = { ...place, limits: [], expected: ["rpm:5"] };
    expect((await browser.post("limits", removed)).status).toBe(200);
    expect(await repository.limits.getEntity("key-1", { resource: "gpt-4" })).toEqual([]);
  });

  test("a limit of another kind is previewed as such, and replaces one only with the word", async () => {
    const repository = await store.open();
    await repository.limits.setResource("gpt-4", ["req:100/month Asia/Tokyo", "rpm:5"]);
    const browser = new Browser(repository);
    const change = {
      level: "resource",
      resource: "gpt-4",
      limits: ["req:100/min", "rpm:5"],
      expected: ["req:100/month Asia/Tokyo", "rpm:5/min"],
    };
    expect((await browser.post("preview", change)).body.kinds).toEqual([
      { limitName: "req", before: "quota", after: "rate" },
    ]);
    const refused = await browser.post("limits", change);
    expect(refused).toMatchObject({ status: 400, body: { error: "ZAEL_VALIDATION" } });
    expect((await browser.post("limits", { ...change, replaceKind: true })).status).toBe(200);
    const stored = await repository.limits.getResource("gpt-4");
    expect(stored.map(String)).toEqual(["req:100/min", "rpm:5/min"]);
  });

  test("a save keeps what a quota carries, which has no text, and does not change it", async () => {
    const repository = await store.open();
    const quota = Limit.quota("req", 100, { every: "month", carry: "rest", carryMax: 50 });
    await repository.limits.setResource("gpt-4", [quota, "rpm:5"]);
    const browser = new Browser(repository);
    const place = { level: "resource", resource: "gpt-4" };
    const expected = ["req:100/month UTC", "rpm:5/min"];
    const more = { ...place, limits: ["req:100/month", "rpm:6"], expected };
    expect((await browser.post("preview", more)).body.differences).toMatchObject([
      { limitName: "rpm" },
    ]);
    expect((await browser.post("limits", more)).status).toBe(200);
    const [stored] = await repository.limits.getResource("gpt-4");
    expect(stored?.equals(quota)).toBe(true);
    const other = { ...place, limits: ["req:90/month"], expected: ["req:100/month", "rpm:6"] };
    const refused = await browser.post("limits", other);
    expect(refused.status).toBe(400);
    expect(refused.body.message).toContain("with a limits file");
  });

  test("all four levels are listed, and a wrong text is refused with its reason", async () => {
    const repository = await store.open();
    await repository.limits.setSystem(["rpm:1"], { onUnavailable: "block" });
    await repository.limits.setResource("gpt-4", ["rpm:2"]);
    await repository.limits.setEntity("key-1", ["rpm:3"]);
    await repository.limits.setEntity("key-2", ["rpm:4"], { resource: "gpt-4" });
    const browser = new Browser(repository);
    expect(await browser.ok("limits")).toEqual({
      system: ["rpm:1/min"],
      onUnavailable: "block",
      resources: [{ level: "resource", resource: "gpt-4", limits: ["rpm:2/min"], state: null }],
      entities: { resources: ["gpt-4"], hasDefaults: true },
      children: { resources: [], hasDefaults: false },
    });
    expect((await browser.ok("entity-limits")).limits).toEqual([
      { level: "entity_default", entityId: "key-1", limits: ["rpm:3/min"], state: null },
    ]);
    expect((await browser.ok("entity-limits?resource=gpt-4")).limits).toEqual([
      { level: "entity", entityId: "key-2", resource: "gpt-4", limits: ["rpm:4/min"], state: null },
    ]);
    const wrong = await browser.post("preview", {
      level: "system",
      limits: ["rpm:"],
      expected: [],
    });
    expect(wrong).toMatchObject({ status: 400, body: { error: "ZAEL_VALIDATION" } });
  });

  test("limits for children are stored, listed and previewed, and their events stand apart", async () => {
    const repository = await store.open({ clock });
    const { entities, limits } = repository;
    await limits.setSystem(["rpm:9"]);
    await entities.create({ id: "team" });
    for (const id of ["ann", "bob", "own"]) await entities.create({ id, parentId: "team" });
    await limits.setEntity("own", ["rpm:7"]);
    await limits.setEntity("team", ["rpm:3"]);
    const limiter = new RateLimiter(repository);
    for (const entityId of ["ann", "own", "team"]) {
      await limiter.acquire({ entityId, resource: "gpt-4", consume: { rpm: 1 } });
    }
    const browser = new Browser(repository);
    const change = { level: "parent_default", entityId: "team", limits: ["rpm:5"], expected: [] };
    const preview = await browser.post("preview", change);
    expect(preview.body.effects).toEqual([
      {
        ...{ entityId: "ann", resource: "gpt-4", exceeded: [] },
        ...{ before: ["rpm:9/min"], after: ["rpm:5/min"] },
      },
    ]);
    expect(await browser.post("limits", change)).toMatchObject({ status: 200 });
    const own = { level: "entity", entityId: "ann", resource: "gpt-4" };
    const over = { ...own, limits: ["rpm:6"], expected: [] };
    expect((await browser.post("preview", over)).body.effects).toMatchObject([
      { before: ["rpm:5/min"], after: ["rpm:6/min"] },
    ]);
    const system = { level: "system", limits: ["rpm:2"], expected: ["rpm:9/min"] };
    expect((await browser.post("preview", system)).body.effects).toEqual([]);
    const listed = await browser.ok("limits");
    expect(listed.children).toEqual({ resources: [], hasDefaults: true });
    expect((await browser.ok("children-limits")).limits).toEqual([
      { level: "parent_default", entityId: "team", limits: ["rpm:5/min"] },
    ]);
    const detail = await browser.ok("entity?id=ann");
    expect(detail.allowances).toMatchObject([{ source: "parent_default" }]);
    const { events } = await browser.ok("audit?subject=team");
    expect(events.slice(0, 2)).toMatchObject([
      { details: { level: "children" }, differences: [{ before: null, after: "rpm:5/min" }] },
      { differences: [{ before: null, after: "rpm:3/min" }] },
    ]);
    await browser.post("limits", { ...change, limits: [], expected: ["rpm:5/min"] });
    expect(await limits.getChildren("team")).toEqual([]);
  });

  test("a preview of limits for all resources leaves totals alone", async () => {
    const repository = await store.open({ clock });
    await repository.limits.setResource("@all", ["rpm:8"]);
    await repository.limits.setSystem(["rpm:9"]);
    const limiter = new RateLimiter(repository, { totals: true });
    await limiter.acquire({ entityId: "ann", resource: "gpt-4", consume: { rpm: 1 } });
    const browser = new Browser(repository);
    const affected = async (change: object) => {
      const { body } = await browser.post("preview", { expected: [], ...change });
      return body.effects.map(({ resource }: { resource: string }) => resource);
    };
    const limits = ["rpm:2"];
    expect(await affected({ level: "system", limits, expected: ["rpm:9/min"] })).toEqual(["gpt-4"]);
    expect(await affected({ level: "entity_default", entityId: "ann", limits })).toEqual(["gpt-4"]);
    const total = { entityId: "ann", resource: "@all" };
    expect(await affected({ level: "entity", ...total, limits })).toEqual(["@all"]);
    expect(await affected({ level: "entity", ...total, limits: ["rpm:8"] })).toEqual([]);
  });

  test("the audit log shows what each change has changed", async () => {
    const repository = await store.open();
    await repository.limits.setSystem(["rpm:1", "tpm:10"], { principal: "ann" });
    await repository.limits.setSystem(["rpm:2", "tpm:10"], { principal: "bob" });
    await repository.limits.setResource("gpt-4", ["rpm:9"]);
    const browser = new Browser(repository);
    const { events } = await browser.ok("audit");
    expect(events).toMatchObject([
      { subject: "$RESOURCE:gpt-4", principal: null, differences: [{ before: null }] },
      {
        subject: "$SYSTEM",
        principal: "bob",
        differences: [{ limitName: "rpm", before: "rpm:1/min", after: "rpm:2/min" }],
      },
      { subject: "$SYSTEM", principal: "ann", differences: [{ before: null }, { before: null }] },
    ]);
    const own = await browser.ok(`audit?subject=${encodeURIComponent("$SYSTEM")}`);
    expect(own.events).toHaveLength(2);
  });

  test("namespaces go through their life, and each shows only its own", async () => {
    const repository = await store.open();
    const browser = new Browser(repository);
    const name = `${repository.namespaceName}-b`;
    expect((await browser.post("namespaces", { action: "register", name })).status).toBe(200);
    await browser.post(`limits?ns=${name}`, { level: "system", limits: ["rpm:7"], expected: [] });
    expect((await browser.ok(`limits?ns=${name}`)).system).toEqual(["rpm:7/min"]);
    expect((await browser.ok("limits")).system).toEqual([]);
    const { namespaces } = (await browser.post("namespaces", { action: "delete", name })).body;
    const gone = namespaces.find((each: { name: string }) => each.name === name);
    expect(gone).toMatchObject({ status: "deleted" });
    expect(await browser.get(`limits?ns=${name}`)).toMatchObject({ status: 404 });
    const { namespaceId } = gone;
    expect((await browser.post("namespaces", { action: "recover", namespaceId })).status).toBe(200);
    expect((await browser.ok(`limits?ns=${name}`)).system).toEqual(["rpm:7/min"]);
  });
});
