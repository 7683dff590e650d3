/** The plan: values compared, everything in order, nothing touched that is not managed. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { ending, isSettled } from "@zae-limiter/limiter/manifest/apply.ts";
import { fingerprintOf } from "@zae-limiter/limiter/manifest/fingerprint.ts";
import type { ManagedRecord } from "@zae-limiter/limiter/manifest/managed-record.ts";
import {
  emptyManifest,
  type LevelConfig,
  SYSTEM_TARGET,
  type Target,
  targetKey,
  targetName,
} from "@zae-limiter/limiter/manifest/manifest.ts";
import { parseManifest } from "@zae-limiter/limiter/manifest/parse-manifest.ts";
import {
  changeJson,
  type LimitPlan,
  planChanges,
  type StoredLevel,
} from "@zae-limiter/limiter/manifest/plan.ts";
import { describe, expect, test } from "vitest";

const resource = (name: string): Target => ({ level: "resource", resource: name });
const entity = (entityId: string, name: string): Target => ({
  level: "entity",
  entityId,
  resource: name,
});
const level = (...limits: string[]): LevelConfig => ({ limits: limits.map(Limit.parse) });

/** A store by the keys of its places. */
function storing(levels: readonly [Target, LevelConfig][], ...unregistered: Target[]) {
  const aside = new Set(unregistered.map(targetKey));
  const byKey = new Map(levels.map(([target, config]) => [targetKey(target), config]));
  return (target: Target): StoredLevel | undefined => {
    const config = byKey.get(targetKey(target));
    return config && { config, registered: !aside.has(targetKey(target)) };
  };
}

const UNMANAGED = { targets: [], unsettled: [] };
const shown = ({ changes }: LimitPlan) =>
  changes.map(({ action, target }) => `${action} ${targetName(target) ?? "system"}`);

const MANIFEST = parseManifest(`
namespace: n
system: { on_unavailable: block, limits: { rpm: { capacity: 100 } } }
resources:
  b: { limits: { rpm: { capacity: 2 } } }
  a: { limits: { rpm: { capacity: 1 } } }
entities:
  u: { resources: { b: { limits: { rpm: { capacity: 3 } } }, _default_: { limits: { rpm: { capacity: 4 } } } } }
`);
const SYSTEM: LevelConfig = { ...level("rpm:100"), onUnavailable: "block" };
const ALL: readonly [Target, LevelConfig][] = [
  [SYSTEM_TARGET, SYSTEM],
  [resource("a"), level("rpm:1")],
  [resource("b"), level("rpm:2")],
  [entity("u", "b"), level("rpm:3")],
  [entity("u", "_default_"), level("rpm:4")],
];
const allManaged = { targets: ALL.map(([target]) => target), unsettled: [] };

describe("a plan", () => {
  test("a plan creates everything in an empty store, from general to special", () => {
    const plan = planChanges(MANIFEST, storing([]), UNMANAGED);
    expect(shown(plan)).toEqual([
      "create system",
      "create a",
      "create b",
      "create u/_default_",
      "create u/b",
    ]);
    expect(plan.changes[0]?.after).toEqual(SYSTEM);
  });

  test("a plan has no changes where every value is as declared", () => {
    const plan = planChanges(MANIFEST, storing(ALL), allManaged);
    expect(plan).toEqual({ namespace: "n", changes: [], unchanged: 5, adopted: [], forgotten: [] });
  });

  test("a plan takes over what is already as declared, without a change", () => {
    const plan = planChanges(MANIFEST, storing(ALL), UNMANAGED);
    expect(plan.changes).toEqual([]);
    expect(plan.adopted).toHaveLength(5);
  });

  test("updates what differs in any value, and shows both sides", () => {
    const stored = storing([
      [SYSTEM_TARGET, level("rpm:100")],
      [resource("a"), level("rpm:1/min:2")],
      [resource("b"), level("rpm:2", "tpm:3")],
      ...ALL.slice(3),
    ]);
    const plan = planChanges(MANIFEST, stored, allManaged);
    expect(shown(plan)).toEqual(["update system", "update a", "update b"]);
    const [system, a] = plan.changes.map(changeJson);
    expect(system?.before).toEqual({ limits: [Limit.parse("rpm:100").toJSON()] });
    expect(system?.after).toMatchObject({ on_unavailable: "block" });
    expect(a?.before?.limits[0]).toMatchObject({ capacity: 2, refill_amount: 1 });
    expect(a?.after?.limits[0]).toMatchObject({ capacity: 1, refill_amount: 1 });
  });

  test("updates what cannot be read, and what registries do not know", () => {
    const stored = (target: Target) =>
      target.level === "system"
        ? { registered: true }
        : storing(ALL, resource("a"), entity("u", "b"))(target);
    const plan = planChanges(MANIFEST, stored, allManaged);
    expect(plan.changes.map(({ reason }) => reason)).toEqual([
      "unreadable",
      "unregistered",
      "unregistered",
    ]);
  });

  test("a plan removes what it manages and the file no longer has, after everything else", () => {
    const plan = planChanges(
      parseManifest("namespace: n\nresources: { z: { limits: { rpm: { capacity: 1 } } } }"),
      storing([...ALL, [resource("by-hand"), level("rpm:1")]]),
      allManaged,
    );
    expect(shown(plan)).toEqual([
      "create z",
      "delete system",
      "delete a",
      "delete b",
      "delete u/_default_",
      "delete u/b",
    ]);
    expect(plan.changes[1]?.before).toEqual(SYSTEM);
  });

  test("a plan forgets entries that other tools have removed", () => {
    const plan = planChanges(emptyManifest("n"), storing([]), allManaged);
    expect(plan.changes).toEqual([]);
    expect(plan.forgotten).toHaveLength(5);
  });

  test("a plan removes what an apply began to create and did not live to record", () => {
    const managed = { targets: [], unsettled: [resource("a"), resource("b")] };
    const plan = planChanges(
      emptyManifest("n"),
      storing([[resource("a"), level("rpm:1")]]),
      managed,
    );
    expect(shown(plan)).toEqual(["delete a"]);
    expect(plan.forgotten).toEqual([resource("b")]);
  });
});

describe("the record of what is managed", () => {
  const record: ManagedRecord = {
    targets: [resource("old"), resource("kept")],
    unsettled: [],
    version: 1,
    asRead: [],
  };
  const stored = storing([
    [resource("old"), level("rpm:1")],
    [resource("kept"), level("rpm:1")],
  ]);
  const manifest = parseManifest(`
namespace: n
resources:
  kept: { limits: { rpm: { capacity: 2 } } }
  x: { limits: { rpm: { capacity: 2 } } }
  y: { limits: { rpm: { capacity: 2 } } }
`);
  const plan = planChanges(manifest, stored, record);
  const [kept, x, y, old] = plan.changes as [never, never, never, never];

  test("the record of what is managed has what succeeded, and nothing else", () => {
    const content = ending(record, plan, { applied: [kept, x, y, old], failed: [], skipped: [] });
    expect(content.targets).toEqual([resource("kept"), resource("x"), resource("y")]);
    expect(content.unsettled).toEqual([]);
  });

  test("the record of what is managed keeps a failed removal, and doubts a failed creation", () => {
    const content = ending(record, plan, {
      applied: [y],
      failed: [{ change: kept }, { change: x }, { change: old }],
      skipped: [],
    });
    expect(content.targets).toEqual([resource("old"), resource("kept"), resource("y")]);
    expect(content.unsettled).toEqual([resource("x")]);
  });

  test("the record of what is managed forgets a creation that was not attempted", () => {
    const content = ending(record, plan, { applied: [kept], failed: [], skipped: [x, y, old] });
    expect(content.targets).toEqual([resource("old"), resource("kept")]);
    expect(content.unsettled).toEqual([]);
  });

  test("the record of what is managed is not written again when nothing has changed", () => {
    const settled = planChanges(emptyManifest("n"), storing([]), UNMANAGED);
    const before = { ...record, targets: [], fingerprint: "f" };
    expect(isSettled(before, settled, "f")).toBe(true);
    expect(isSettled(before, settled, "g")).toBe(false);
    expect(isSettled({ ...before, unsettled: [resource("x")] }, settled, "f")).toBe(false);
    expect(isSettled({ ...before, run: { id: "r", untilMs: 1 } }, settled, "f")).toBe(false);
  });
});

describe("the fingerprint", () => {
  test("the fingerprint is the one that the Python library has recorded for the same manifest", () => {
    const manifest = parseManifest(`
namespace: tenant-a
entities: { user-premium: { resources: { gpt-4: { limits: { rpm: { capacity: 1000 } } } } } }
resources:
  gpt-4:
    limits:
      tpm: { capacity: 50000, refill_amount: 25000, refill_period: 30 }
      rpm: { capacity: 500 }
system: { limits: { rpm: { capacity: 1000 } }, on_unavailable: block }
`);
    // From test/fixtures/golden/30-provisioner.json.
    expect(fingerprintOf(manifest)).toBe(
      "sha256:a7956884fb3323443fc842d4ba55a386a1069813cacc064becb0eb967d2285f6",
    );
  });

  test("the fingerprint is that of what the file says, not of how it is written", () => {
    const short = parseManifest("namespace: ä\nsystem: { limits: { rpm: { capacity: 5 } } }");
    const long = parseManifest(
      "{ system: { limits: { rpm: { refill_period: 60, capacity: 1, burst: 5 } } }, namespace: ä }",
    );
    expect(fingerprintOf(long)).toBe(fingerprintOf(short));
    expect(fingerprintOf(parseManifest("namespace: ä"))).not.toBe(fingerprintOf(short));
  });
});
