/** Declarative limits, applied: on every store, through to registries, audit and live buckets. */

import { readFileSync } from "node:fs";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { applyManifest, planManifest } from "@zae-limiter/limiter/manifest/apply.ts";
import { manifestFromProperties } from "@zae-limiter/limiter/manifest/cfn.ts";
import { exportManifest } from "@zae-limiter/limiter/manifest/export-manifest.ts";
import { readManaged } from "@zae-limiter/limiter/manifest/managed-record.ts";
import {
  emptyManifest,
  type Manifest,
  targetName,
} from "@zae-limiter/limiter/manifest/manifest.ts";
import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import { printManifest } from "@zae-limiter/limiter/manifest/print-manifest.ts";
import { provisionerKey, resourceConfigKey } from "@zae-limiter/limiter/records/keys.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { decodeItem } from "@zae-limiter/limiter/storage/attribute-value.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";
import { counts, manifestOf, NOTHING } from "./sample.ts";

const texts = (limits: readonly Limit[]) => limits.map(String);

describeStores("applying a manifest", (store) => {
  it("stores every level, readable like everything else (op 45)", async () => {
    const repo = await store.open();
    const result = await applyManifest(repo, manifestOf(repo), { principal: "ci" });
    expect(counts(result)).toEqual({ ...NOTHING, created: 4 });
    const { limits, onUnavailable } = await repo.limits.getSystem();
    expect([texts(limits), onUnavailable]).toEqual([["rpm:10/min"], "block"]);
    expect(texts(await repo.limits.getResource("gpt-4"))).toEqual(["rpm:20/min"]);
    const own = await repo.limits.getEntity("user-1", { resource: "gpt-4" });
    expect(texts(own)).toEqual(["rpm:30/min"]);
    // Registries, index and audit log know of it, unlike in the reference (W22).
    expect(await repo.limits.listResources()).toEqual(["gpt-3", "gpt-4"]);
    expect(await repo.limits.listEntityResources()).toEqual(["gpt-4"]);
    expect((await repo.limits.listEntities("gpt-4")).entityIds).toEqual(["user-1"]);
    const [event] = await repo.audit.list("$RESOURCE:gpt-4");
    expect([event?.action, event?.principal]).toEqual(["limits_set", "ci"]);
  });

  it("applying a manifest has no changes the second time, and writes nothing (op 46)", async () => {
    const repo = await store.open();
    await applyManifest(repo, manifestOf(repo));
    const before = await store.itemsOf(`${repo.namespaceId}/SYSTEM#`);
    expect((await planManifest(repo, manifestOf(repo))).changes).toEqual([]);
    expect(counts(await applyManifest(repo, manifestOf(repo)))).toEqual(NOTHING);
    expect(await store.itemsOf(`${repo.namespaceId}/SYSTEM#`)).toEqual(before);
    expect(await repo.audit.list("$SYSTEM")).toHaveLength(1);
  });

  it("applying a manifest removes what the file no longer has, and only that (op 47, 48)", async () => {
    const repo = await store.open();
    await repo.limits.setResource("by-hand", ["rpm:1"]);
    await applyManifest(repo, manifestOf(repo));
    const changed = await applyManifest(repo, manifestOf(repo, 11, ["gpt-4"]));
    expect(counts(changed)).toEqual({ ...NOTHING, updated: 3, deleted: 1 });
    expect(await repo.limits.listResources()).toEqual(["by-hand", "gpt-4"]);
    const emptied = await applyManifest(repo, emptyManifest(repo.namespaceName));
    expect(counts(emptied)).toEqual({ ...NOTHING, deleted: 3 });
    expect(await repo.limits.getSystem()).toEqual({ limits: [] });
    expect(await repo.limits.listResources()).toEqual(["by-hand"]);
    expect(await repo.limits.listEntityResources()).toEqual([]);
    expect((await repo.audit.list("user-1"))[0]?.action).toBe("limits_deleted");
  });

  it("applying a manifest is what CloudFormation asks for, too (op 49)", async () => {
    const repo = await store.open();
    const properties = (rpm: string, more: object = {}) =>
      manifestFromProperties({
        ServiceToken: "arn:aws:lambda:us-east-1:123456789012:function:x",
        TableName: "t",
        Namespace: repo.namespaceName,
        Resources: { "gpt-4": { Limits: { rpm: { Capacity: rpm, RefillPeriod: "30" } } } },
        ...more,
      });
    expect(counts(await applyManifest(repo, properties("5"))).created).toBe(1);
    expect(texts(await repo.limits.getResource("gpt-4"))).toEqual(["rpm:5/30sec"]);
    const system = { OnUnavailable: "allow", Limits: { tph: { Capacity: 9, RefillAmount: 3 } } };
    const updated = await applyManifest(repo, properties("6", { System: system }));
    expect(counts(updated)).toEqual({ ...NOTHING, created: 1, updated: 1 });
    const deleted = await applyManifest(repo, emptyManifest(repo.namespaceName));
    expect(counts(deleted)).toEqual({ ...NOTHING, deleted: 2 });
  });

  it("applying a manifest finds drift in any value, and corrects it", async () => {
    const repo = await store.open();
    const manifest = manifestOf(repo);
    await applyManifest(repo, manifest);
    await repo.limits.setSystem(["rpm:10"], { onUnavailable: "allow" });
    await repo.limits.setResource("gpt-4", ["rpm:20/min:21"]);
    await repo.limits.deleteEntity("user-1", { resource: "gpt-4" });
    const { changes } = await planManifest(repo, manifest);
    expect(changes.map(({ action, target }) => [action, targetName(target)])).toEqual([
      ["update", null],
      ["update", "gpt-4"],
      ["create", "user-1/gpt-4"],
    ]);
    await applyManifest(repo, manifest);
    expect((await planManifest(repo, manifest)).changes).toEqual([]);
    expect((await repo.limits.getSystem()).onUnavailable).toBe("block");
  });

  it("applying a manifest takes onUnavailable away when the file does not have it", async () => {
    const repo = await store.open();
    await applyManifest(repo, manifestOf(repo));
    const { onUnavailable: _, ...rest } = manifestOf(repo).system ?? { limits: [] };
    const manifest = { ...manifestOf(repo), system: rest };
    expect(counts(await applyManifest(repo, manifest)).updated).toBe(1);
    const { limits, onUnavailable } = await repo.limits.getSystem();
    expect([texts(limits), onUnavailable]).toEqual([["rpm:10/min"], undefined]);
  });

  it("applying a manifest reaches live buckets at once", async () => {
    const repo = await store.open();
    await using limiter = new RateLimiter(repo);
    await applyManifest(repo, manifestOf(repo, 10));
    const request = { entityId: "user-1", resource: "gpt-4" };
    await (await limiter.acquire({ ...request, consume: { rpm: 1 } })).commit();
    await applyManifest(repo, manifestOf(repo, 1));
    expect((await limiter.status(request))[0]?.limit.capacity).toBe(3);
    await applyManifest(repo, emptyManifest(repo.namespaceName));
    await repo.limits.setSystem(["rpm:2"]);
    const [status] = await limiter.status({ entityId: "other", resource: "gpt-4" });
    expect(status?.limit.capacity).toBe(2);
  });

  it("two at once take turns, and the record is that of the store", async () => {
    const first = await store.open();
    const second = await store.open({ namespace: first.namespaceName });
    const manifests = [manifestOf(first, 5, ["a", "b"]), manifestOf(first, 7, ["b", "c"])];
    const results = await Promise.all([
      applyManifest(first, manifests[0] as Manifest),
      applyManifest(second, manifests[1] as Manifest),
      applyManifest(second, manifests[0] as Manifest),
    ]);
    expect(
      results.flatMap(({ failed, unrecorded }) => [...failed, unrecorded ?? []].flat()),
    ).toEqual([]);
    const resources = await first.limits.listResources();
    expect([
      ["a", "b"],
      ["b", "c"],
    ]).toContainEqual(resources);
    const record = await readManaged(first[INTERNALS].records);
    expect(record.targets.map(targetName)).toEqual([null, ...resources, "user-1/gpt-4"]);
    expect([record.unsettled, record.run]).toEqual([[], undefined]);
    const winner = resources.includes("a") ? manifests[0] : manifests[1];
    expect((await planManifest(first, winner as Manifest)).changes).toEqual([]);
    const emptied = await applyManifest(first, emptyManifest(first.namespaceName));
    expect(emptied.applied).toHaveLength(4);
    expect(await first.limits.listResources()).toEqual([]);
  });

  it("the same manifest twice at once is applied once", async () => {
    const first = await store.open();
    const second = await store.open({ namespace: first.namespaceName });
    const results = await Promise.all(
      [first, second].map((repo) => applyManifest(repo, manifestOf(first))),
    );
    expect(results.map(({ applied }) => applied.length).sort()).toEqual([0, 4]);
    expect(await first.audit.list("$SYSTEM")).toHaveLength(1);
  });

  it("applying a manifest takes over what the Python library's provisioner stored, and registers it", async () => {
    const repo = await store.open();
    const fixture = new URL(
      "../../../../../test/fixtures/golden/30-provisioner.json",
      import.meta.url,
    );
    const text = readFileSync(fixture, "utf8").replaceAll("LmC1y6UwDVo", repo.namespaceId);
    const { items } = JSON.parse(text) as { items: Record<string, unknown>[] };
    await store.items.writeMany({ puts: items.map(decodeItem) });
    const exported = await exportManifest(repo);
    expect([...exported.resources.keys(), ...exported.entities.keys()]).toEqual([
      "gpt-4",
      "user-premium",
    ]);
    const { changes } = await planManifest(repo, exported);
    expect(changes.map(({ action, reason }) => [action, reason])).toEqual([
      ["update", "unregistered"],
      ["update", "unregistered"],
      ["update", "unregistered"],
    ]);
    await applyManifest(repo, exported);
    expect((await planManifest(repo, exported)).changes).toEqual([]);
    expect(await repo.limits.listResources()).toEqual(["gpt-4"]);
    expect((await repo.limits.listEntities("gpt-4")).entityIds).toEqual(["user-premium"]);
    expect(counts(await applyManifest(repo, emptyManifest(repo.namespaceName))).deleted).toBe(3);
  });

  it("applying a manifest overwrites a stored limit that is invalid", async () => {
    const repo = await store.open();
    await applyManifest(repo, manifestOf(repo));
    const key = resourceConfigKey(repo.namespaceId, "gpt-4");
    await store.items.update(key, { set: { l_rpm_cp: -5 } });
    const { changes } = await planManifest(repo, manifestOf(repo));
    expect(changes.map(({ reason }) => reason)).toEqual(["unreadable"]);
    await expect(exportManifest(repo)).rejects.toThrow(/stored limits of .*gpt-4 are invalid/);
    await applyManifest(repo, manifestOf(repo));
    expect(texts(await repo.limits.getResource("gpt-4"))).toEqual(["rpm:20/min"]);
  });

  it("applying a manifest exports what is stored; that file applied is no change", async () => {
    const repo = await store.open();
    await repo.limits.setSystem(["rpm:10", "tph:100/hour:500"], { onUnavailable: "allow" });
    await repo.limits.setResource("openai/gpt-4", ["calls:10/5min"]);
    for (const id of ["007", "z", "a"]) await repo.limits.setEntity(id, ["rpm:1"]);
    await repo.limits.setEntity("a", ["rpm:2"], { resource: "gpt-4" });
    const text = printManifest(await exportManifest(repo));
    expect(text).toContain(`namespace: ${repo.namespaceName}`);
    const manifest = parseManifest(text);
    expect([...manifest.entities.keys()].sort()).toEqual(["007", "a", "z"]);
    const plan = await planManifest(repo, manifest);
    expect([plan.changes, plan.adopted.length]).toEqual([[], 6]);
    expect(counts(await applyManifest(repo, manifest))).toEqual(NOTHING);
    expect(counts(await applyManifest(repo, emptyManifest(repo.namespaceName))).deleted).toBe(6);
  });

  it("applying a manifest has the record of the reference, with what ours adds", async () => {
    const repo = await store.open({ clock: () => Date.parse("2030-01-02T03:04:05.678Z") });
    await applyManifest(repo, manifestOf(repo));
    const item = await store.items.get(provisionerKey(repo.namespaceId));
    expect(item).toEqual({
      PK: `${repo.namespaceId}/SYSTEM#`,
      SK: "#PROVISIONER",
      GSI4PK: repo.namespaceId,
      GSI4SK: `${repo.namespaceId}/SYSTEM#`,
      managed_system: true,
      managed_resources: ["gpt-3", "gpt-4"],
      managed_entities: { "user-1": ["gpt-4"] },
      applied_hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      last_applied: "2030-01-02T03:04:05Z",
      state_version: 2,
    });
  });

  it("applying a manifest refuses what does not fit into its record, and a namespace that is gone", async () => {
    const repo = await store.open();
    const level = { limits: [Limit.parse("rpm:1")] };
    const ids = Array.from({ length: 2000 }, (_, at) => `${at}-${"x".repeat(220)}`);
    const entities = new Map(ids.map((id) => [id, new Map([["gpt-4", level]])]));
    const huge = { ...emptyManifest(repo.namespaceName), entities };
    await expect(applyManifest(repo, huge)).rejects.toThrow(ValidationError);
    expect(await repo.limits.listEntityResources()).toEqual([]);
    await repo.namespaces.delete(repo.namespaceName);
    await expect(applyManifest(repo, manifestOf(repo))).rejects.toThrow(/not active/);
  });
});
