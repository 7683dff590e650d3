/**
 * Applies that fail, die, are stopped, or meet another one. What is proved holds for every store.
 */

import { InfrastructureError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { applyManifest, planManifest } from "@zae-limiter/limiter/manifest/apply.ts";
import { readManaged, writeManaged } from "@zae-limiter/limiter/manifest/managed-record.ts";
import { emptyManifest, targetName } from "@zae-limiter/limiter/manifest/manifest.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { OpenOptions } from "@zae-limiter/limiter/repository/options.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { counts, manifestOf, NOTHING } from "../../contract/manifest/sample.ts";

let items: MemoryItemStore;
beforeEach(() => {
  items = new MemoryItemStore();
});
afterEach(() => items.close());

/** A repository over the one store of the test, like another process has it. */
const store = { open: (options: OpenOptions = {}) => Repository.over(items, options) };

describe("an apply", () => {
  it("an apply goes on after a failure, records what succeeded, and is resumed (op 50)", async () => {
    const repo = await store.open();
    const manifest = manifestOf(repo);
    const failing = brokenAt(repo, "gpt-3");
    const told: string[] = [];
    const partial = await applyManifest(failing, manifest, {
      onChange: ({ target }, error) => told.push(`${targetName(target)} ${error?.message ?? "ok"}`),
    });
    expect(counts(partial)).toEqual({ ...NOTHING, created: 3, failed: 1 });
    expect(told).toContain("gpt-3 no luck");
    const record = await readManaged(repo[INTERNALS].records);
    expect(record.targets.map(targetName)).toEqual([null, "gpt-4", "user-1/gpt-4"]);
    expect(record.unsettled.map(targetName)).toEqual(["gpt-3"]);
    expect([record.fingerprint, record.run]).toEqual([undefined, undefined]);
    const resumed = await applyManifest(repo, manifest);
    expect(counts(resumed)).toEqual({ ...NOTHING, created: 1 });
    expect((await readManaged(repo[INTERNALS].records)).unsettled).toEqual([]);
  });

  it("an apply goes on where a crash left off, and leaves nothing behind", async () => {
    const repo = await store.open();
    const crashing = brokenAt(repo, "gpt-4", new Error("the process ends here"));
    await expect(applyManifest(crashing, manifestOf(repo))).rejects.toThrow("ends here");
    // The system and gpt-3 are stored, and the record does not say so. Time passes; the file has
    // changed.
    const later = await store.open({
      namespace: repo.namespaceName,
      clock: () => Date.now() + 31_000,
    });
    const onlySystem = {
      ...emptyManifest(repo.namespaceName),
      system: { limits: [Limit.parse("rpm:10")] },
    };
    const { changes } = await planManifest(later, onlySystem);
    expect(changes.map(({ action, target }) => [action, targetName(target)])).toEqual([
      ["update", null],
      ["delete", "gpt-3"],
    ]);
    await applyManifest(later, onlySystem);
    expect(await repo.limits.listResources()).toEqual([]);
    const record = await readManaged(repo[INTERNALS].records);
    expect([record.targets.map(targetName), record.unsettled, record.run]).toEqual([
      [null],
      [],
      undefined,
    ]);
  });

  it("an apply waits for another apply no longer than allowed, and stops when its turn was taken", async () => {
    const repo = await store.open();
    const { records } = repo[INTERNALS];
    const manifest = manifestOf(repo);
    const before = await readManaged(records);
    const run = { id: "other", untilMs: Date.now() + 60_000 };
    await writeManaged(records, before, { targets: [], unsettled: [], run });
    await expect(applyManifest(repo, manifest, { waitMs: 0 })).rejects.toThrow(InfrastructureError);
    await expect(applyManifest(repo, manifest, { waitMs: 0 })).rejects.toThrow(
      /Another apply runs/,
    );
    expect(await repo.limits.listResources()).toEqual([]);
    // A plan only reads, and does not wait.
    expect((await planManifest(repo, manifest)).changes).toHaveLength(4);
    const held = await readManaged(records);
    await writeManaged(records, held, { targets: [], unsettled: [] });

    expect(counts(await applyManifest(repo, manifest, { waitMs: 0 })).created).toBe(4);
  });

  it("an apply asks for more time as it goes, and stops when its time was up and another came", async () => {
    let nowMs = Date.now();
    const repo = await store.open({ clock: () => nowMs });
    const { records } = repo[INTERNALS];
    const ends: (number | undefined)[] = [];
    const slow = delayedBy(repo, async () => {
      ends.push((await readManaged(records)).run?.untilMs);
    });
    const startMs = nowMs;
    const calm = await applyManifest(slow, manifestOf(repo), {
      onChange: () => {
        nowMs += 20_000;
      },
    });
    expect(calm.unrecorded).toBeUndefined();
    expect(ends).toEqual([startMs + 50_000, startMs + 70_000]);
    const late = delayedBy(repo, async () => {
      nowMs += 31_000;
      const record = await readManaged(records);
      await writeManaged(records, record, { ...record, run: { id: "other", untilMs: nowMs } });
    });
    const robbed = await applyManifest(late, manifestOf(repo, 11));
    expect([robbed.applied.length, robbed.skipped.length]).toEqual([2, 2]);
    expect(robbed.unrecorded?.message).toMatch(/taken over/);
  });

  it("an apply notices that another has taken over, and does not write over its record", async () => {
    const repo = await store.open();
    const { records } = repo[INTERNALS];
    let stolen: Promise<unknown> | undefined;
    const result = await applyManifest(
      delayedBy(repo, () => stolen),
      manifestOf(repo),
      {
        onChange: () => {
          stolen ??= (async () => {
            const record = await readManaged(records);
            await writeManaged(records, record, { targets: [], unsettled: record.unsettled });
          })();
        },
      },
    );
    expect(result.unrecorded?.message).toMatch(/another apply has taken over/i);
    const record = await readManaged(records);
    expect(record.targets).toEqual([]);
    // What it created is still known, so that nothing is left behind.
    expect(record.unsettled).toHaveLength(4);
    const emptied = await applyManifest(repo, emptyManifest(repo.namespaceName));
    expect(emptied.applied.length).toBe(result.applied.length);
    expect(await repo.limits.listResources()).toEqual([]);
  });

  it("an apply stops between two changes when its signal aborts, and records the changes made", async () => {
    const repo = await store.open();
    const controller = new AbortController();
    const result = await applyManifest(repo, manifestOf(repo), {
      signal: controller.signal,
      onChange: () => controller.abort(),
    });
    expect([result.applied.length, result.skipped.length]).toEqual([1, 3]);
    const record = await readManaged(repo[INTERNALS].records);
    expect([record.targets.map(targetName), record.unsettled]).toEqual([[null], []]);
    expect(counts(await applyManifest(repo, manifestOf(repo))).created).toBe(3);
  });
});

/** Returns a repository that cannot set the limits of one resource. */
function brokenAt(
  repo: Repository,
  broken: string,
  error: Error = new InfrastructureError("no luck"),
): Repository {
  return withLimits(repo, {
    setResource: async (resource, ...rest) => {
      if (resource === broken) throw error;
      return repo.limits.setResource(resource, ...rest);
    },
  });
}

/** Returns a repository that waits for something before it sets the limits of a resource. */
function delayedBy(repo: Repository, before: () => Promise<unknown> | undefined): Repository {
  return withLimits(repo, {
    setResource: async (...args) => {
      await before();
      return repo.limits.setResource(...args);
    },
  });
}

function withLimits(repo: Repository, changed: Partial<Repository["limits"]>): Repository {
  const limits = new Proxy(repo.limits, {
    get: (target, name: keyof Repository["limits"]) => {
      const method = changed[name] ?? target[name];
      return (method as (...args: unknown[]) => unknown).bind(target);
    },
  });
  return new Proxy(repo, {
    get: (target, name: keyof Repository) => (name === "limits" ? limits : target[name]),
  });
}
