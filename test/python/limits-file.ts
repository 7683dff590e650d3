/** Declared limits on a shared table: what either library applies, the other one recognises. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Both, SharedTable } from "./shared-table.ts";

const perMinute = (capacity: number) => ({ rpm: { capacity } });
const FIRST = {
  system: { limits: perMinute(10) },
  resources: { "gpt-4": { limits: perMinute(20) }, "gpt-3": { limits: perMinute(30) } },
  entities: { "user-1": { resources: { "gpt-4": { limits: perMinute(40) } } } },
};
/** One resource has another limit, one is gone. */
const SECOND = { ...FIRST, resources: { "gpt-4": { limits: perMinute(25) } } };

export function itAppliesLimits(table: SharedTable): void {
  /** Runs `limits plan`, `diff` or `apply` of ours with a declaration. */
  async function ours(both: Both, verb: string, declared: object): Promise<OurChanges> {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-limits-"));
    const file = join(folder, "limits.json");
    writeFileSync(file, JSON.stringify({ namespace: both.repo.namespaceName, ...declared }));
    try {
      const printed = await table.command(both, "limits", verb, "-f", file, "--json");
      return JSON.parse(printed) as OurChanges;
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  async function theirs({ python, repo }: Both, action: "plan" | "apply", declared: object) {
    const manifest = { namespace: repo.namespaceName, ...declared };
    const result = await python.provision(table.place, repo.namespaceId, action, manifest);
    expect(result.errors ?? []).toEqual([]);
    return result.changes.map((change) => `${change.action} ${change.target ?? change.level}`);
  }

  const resolved = async ({ repo }: Both, entityId: string, resource: string) =>
    (await repo.limits.resolve(entityId, resource))?.limits.map(String);

  it("limits that ours applies are managed by Python, which goes on from there", async () => {
    const both = await table.open();
    await ours(both, "apply", FIRST);
    // 0.10.3 compares no values and 0.17.0 whole items: both update all that others have stored.
    const planned = await theirs(both, "plan", FIRST);
    expect(planned.sort()).toEqual([
      "update gpt-3",
      "update gpt-4",
      "update system",
      "update user-1/gpt-4",
    ]);
    const applied = await theirs(both, "apply", SECOND);
    expect(applied).toContain("update gpt-4");
    expect(applied).toContain("delete gpt-3");
    expect(await resolved(both, "user-2", "gpt-4")).toEqual(["rpm:25/min"]);
    expect(await resolved(both, "user-2", "gpt-3")).toEqual(["rpm:10/min"]);
    expect(await resolved(both, "user-1", "gpt-4")).toEqual(["rpm:40/min"]);
    expect(differing(await ours(both, "plan", SECOND))).toEqual([]);
  });

  it("limits that Python applies are managed by ours, which goes on from there", async () => {
    const both = await table.open();
    await theirs(both, "apply", FIRST);
    expect(differing(await ours(both, "plan", FIRST))).toEqual([]);
    expect(differing(await ours(both, "diff", FIRST))).toEqual([]);
    const applied = await ours(both, "apply", SECOND);
    expect(differing(applied)).toEqual(["delete gpt-3", "update gpt-4"]);
    expect(applied.errors).toEqual([]);
    expect((await ours(both, "plan", SECOND)).changes).toEqual([]);
    const read = (name: string) =>
      both.python.repo<{ name: string; capacity: number }[]>("get_resource_defaults", [name]);
    expect((await read("gpt-4")).map(({ name, capacity }) => [name, capacity])).toEqual([
      ["rpm", 25],
    ]);
    expect(await read("gpt-3")).toEqual([]);
    const again = await theirs(both, "plan", SECOND);
    expect(again.every((change) => change.startsWith("update"))).toBe(true);
  });
}

interface OurChanges {
  readonly changes: readonly {
    readonly action: string;
    readonly target?: string | null;
    readonly reason?: string;
  }[];
  readonly errors?: readonly string[];
}

/** The changes of values. Python registers nothing that it applies, and ours makes up for that. */
function differing({ changes }: OurChanges): string[] {
  return changes
    .filter(({ reason }) => reason !== "unregistered")
    .map(({ action, target }) => `${action} ${target}`)
    .sort();
}
