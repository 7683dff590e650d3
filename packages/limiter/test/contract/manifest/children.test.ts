/** Limits for the children of entities, in the limits file. */

import { applyManifest, planManifest } from "@zae-limiter/limiter/manifest/apply.ts";
import { cfnTemplate, manifestFromProperties } from "@zae-limiter/limiter/manifest/cfn.ts";
import { exportManifest } from "@zae-limiter/limiter/manifest/export-manifest.ts";
import { emptyManifest } from "@zae-limiter/limiter/manifest/manifest.ts";
import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import { changeJson } from "@zae-limiter/limiter/manifest/plan.ts";
import { printManifest } from "@zae-limiter/limiter/manifest/print-manifest.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";
import { parse } from "yaml";

const FILE = (namespace: string, capacity = 20) => `namespace: ${namespace}
entities:
  team-a:
    resources:
      "@all": { limits: { rpm: { capacity: 60 } } }
    children:
      _default_: { limits: { rpm: { capacity: ${capacity} } } }
      "@all": { limits: { rpm: { capacity: 9 } } }
  team-b:
    children:
      _default_: { limits: { rpm: { capacity: 3 } } }
`;

describeStores("limits for children in a limits file", (store) => {
  it("limits for children are applied, changed, exported as declared, and removed with the file", async () => {
    const repo = await store.open();
    const { namespaceName: namespace, limits } = repo;
    await repo.entities.create({ id: "team-a" });
    await repo.entities.create({ id: "ann", parentId: "team-a" });
    const manifest = parseManifest(FILE(namespace));
    const { plan, failed } = await applyManifest(repo, manifest);
    expect(failed).toEqual([]);
    expect(plan.changes.map(changeJson)).toMatchObject([
      { action: "create", level: "children", target: "team-a/_default_" },
      { action: "create", level: "children", target: "team-a/@all" },
      { action: "create", level: "children", target: "team-b/_default_" },
      { action: "create", level: "entity", target: "team-a/@all" },
    ]);
    expect(await limits.resolve("ann", "gpt-4")).toMatchObject({ source: "parent_default" });
    expect((await planManifest(repo, manifest)).changes).toEqual([]);
    const { records: _, ...levels } = parseManifest(printManifest(await exportManifest(repo)));
    expect({ ...levels, records: new Map() }).toEqual(manifest);
    await applyManifest(repo, parseManifest(FILE(namespace, 30)));
    expect((await limits.getChildren("team-a")).map(String)).toEqual(["rpm:30/min"]);
    const removed = await applyManifest(repo, emptyManifest(namespace));
    expect(removed.applied.map(({ action }) => action)).toEqual(Array(4).fill("delete"));
    expect(await limits.listChildrenResources()).toEqual([]);
  });

  it("limits for children that an operator stored are left alone by a file without them", async () => {
    const repo = await store.open();
    await repo.limits.setChildren("team-a", ["rpm:5"]);
    await applyManifest(repo, parseManifest(`namespace: ${repo.namespaceName}\n`));
    expect((await repo.limits.getChildren("team-a")).map(String)).toEqual(["rpm:5/min"]);
  });

  it("limits for children are the same in a CloudFormation template", async () => {
    const manifest = parseManifest(FILE("a"));
    const template = parse(cfnTemplate(manifest, "limiter"), { stringKeys: true }) as {
      Resources: { TenantLimits: { Properties: Record<string, unknown> } };
    };
    expect(manifestFromProperties(template.Resources.TenantLimits.Properties)).toEqual(manifest);
  });
});
