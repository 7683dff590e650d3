/** Limits that a program brings along at its start: an operator's changes stay. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";

const texts = (limits: readonly unknown[]) => limits.map(String);

/** Every level, with what sets it, what ensures it, what it has, and its subject in the audit. */
const LEVELS = [
  {
    subject: "$SYSTEM",
    set: ({ limits }: Repository, limit: string) => limits.setSystem([limit]),
    ensure: ({ limits }: Repository, limit: string) => limits.ensureSystem([limit]),
    get: async ({ limits }: Repository) => (await limits.getSystem()).limits,
  },
  {
    subject: "$RESOURCE:gpt-4",
    set: ({ limits }: Repository, limit: string) => limits.setResource("gpt-4", [limit]),
    ensure: ({ limits }: Repository, limit: string) => limits.ensureResource("gpt-4", [limit]),
    get: ({ limits }: Repository) => limits.getResource("gpt-4"),
  },
  {
    subject: "key-1",
    set: ({ limits }: Repository, limit: string) => limits.setEntity("key-1", [limit]),
    ensure: ({ limits }: Repository, limit: string) => limits.ensureEntity("key-1", [limit]),
    get: ({ limits }: Repository) => limits.getEntity("key-1"),
  },
  {
    subject: "key-2",
    set: ({ limits }: Repository, limit: string) =>
      limits.setEntity("key-2", [limit], { resource: "gpt-4" }),
    ensure: ({ limits }: Repository, limit: string) =>
      limits.ensureEntity("key-2", [limit], { resource: "gpt-4" }),
    get: ({ limits }: Repository) => limits.getEntity("key-2", { resource: "gpt-4" }),
  },
];

describeStores("ensured limits", (store) => {
  it("limits are ensured where a level has none, and an operator's change stays", async () => {
    const repo = await store.open();
    for (const { subject, set, ensure, get } of LEVELS) {
      expect(await ensure(repo, "rpm:3"), subject).toBe(true);
      await set(repo, "rpm:500");
      expect(await ensure(repo, "rpm:3"), subject).toBe(false);
      expect(texts(await get(repo)), subject).toEqual(["rpm:500/min"]);
      expect(await repo.audit.list(subject), subject).toHaveLength(2);
    }
  });

  it("setting the limits that are stored writes and audits nothing", async () => {
    const repo = await store.open();
    for (const { subject, set, get } of LEVELS) {
      for (let start = 1; start <= 3; start += 1) await set(repo, "rpm:3");
      expect(texts(await get(repo)), subject).toEqual(["rpm:3/min"]);
      expect(await repo.audit.list(subject), subject).toHaveLength(1);
    }
  });

  it("a limit that became soft, or lost its company, is a change", async () => {
    const repo = await store.open();
    const { limits, audit } = repo;
    await limits.setResource("gpt-4", ["rpm:3", "tpm:5"]);
    await limits.setResource("gpt-4", ["rpm:3"]);
    await limits.setResource("gpt-4", ["rpm:3 soft"]);
    await limits.setResource("gpt-4", ["rpm:3 soft"]);
    await limits.setResource("gpt-4", ["rpm:3"]);
    expect(texts(await limits.getResource("gpt-4"))).toEqual(["rpm:3/min"]);
    expect(await audit.list("$RESOURCE:gpt-4")).toHaveLength(4);
  });

  it("a setting for outages is a change, also with the limits that are stored", async () => {
    const { limits, audit } = await store.open();
    await limits.ensureSystem(["rpm:3"], { onUnavailable: "allow" });
    await limits.setSystem(["rpm:3"], { onUnavailable: "allow" });
    expect((await limits.getSystem()).onUnavailable).toBe("allow");
    await limits.setSystem(["rpm:3"], { onUnavailable: null });
    await limits.setSystem(["rpm:3"], { onUnavailable: null });
    expect((await limits.getSystem()).onUnavailable).toBeUndefined();
    expect(await audit.list("$SYSTEM")).toHaveLength(2);
  });

  it("a switch alone is no limit, and stays where limits are ensured", async () => {
    const { limits } = await store.open();
    await limits.disable({ entityId: "key-1" });
    expect(await limits.ensureEntity("key-1", ["rpm:3"])).toBe(true);
    expect((await limits.level({ entityId: "key-1" })).state).toBe("disabled");
  });

  it("ensuring limits that another process has set lets this one see them at once", async () => {
    const mine = await store.open();
    const other = await store.open({ namespace: mine.namespaceName });
    expect(await mine.limits.resolve("key-1", "gpt-4")).toBeUndefined();
    await other.limits.setSystem(["rpm:2"]);
    expect(await mine.limits.ensureSystem(["rpm:9"])).toBe(false);
    const resolved = await mine.limits.resolve("key-1", "gpt-4");
    expect(texts(resolved?.limits ?? [])).toEqual(["rpm:2/min"]);
  });

  it("limits ensured by several processes at once are written once", async () => {
    const first = await store.open();
    const again = { namespace: first.namespaceName };
    const repos = [first, await store.open(again), await store.open(again)];
    const wrote = await Promise.all(
      repos.map(({ limits }, at) => limits.ensureResource("gpt-4", [`rpm:${at + 1}`])),
    );
    expect(wrote.filter(Boolean)).toHaveLength(1);
    expect(await first.audit.list("$RESOURCE:gpt-4")).toHaveLength(1);
  });

  it("ensured limits are checked, also where others are stored", async () => {
    const { limits } = await store.open();
    await limits.setSystem(["rpm:2"]);
    await expect(limits.ensureSystem(["rpm:0"])).rejects.toThrow("rpm");
    const options = { resource: "gpt-4" };
    await expect(limits.ensureResource("gpt-4", ["rpm:1"], options as object)).rejects.toThrow(
      "resource",
    );
  });

  it("a limiter serves by the limits that its program ensured", async () => {
    const repo = await store.open();
    await repo.limits.ensureSystem(["rpm:1"]);
    const limiter = new RateLimiter(repo);
    const request = { entityId: "key-1", resource: "gpt-4", consume: { rpm: 1 } };
    await (await limiter.acquire(request)).commit();
    expect((await limiter.tryAcquire(request)).granted).toBe(false);
  });
});
