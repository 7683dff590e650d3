/** Flags, soft limits and what only Python enforces, in the limits file. */

import { applyManifest, planManifest } from "@zae-limiter/limiter/manifest/apply.ts";
import { exportManifest } from "@zae-limiter/limiter/manifest/export-manifest.ts";
import { emptyManifest } from "@zae-limiter/limiter/manifest/manifest.ts";
import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import { changeJson } from "@zae-limiter/limiter/manifest/plan.ts";
import { printManifest } from "@zae-limiter/limiter/manifest/print-manifest.ts";
import { resourceConfigKey } from "@zae-limiter/limiter/records/keys.ts";
import { pythonItems } from "@zae-limiter/test-support/golden-items.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";

const FILE = (namespace: string) =>
  parseManifest(
    JSON.stringify({
      namespace,
      "x-common": { anything: 1 },
      resources: {
        off: { disabled: true },
        soft: { cascade: false, limits: { tpm: { capacity: 5, soft: true } } },
      },
      entities: { u: { resources: { off: { disabled: "bypass", cascade: true } } } },
    }),
  );

describeStores("the flags of a limits file", (store) => {
  it("the flags of a limits file are applied and exported as declared, and nothing is left to do", async () => {
    const repo = await store.open();
    const manifest = FILE(repo.namespaceName);
    const { failed, applied } = await applyManifest(repo, manifest);
    expect([failed, applied.length]).toEqual([[], 3]);
    expect(await repo.limits.state({ resource: "off" })).toMatchObject({ own: "disabled" });
    const level = await repo.limits.level({ entityId: "u", resource: "off" });
    expect(level).toMatchObject({ state: "bypass", cascade: true, limits: [] });
    expect((await repo.limits.getResource("soft")).map(String)).toEqual(["tpm:5/min soft"]);
    expect((await planManifest(repo, manifest)).changes).toEqual([]);
    const exported = printManifest(await exportManifest(repo));
    expect(parseManifest(exported)).toEqual(manifest);
  });

  it("the flags of a limits file that the file leaves out are cleared, and go with what the file drops", async () => {
    const repo = await store.open();
    const { namespaceName: namespace } = repo;
    await applyManifest(repo, FILE(namespace));
    const without = parseManifest(
      JSON.stringify({ namespace, resources: { soft: { limits: { tpm: { capacity: 5 } } } } }),
    );
    const { failed } = await applyManifest(repo, without);
    expect(failed).toEqual([]);
    expect(await repo.limits.listEntityResources()).toEqual([]);
    expect(await repo.limits.listResources()).toEqual(["soft"]);
    const level = await repo.limits.level({ resource: "soft" });
    expect(level).toMatchObject({ cascade: undefined, state: undefined });
    expect(level.limits.map(String)).toEqual(["tpm:5/min"]);
    await applyManifest(repo, emptyManifest(namespace));
    expect(await repo.limits.listResources()).toEqual([]);
  });

  it("flags that Python stored are shown by export and plan, with limits that are unknown here (H12)", async () => {
    const repo = await store.open();
    const { namespaceId, namespaceName: namespace } = repo;
    const odd = { l_odd_cp: 10, l_odd_ra: 10, l_odd_rp: 60, l_odd_sched: "a later form" };
    const configs = pythonItems("71-provisioner-configs", namespaceId);
    await store.items.writeMany({
      puts: [
        ...configs.map((item) => (item.resource === "gpt" ? { ...item, ...odd } : item)),
        ...pythonItems("70-provisioner-state", namespaceId),
      ],
    });
    const text = printManifest(await exportManifest(repo));
    expect(text).toContain("# gpt: odd (schedule)");
    expect(text).toContain('schedule: [ { cron: "* 9-17 * * *", scale: 0.5 } ]');
    expect(text).toMatch(/day: \{ quota: \{ amount: 1000, every: day(, time_zone: UTC)? \} \}/);
    expect(text).toContain("ses: { capacity: 10, session_seconds: 60 }");
    expect(text).toContain("disabled: true");
    expect(text).toContain("cascade: true");
    expect(text).toContain("soft: true");
    const file = { namespace, resources: { gpt: { limits: { rpm: { capacity: 100 } } } } };
    const { changes } = await planManifest(repo, parseManifest(JSON.stringify(file)));
    const change = changes.find(({ target }) => target.level === "resource");
    const before = change && changeJson(change).before;
    expect(before).toMatchObject({
      disabled: true,
      cascade: true,
      unsupported: [{ name: "odd", kind: "schedule" }],
    });
    expect(JSON.stringify(before)).toContain("burst");
  });

  it("slots that a put of the whole level by Python erased are found by a plan", async () => {
    const repo = await store.open();
    const { namespaceId, namespaceName: namespace } = repo;
    const text = "{ rpm: { capacity: 100 }, parallel: { capacity: 20, concurrent: true } }";
    const file = parseManifest(`namespace: ${namespace}\nresources: { gpt: { limits: ${text} } }`);
    await applyManifest(repo, file);
    expect((await planManifest(repo, file)).changes).toEqual([]);
    const key = resourceConfigKey(namespaceId, "gpt");
    const stored = Object.entries((await store.items.get(key, { consistent: true })) ?? {});
    const kept = stored.filter(([name]) => !name.startsWith("s_"));
    expect(kept.length).toBeLessThan(stored.length);
    await store.items.put({ ...key, ...Object.fromEntries(kept) });
    repo.limits.invalidateCache();
    const { changes } = await planManifest(repo, file);
    expect(changes).toMatchObject([{ action: "update", target: { resource: "gpt" } }]);
    const erased = changes[0] && changeJson(changes[0]);
    expect(JSON.stringify(erased?.before)).not.toContain("parallel");
    expect(JSON.stringify(erased?.after)).toContain("parallel");
    await applyManifest(repo, file);
    const limits = (await repo.limits.getResource("gpt")).map(String);
    expect(limits.sort()).toEqual(["parallel:20 concurrent", "rpm:100/min"]);
  });
});
