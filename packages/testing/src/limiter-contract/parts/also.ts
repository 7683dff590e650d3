/** Several resources in one acquire: all are granted, or none is consumed. */

import { ResourceDisabled, ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { milliOf } from "../balances.ts";
import { failureOf, invalidityOf, lines, refusalOf, thrownBy } from "../outcomes.ts";
import type { StoreUnderTest, Subject } from "../subject.ts";

const CALL = {
  entityId: "key-1",
  resource: "chat",
  consume: { rpd: 1 },
  also: [
    { resource: "embed", consume: { rpd: 2 } },
    { resource: "search", consume: { rpd: 3 } },
  ],
};
const RESOURCES = ["chat", "embed", "search"];

async function opened(store: StoreUnderTest, cascade = false): Promise<Subject> {
  const subject = await store.open();
  const { repo } = subject;
  await repo.limits.setSystem(["rpd:10/day"]);
  await repo.entities.create({ id: "org" });
  await repo.entities.create({ id: "key-1", parentId: "org", cascade });
  return subject;
}

async function consumed(subject: Subject, entityId = "key-1"): Promise<number[]> {
  const found = await Promise.all(
    RESOURCES.map((resource) => milliOf(subject, entityId, resource, "rpd")),
  );
  return found.map((milli) => (milli?.consumed ?? 0) / 1000);
}

export function alsoContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  test("an acquire of several resources consumes from all of them, and its lease corrects each", async () => {
    const subject = await opened(store);
    const lease = await subject.limiter.acquire(CALL);
    expect(lease.resources).toEqual(RESOURCES);
    expect(lease.consumed).toEqual({ rpd: 1 });
    expect(lines(lease.statuses)).toHaveLength(3);
    expect(await consumed(subject)).toEqual([1, 2, 3]);
    const embed = lease.of("embed");
    expect(embed.consumed).toEqual({ rpd: 2 });
    embed.adjust({ rpd: 4 });
    lease.release({ rpd: 1 });
    await lease.of("search").consume({ rpd: 1 });
    await lease.commit();
    expect(await consumed(subject)).toEqual([0, 6, 4]);
    expect([lease.of("chat").consumed, embed.consumed]).toEqual([{}, { rpd: 6 }]);
    expect(thrownBy(() => lease.of("typo"))).toBeInstanceOf(ValidationError);
  });

  test("an acquire of several resources consumes from none when one has too little", async () => {
    const subject = await opened(store);
    const { limiter } = subject;
    await limiter.acquire({ entityId: "key-1", resource: "search", consume: { rpd: 8 } });
    const refusal = await refusalOf(limiter.acquire(CALL));
    expect(refusal.violations.map(({ resource }) => resource)).toEqual(["search"]);
    expect(refusal.statuses.map(({ resource, available }) => [resource, available])).toEqual([
      ["chat", 10],
      ["embed", 10],
      ["search", 2],
    ]);
    expect(await consumed(subject)).toEqual([0, 0, 8]);
    const lease = await limiter.acquire({ ...CALL, also: CALL.also.slice(0, 1) });
    await lease.rollback();
    expect(await consumed(subject)).toEqual([0, 0, 8]);
  });

  extra(
    "an acquire of several resources cascades for each, by limits, switches and policies of its own",
    async () => {
      const subject = await opened(store, true);
      const { limiter, repo } = subject;
      await repo.limits.setCascade({ resource: "search" }, false);
      await repo.limits.setResource("embed", ["rpd:1/day soft"]);
      const lease = await limiter.acquire(CALL);
      expect([lease.overdrawn, lease.of("embed").overdrawn]).toEqual([[], ["rpd"]]);
      expect(await consumed(subject, "org")).toEqual([1, 2, 0]);
      await repo.limits.bypass({ entityId: "key-1", resource: "chat" });
      expect((await limiter.acquire(CALL)).bypassed).toBe(true);
      await repo.limits.setEntity("org", ["rpd:3/day"], { resource: "chat" });
      await refusalOf(limiter.acquire({ ...CALL, consume: { rpd: 4 } }));
      expect(await consumed(subject)).toEqual([2, 4, 6]);
      await repo.limits.disable({ resource: "search" });
      expect(await failureOf(limiter.acquire({ ...CALL, consume: { rpd: 9 } }))).toBeInstanceOf(
        ResourceDisabled,
      );
      expect(await consumed(subject)).toEqual([2, 4, 6]);
    },
  );

  extra("a wrong acquire of several resources is refused before anything is consumed", async () => {
    const subject = await opened(store);
    const { limiter } = subject;
    const many = Array.from({ length: 16 }, (_, at) => ({ resource: `r${at}`, consume: {} }));
    const wrong = [
      { ...CALL, also: [{ resource: "chat", consume: { rpd: 1 } }] },
      { ...CALL, also: [CALL.also[0], CALL.also[0]] },
      { ...CALL, also: many },
      { ...CALL, limits: ["rpd:1"] },
      { ...CALL, also: [{ resource: "embed", consume: { typo: 1 } }] },
      { ...CALL, also: [{ resource: "embed", consume: { rpd: -1 } }] },
      { ...CALL, also: {} },
    ];
    for (const request of wrong) {
      expect(await invalidityOf(limiter.acquire(request as never))).toBeInstanceOf(ValidationError);
    }
    expect(await consumed(subject)).toEqual([0, 0, 0]);
  });

  extra(
    "an acquire of several resources waits until all have enough, and can be aborted",
    async () => {
      const subject = await store.open({ virtualTimer: true });
      const { limiter, repo, time } = subject;
      await repo.limits.setSystem(["rpd:10/day"]);
      await limiter.acquire({ entityId: "key-1", resource: "embed", consume: { rpd: 10 } });
      const waiting = limiter.acquire({ ...CALL, maxWaitSeconds: 90_000 });
      expect((await time.until(waiting)).resources).toEqual(RESOURCES);
      const end = new AbortController();
      const call = { ...CALL, maxWaitSeconds: 90_000, signal: end.signal };
      const aborted = failureOf(limiter.acquire(call));
      end.abort(new Error("gone"));
      expect(await aborted).toMatchObject({ message: "gone" });
      await refusalOf(limiter.acquire({ ...CALL, maxWaitSeconds: 1 }));
    },
  );
}
