/** Entities in the limits file: created with their parents, and never changed or deleted. */

import { applyManifest, planManifest } from "@zae-limiter/limiter/manifest/apply.ts";
import { cfnTemplate, manifestFromProperties } from "@zae-limiter/limiter/manifest/cfn.ts";
import { exportManifest } from "@zae-limiter/limiter/manifest/export-manifest.ts";
import { readManaged } from "@zae-limiter/limiter/manifest/managed-record.ts";
import { emptyManifest } from "@zae-limiter/limiter/manifest/manifest.ts";
import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import { changeJson, type LimitPlan } from "@zae-limiter/limiter/manifest/plan.ts";
import { printManifest } from "@zae-limiter/limiter/manifest/print-manifest.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";
import { parse } from "yaml";

const FILE = (namespace: string) => `namespace: ${namespace}
entities:
  ann: { parent: team-a, cascade: true }
  team-a:
    parent: org
    resources: { _default_: { limits: [rpm:60] } }
  org:
    resources: { _default_: { limits: [rpm:600] } }
  alone:
    resources: { _default_: { limits: [rpm:1] } }
`;
const shown = ({ changes }: LimitPlan) =>
  changes.map(changeJson).map(({ action, level, target }) => `${action} ${level} ${target}`);

describeStores("entities in a limits file", (store) => {
  it("entities of a file are created parents first, whatever their order, and then left alone", async () => {
    const repo = await store.open();
    const manifest = parseManifest(FILE(repo.namespaceName));
    const plan = [
      "create entity org",
      "create entity team-a",
      "create entity ann",
      "create entity alone/_default_",
      "create entity org/_default_",
      "create entity team-a/_default_",
    ];
    expect(shown(await planManifest(repo, manifest))).toEqual(plan);
    const { applied, failed } = await applyManifest(repo, manifest, { principal: "ci" });
    expect([applied.length, failed]).toEqual([6, []]);
    const ann = await repo.entities.get("ann");
    expect([ann?.parentId, ann?.cascade]).toEqual(["team-a", true]);
    const team = await repo.entities.get("team-a");
    expect([team?.parentId, team?.cascade]).toEqual(["org", false]);
    expect((await repo.entities.get("org"))?.parentId).toBeUndefined();
    // An entity that only has limits needs no record, as ever.
    expect(await repo.entities.get("alone")).toBeUndefined();
    expect((await repo.audit.list("ann"))[0]).toMatchObject({
      action: "entity_created",
      principal: "ci",
    });
    const settled = await planManifest(repo, manifest);
    expect([settled.changes, settled.adopted]).toEqual([[], []]);
    expect((await applyManifest(repo, manifest, { full: true })).failed).toEqual([]);
  });

  it("an entity that leaves the file is not deleted, and its limits are", async () => {
    const repo = await store.open();
    await applyManifest(repo, parseManifest(FILE(repo.namespaceName)));
    const { targets, unsettled } = await readManaged(repo[INTERNALS].records);
    expect([targets.map(({ level }) => level), unsettled]).toEqual([Array(3).fill("entity"), []]);
    const removed = await applyManifest(repo, emptyManifest(repo.namespaceName));
    expect(removed.applied.map(({ action }) => action)).toEqual(Array(3).fill("delete"));
    expect((await repo.entities.children("org")).map(({ id }) => id)).toEqual(["team-a"]);
    expect((await repo.entities.get("ann"))?.parentId).toBe("team-a");
  });

  it("a parent that is neither stored nor in the file is refused with its line, before any write", async () => {
    const repo = await store.open();
    const text = `namespace: ${repo.namespaceName}
system: { limits: [rpm:5] }
entities:
  ann:
    parent: orgg
`;
    const refused =
      'line 5: entities.ann.parent: there is no entity "orgg", stored or in this file';
    await expect(applyManifest(repo, parseManifest(text))).rejects.toThrow(refused);
    await expect(planManifest(repo, parseManifest(text))).rejects.toThrow(refused);
    expect((await repo.limits.getSystem()).limits).toEqual([]);
    await repo.entities.create({ id: "orgg" });
    expect((await applyManifest(repo, parseManifest(text))).failed).toEqual([]);
  });

  it("an entity that exists with another parent or cascade is refused with its line", async () => {
    const repo = await store.open();
    await repo.entities.create({ id: "old" });
    await repo.entities.create({ id: "ann", parentId: "old" });
    const text = `namespace: ${repo.namespaceName}
entities:
  new: { cascade: false }
  ann:
    parent: new
    cascade: true
`;
    const planned = planManifest(repo, parseManifest(text));
    await expect(planned).rejects.toThrow(
      'line 5: entities.ann.parent: "ann" exists and has the parent "old"; move it with: entity set-parent',
    );
    await expect(planned).rejects.toThrow(
      'line 6: entities.ann.cascade: "ann" exists and does not cascade',
    );
    expect(await repo.entities.get("new")).toBeUndefined();
    await repo.entities.create({ id: "new" });
    await repo.entities.setParent("ann", "new");
    const without = parseManifest(text.replace("cascade: true\n", "\n"));
    expect((await planManifest(repo, without)).changes).toEqual([]);
  });

  it("an export has the entities of trees, and makes the same trees in an empty namespace", async () => {
    const repo = await store.open();
    await repo.entities.create({ id: "org" });
    await repo.entities.create({ id: "team-a", parentId: "org" });
    await repo.entities.create({ id: "ann", parentId: "team-a", cascade: true });
    await repo.entities.create({ id: "alone" });
    await repo.limits.setEntity("team-a", ["rpm:60"]);
    const exported = await exportManifest(repo);
    const text = printManifest(exported);
    expect(parse(text)).toMatchObject({
      entities: {
        org: { cascade: false },
        "team-a": { parent: "org", resources: {} },
        ann: { parent: "team-a", cascade: true },
      },
    });
    expect(parse(text).entities).not.toHaveProperty("alone");
    expect(parseManifest(text)).toEqual(exported);
    expect((await planManifest(repo, exported)).changes).toEqual([]);
    const other = await store.open();
    const copied = { ...parseManifest(text), namespace: other.namespaceName };
    expect((await applyManifest(other, copied)).failed).toEqual([]);
    expect((await other.entities.get("ann"))?.parentId).toBe("team-a");
    expect(printManifest(await exportManifest(other))).toBe(
      text.replace(repo.namespaceName, other.namespaceName),
    );
  });

  it("entities are the same in a CloudFormation template", () => {
    const manifest = parseManifest(FILE("a"));
    const template = parse(cfnTemplate(manifest, "limiter"), { stringKeys: true }) as {
      Resources: { TenantLimits: { Properties: Record<string, unknown> } };
    };
    expect(manifestFromProperties(template.Resources.TenantLimits.Properties)).toEqual(manifest);
  });
});
