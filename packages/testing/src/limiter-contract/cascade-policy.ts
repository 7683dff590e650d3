/** Cascade per resource, and entities that move to another parent. */

import { EntityNotFoundError, ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { milliOf } from "./balances.ts";
import { failureOf, invalidityOf } from "./outcomes.ts";
import type { StoreUnderTest, Subject } from "./subject.ts";

const R = "gpt-4";
const LIMITS = ["rpd:100/day"];
const CALL = { entityId: "key-1", resource: R, consume: { rpd: 1 } };

/** Opens a store with a tree `top > org > key-1` in which nothing cascades by itself. */
async function opened(store: StoreUnderTest, cascade = false): Promise<Subject> {
  const subject = await store.open();
  const { repo } = subject;
  await repo.limits.setSystem(LIMITS);
  await repo.entities.create({ id: "top" });
  await repo.entities.create({ id: "org", parentId: "top", cascade });
  await repo.entities.create({ id: "key-1", parentId: "org", cascade });
  return subject;
}

async function consumed(subject: Subject, ...ids: string[]): Promise<(number | undefined)[]> {
  const found = await Promise.all(ids.map((id) => milliOf(subject, id, R, "rpd")));
  return found.map((milli) => (milli === undefined ? undefined : milli.consumed / 1000));
}

export function cascadePolicyContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("a cascade policy of a resource is followed at every step until it is removed", async () => {
    const subject = await opened(store);
    const { limiter, repo } = subject;
    await limiter.acquire(CALL);
    await repo.limits.setCascade({ resource: R }, true);
    for (let round = 0; round < 2; round += 1) await limiter.acquire(CALL);
    expect(await consumed(subject, "key-1", "org", "top")).toEqual([3, 2, 2]);
    await limiter.acquire({ ...CALL, resource: "other" });
    expect(await milliOf(subject, "org", "other", "rpd")).toBeUndefined();
    await repo.limits.setCascade({ resource: R }, null);
    await limiter.acquire(CALL);
    expect(await consumed(subject, "key-1", "org", "top")).toEqual([4, 2, 2]);
  });

  extra(
    "a cascade policy of an entity outranks that of the resource, and the flag of the entity",
    async () => {
      const subject = await opened(store, true);
      const { limiter, repo } = subject;
      await limiter.acquire(CALL);
      await repo.limits.setCascade({ resource: R }, false);
      await limiter.acquire(CALL);
      expect(await consumed(subject, "key-1", "org", "top")).toEqual([2, 1, 1]);
      await repo.limits.setCascade({ entityId: "key-1" }, true);
      await limiter.acquire(CALL);
      expect(await consumed(subject, "key-1", "org", "top")).toEqual([3, 2, 1]);
      await repo.limits.setCascade({ entityId: "key-1", resource: R }, false);
      await limiter.acquire(CALL);
      expect(await consumed(subject, "key-1", "org", "top")).toEqual([4, 2, 1]);
      const level = await repo.limits.level({ entityId: "key-1", resource: R });
      expect(level.cascade).toBe(false);
    },
  );

  extra(
    "a cascade policy reaches another client within the time that limits are cached",
    async () => {
      const subject = await opened(store);
      const other = await store.another(subject);
      for (let round = 0; round < 2; round += 1) await other.limiter.acquire(CALL);
      await subject.repo.limits.setCascade({ resource: R }, true);
      subject.time.advance(60_001);
      await other.limiter.acquire(CALL);
      expect(await consumed(subject, "key-1", "org", "top")).toEqual([3, 1, 1]);
    },
  );

  extra("a cascade policy counts for an entity that was used before it was created", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(LIMITS);
    await repo.limits.setCascade({ resource: R }, true);
    await limiter.acquire(CALL);
    await repo.entities.create({ id: "org" });
    await repo.entities.create({ id: "key-1", parentId: "org" });
    await limiter.acquire(CALL);
    expect(await consumed(subject, "key-1", "org")).toEqual([2, 1]);
    await invalidityOf(repo.limits.setCascade({ resource: R }, "yes" as never));
  });
}

export function moveContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("a move consumes from the new parent from then on, and leaves the old one as it is", async () => {
    const subject = await opened(store, true);
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "team" });
    const other = await store.another(subject);
    const lease = await limiter.acquire(CALL);
    await other.limiter.acquire(CALL);
    const moved = await repo.entities.setParent("key-1", "team", { principal: "ops" });
    expect(moved).toMatchObject({ id: "key-1", parentId: "team", cascade: true });
    await limiter.acquire(CALL);
    await other.limiter.acquire(CALL);
    expect(await consumed(subject, "key-1", "org", "top", "team")).toEqual([4, 2, 2, 2]);
    // The lease was charged to the old parent, and returns it there.
    await lease.rollback();
    expect(await consumed(subject, "key-1", "org", "top", "team")).toEqual([3, 1, 1, 2]);
    expect((await repo.entities.children("org")).map(({ id }) => id)).toEqual([]);
    expect((await repo.entities.children("team")).map(({ id }) => id)).toEqual(["key-1"]);
    const [event] = await repo.audit.list("key-1");
    expect(event).toMatchObject({
      action: "entity_parent_changed",
      principal: "ops",
      details: { old_parent_id: "org", parent_id: "team", pgen: 1 },
    });
  });

  extra("a move to no parent ends the cascade, and a repeated one changes nothing", async () => {
    const subject = await opened(store, true);
    const { limiter, repo } = subject;
    await limiter.acquire(CALL);
    expect((await repo.entities.setParent("key-1", null)).parentId).toBeUndefined();
    await repo.entities.setParent("key-1", null);
    await limiter.acquire(CALL);
    expect(await consumed(subject, "key-1", "org", "top")).toEqual([2, 1, 1]);
    expect(await repo.audit.list("key-1")).toHaveLength(2);
    await repo.entities.setParent("key-1", "top");
    await limiter.acquire(CALL);
    expect(await consumed(subject, "key-1", "org", "top")).toEqual([3, 1, 2]);
  });

  extra("a move of an inner entity takes its children along", async () => {
    const subject = await opened(store, true);
    const { limiter, repo } = subject;
    await limiter.acquire(CALL);
    await repo.entities.create({ id: "new-top" });
    await repo.entities.setParent("org", "new-top");
    await limiter.acquire(CALL);
    expect(await consumed(subject, "key-1", "org", "top", "new-top")).toEqual([2, 2, 1, 1]);
  });

  extra(
    "a move that would make no tree is refused, and so is one of or to an unknown entity",
    async () => {
      const { repo } = await opened(store);
      const { entities } = repo;
      for (const parent of ["top", "key-1", "org"]) {
        expect(await failureOf(entities.setParent("top", parent))).toBeInstanceOf(ValidationError);
      }
      expect(await failureOf(entities.setParent("key-1", "x"))).toBeInstanceOf(EntityNotFoundError);
      expect(await failureOf(entities.setParent("x", "top"))).toBeInstanceOf(EntityNotFoundError);
      await entities.create({ id: "root" });
      for (let depth = 1; depth <= 8; depth += 1) {
        await entities.create({
          id: `d${depth}`,
          parentId: depth === 1 ? "root" : `d${depth - 1}`,
        });
      }
      expect(await failureOf(entities.setParent("key-1", "d8"))).toBeInstanceOf(ValidationError);
      expect((await entities.setParent("key-1", "d7")).parentId).toBe("d7");
    },
  );

  extra("a move and its opposite at the same time cannot both succeed", async () => {
    const { repo } = await store.open();
    await repo.entities.create({ id: "a" });
    await repo.entities.create({ id: "b" });
    const results = await Promise.allSettled([
      repo.entities.setParent("a", "b"),
      repo.entities.setParent("b", "a"),
    ]);
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });
}
