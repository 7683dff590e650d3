/** Limits that an entity stores for the entities directly below it. */

import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import { milliOf } from "./balances.ts";
import { refusalOf } from "./outcomes.ts";
import type { StoreUnderTest, Subject, SubjectOptions } from "./subject.ts";

const R = "gpt-4";
const CALL = { entityId: "ann", resource: R, consume: { rpm: 1 } };
const CACHE_MS = 60_000;

/** Opens a store with the tree `org > team > ann`, in which nothing cascades. */
async function opened(store: StoreUnderTest, options: SubjectOptions = {}): Promise<Subject> {
  const subject = await store.open(options);
  const { entities, limits } = subject.repo;
  await limits.setSystem(["rpm:1000"]);
  await entities.create({ id: "org" });
  await entities.create({ id: "team", parentId: "org" });
  await entities.create({ id: "ann", parentId: "team" });
  return subject;
}

async function resolved({ repo }: Subject, entityId = "ann", resource = R): Promise<string> {
  const found = await repo.limits.resolve(entityId, resource);
  return found === undefined ? "none" : `${found.limits.map(String).join(" ")} ${found.source}`;
}

export function childrenContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("limits for children are below those of the entity and above those of the resource", async () => {
    const subject = await opened(store);
    const { limits } = subject.repo;
    const seen: string[] = [];
    const see = async (change: Promise<void>) => {
      await change;
      seen.push(await resolved(subject));
    };
    await see(limits.setResource(R, ["rpm:900"]));
    await see(limits.setChildren("team", ["rpm:20"]));
    await see(limits.setChildren("team", ["rpm:30"], { resource: R }));
    await see(limits.setEntity("ann", ["rpm:40"]));
    await see(limits.setEntity("ann", ["rpm:50"], { resource: R }));
    expect(seen).toEqual([
      "rpm:900/min resource",
      "rpm:20/min parent_default",
      "rpm:30/min parent",
      "rpm:40/min entity_default",
      "rpm:50/min entity",
    ]);
    expect((await limits.getChildren("team", { resource: R })).map(String)).toEqual(["rpm:30/min"]);
  });

  test("limits for children hold for the entities directly below, and for no others", async () => {
    const subject = await opened(store);
    await subject.repo.limits.setChildren("org", ["rpm:20"]);
    expect(await resolved(subject, "team")).toBe("rpm:20/min parent_default");
    for (const id of ["org", "ann", "stranger"]) {
      expect(await resolved(subject, id)).toBe("rpm:1000/min system");
    }
  });

  test("each child has a bucket of its own, and the refusal of one leaves the others alone", async () => {
    const subject = await opened(store);
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "bob", parentId: "team" });
    await repo.limits.setChildren("team", ["rpm:2"]);
    for (let round = 0; round < 2; round += 1) await limiter.acquire(CALL);
    expect((await refusalOf(limiter.acquire(CALL))).violations[0]?.entityId).toBe("ann");
    await limiter.acquire({ ...CALL, entityId: "bob" });
    expect(await milliOf(subject, "bob", R, "rpm")).toMatchObject({ consumed: 1000 });
  });

  test("a change of the limits for children reaches live buckets, and so does their deletion", async () => {
    const subject = await opened(store);
    const { limiter, repo } = subject;
    await limiter.acquire(CALL);
    await repo.limits.setChildren("team", ["rpm:3"]);
    await limiter.acquire(CALL);
    expect(await milliOf(subject, "ann", R, "rpm")).toMatchObject({ consumed: 2000 });
    await limiter.acquire({ ...CALL, consume: { rpm: 2 } });
    await refusalOf(limiter.acquire(CALL));
    await repo.limits.setChildren("team", ["rpm:10"]);
    expect((await refusalOf(limiter.acquire(CALL))).violations[0]?.limit.capacity).toBe(10);
    await repo.limits.deleteChildren("team");
    expect(await resolved(subject)).toBe("rpm:1000/min system");
    expect(await repo.limits.listChildrenResources()).toEqual([]);
  });

  extra("another client follows limits for children within the time of its cache", async () => {
    const subject = await opened(store);
    const other = await store.another(subject);
    await other.limiter.acquire(CALL);
    await subject.repo.limits.setChildren("team", ["rpm:2"]);
    subject.time.advance(CACHE_MS + 1);
    await other.limiter.acquire({ ...CALL, consume: { rpm: 2 } });
    expect((await refusalOf(other.limiter.acquire(CALL))).violations[0]?.limit.capacity).toBe(2);
  });

  test("an entity that moves has the limits that its new parent stores for its children", async () => {
    const subject = await opened(store);
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "other", parentId: "org" });
    await repo.limits.setChildren("team", ["rpm:2"]);
    await repo.limits.setChildren("other", ["rpm:1"]);
    await limiter.acquire(CALL);
    await repo.entities.setParent("ann", "other");
    expect(await resolved(subject)).toBe("rpm:1/min parent_default");
    await limiter.acquire(CALL);
    expect((await refusalOf(limiter.acquire(CALL))).violations[0]?.limit.capacity).toBe(1);
    await repo.entities.setParent("ann", null);
    expect(await resolved(subject)).toBe("rpm:1000/min system");
  });

  extra("an entity that gets its record after its first call has its parent's limits", async () => {
    const subject = await opened(store);
    const { limiter, repo } = subject;
    await repo.limits.setChildren("team", ["rpm:2"]);
    const call = { ...CALL, entityId: "new" };
    await limiter.acquire(call);
    await repo.entities.create({ id: "new", parentId: "team" });
    await limiter.acquire({ ...call, consume: { rpm: 2 } });
    expect((await refusalOf(limiter.acquire(call))).violations[0]?.limit.capacity).toBe(2);
  });

  test("a parent that is deleted takes the limits for its children with it", async () => {
    const subject = await opened(store);
    const { repo } = subject;
    await repo.limits.setChildren("team", ["rpm:2"]);
    await repo.limits.setChildren("team", ["rpm:3"], { resource: R });
    expect((await repo.limits.listParents(R)).entityIds).toEqual(["team"]);
    await repo.entities.delete("team");
    expect(await resolved(subject)).toBe("rpm:1000/min system");
    expect(await repo.limits.listChildrenResources()).toEqual([]);
    expect((await repo.limits.listParents(R)).entityIds).toEqual([]);
  });

  test("a total for children is each child's own, and comes before that of the resource", async () => {
    const subject = await opened(store, { totals: true });
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "bob", parentId: "team" });
    await repo.limits.setResource(TOTAL, ["rpm:9"]);
    // The default of a parent is no total.
    await repo.limits.setChildren("team", ["rpm:500"]);
    expect(await resolved(subject, "ann", TOTAL)).toBe("rpm:9/min resource");
    await repo.limits.setChildren("team", ["rpm:2"], { resource: TOTAL });
    expect(await resolved(subject, "ann", TOTAL)).toBe("rpm:2/min parent");
    await limiter.acquire(CALL);
    await limiter.acquire({ ...CALL, resource: "other" });
    const refusal = await refusalOf(limiter.acquire({ ...CALL, resource: "third" }));
    expect(refusal.violations[0]?.resource).toBe(TOTAL);
    await limiter.acquire({ ...CALL, entityId: "bob" });
  });

  extra("setting limits for children that are stored already writes no audit event", async () => {
    const { repo } = await opened(store);
    await repo.limits.setChildren("team", ["rpm:2"], { principal: "op" });
    await repo.limits.setChildren("team", ["rpm:2"], { principal: "op" });
    const events = (await repo.audit.list("team")).filter(({ action }) => action === "limits_set");
    expect(events).toHaveLength(1);
    expect(events[0]?.details).toMatchObject({ level: "children" });
  });
}
