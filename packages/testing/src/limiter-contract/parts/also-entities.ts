/** Several entities in one acquire: a shared quota, a cost centre. All are granted, or none. */

import { ResourceDisabled, ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import { milliOf } from "../balances.ts";
import { failureOf, invalidityOf, lines, refusalOf, thrownBy } from "../outcomes.ts";
import type { StoreUnderTest, Subject } from "../subject.ts";

const CALL = { entityId: "key-1", resource: "chat", consume: { rpd: 1 } };
const PROVIDER = { entityId: "upstream:openai", resource: "chat" };

/** Opens a limiter: `key-1` cascades to `org`, and the provider to none. */
async function opened(store: StoreUnderTest): Promise<Subject> {
  const subject = await store.open();
  const { repo } = subject;
  await repo.limits.setSystem(["rpd:10/day"]);
  await repo.entities.create({ id: "org" });
  await repo.entities.create({ id: "key-1", parentId: "org", cascade: true });
  return subject;
}

async function used(subject: Subject, ...entities: string[]): Promise<number[]> {
  const found = await Promise.all(
    entities.map((entityId) => milliOf(subject, entityId, "chat", "rpd")),
  );
  return found.map((milli) => (milli?.consumed ?? 0) / 1000);
}

export function alsoEntitiesContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;
  const all = ["key-1", "org", PROVIDER.entityId];

  test("a part of another entity is consumed, corrected and refunded with the lease", async () => {
    const subject = await opened(store);
    const { limiter } = subject;
    const also = [{ ...PROVIDER, consume: { rpd: 3 } }];
    const lease = await limiter.acquire({ ...CALL, also });
    expect(lines(lease.statuses)).toEqual([
      "key-1/chat rpd 1/9",
      "org/chat rpd 1/9",
      "upstream:openai/chat rpd 3/7",
    ]);
    expect(await used(subject, ...all)).toEqual([1, 1, 3]);
    const part = lease.of("chat", { entityId: PROVIDER.entityId });
    expect([lease.consumed, lease.of("chat").consumed, part.consumed]).toEqual([
      { rpd: 1 },
      { rpd: 1 },
      { rpd: 3 },
    ]);
    part.settle({ rpd: 2 });
    lease.adjust({ rpd: 1 });
    await part.consume({ rpd: 4 });
    await lease.flush();
    expect(await used(subject, ...all)).toEqual([2, 2, 6]);
    expect(lease.resources).toEqual(["chat"]);
    await lease.rollback();
    expect(await used(subject, ...all)).toEqual([0, 0, 0]);
    expect(thrownBy(() => lease.of("chat", { entityId: "typo" }))).toBeInstanceOf(ValidationError);
  });

  test("a part of another entity that has too little refuses the whole call", async () => {
    const subject = await opened(store);
    const { limiter } = subject;
    await limiter.acquire({ ...PROVIDER, consume: { rpd: 9 } });
    const also = [{ ...PROVIDER, consume: { rpd: 2 } }];
    const refusal = await refusalOf(limiter.acquire({ ...CALL, also }));
    expect(lines(refusal.violations)).toEqual(["upstream:openai/chat rpd 2/1!"]);
    expect(await used(subject, ...all)).toEqual([0, 0, 9]);
  });

  test("a part with limits of its own counts by them, and asks no stored limit and no total", async () => {
    const subject = await opened(store);
    const { limiter, repo } = subject;
    await repo.limits.setEntity("tag:x", ["rpd:1/day"]);
    await repo.limits.setResource(TOTAL, ["rpd:5/day"]);
    const limits = ["rpd:100/day", "usd:$1/day UTC soft"];
    const part = {
      entityId: "tag:x",
      resource: "chat",
      consume: { rpd: 3, usd: 2_000_000 },
      limits,
    };
    const lease = await limiter.acquire({ ...CALL, also: [part], totals: true });
    expect(lines(lease.statuses)).toEqual([
      "key-1/chat rpd 1/9",
      "org/chat rpd 1/9",
      "tag:x/chat rpd 3/97",
      "tag:x/chat usd 2000000/-1000000",
      "key-1/@all rpd 1/4",
      "org/@all rpd 1/4",
    ]);
    const tagged = lease.of("chat", { entityId: "tag:x" });
    tagged.settle({ usd: 500_000 });
    await tagged.consume({ rpd: 2 });
    await lease.commit();
    expect(tagged.consumed).toEqual({ rpd: 5, usd: 500_000 });
    expect(await milliOf(subject, "tag:x", TOTAL, "rpd")).toBe(undefined);
  });

  test("parts that reach the same bucket are added up and decided once", async () => {
    const subject = await opened(store);
    const { limiter } = subject;
    const also = [{ entityId: "org", resource: "chat", consume: { rpd: 4 } }];
    const lease = await limiter.acquire({ ...CALL, also });
    expect(lines(lease.statuses)).toEqual(["key-1/chat rpd 1/9", "org/chat rpd 5/5"]);
    const org = lease.of("chat", { entityId: "org" });
    expect([lease.consumed, org.consumed]).toEqual([{ rpd: 1 }, { rpd: 4 }]);
    org.release({ rpd: 3 });
    lease.adjust({ rpd: 1 });
    await lease.flush();
    expect(await used(subject, "key-1", "org")).toEqual([2, 3]);
    expect(thrownBy(() => org.release({ rpd: 2 }))).toBeInstanceOf(ValidationError);
    const refusal = await refusalOf(limiter.acquire({ ...CALL, consume: { rpd: 4 }, also }));
    expect(lines(refusal.violations)).toEqual(["org/chat rpd 8/7!"]);
    expect(await used(subject, "key-1", "org")).toEqual([2, 3]);
    await lease.rollback();
    expect(await used(subject, "key-1", "org")).toEqual([0, 0]);
  });

  extra("a part of another entity has the cascade and the switches of that entity", async () => {
    const subject = await opened(store);
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "centre" });
    await repo.entities.create({ id: "cost", parentId: "centre", cascade: true });
    const also = [{ entityId: "cost", resource: "chat", consume: { rpd: 2 } }];
    await limiter.acquire({ ...CALL, also });
    expect(await used(subject, "key-1", "org", "cost", "centre")).toEqual([1, 1, 2, 2]);
    await repo.limits.bypass({ entityId: "cost", resource: "chat" });
    const lease = await limiter.acquire({
      ...CALL,
      also: [{ ...also[0], consume: { rpd: 7 } }] as never,
    });
    expect([lease.bypassed, lease.of("chat", { entityId: "cost" }).bypassed]).toEqual([
      false,
      true,
    ]);
    await repo.limits.disable({ entityId: "centre", resource: "chat" });
    expect(await failureOf(limiter.acquire({ ...CALL, also }))).toBeInstanceOf(ResourceDisabled);
    expect(await used(subject, "key-1", "org", "cost", "centre")).toEqual([2, 2, 9, 9]);
  });

  extra("wrong parts of other entities are refused before anything is consumed", async () => {
    const subject = await opened(store);
    const { limiter } = subject;
    const part = { ...PROVIDER, consume: { rpd: 1 } };
    const wrong = [
      { ...CALL, also: [part, part] },
      { ...CALL, also: [{ ...part, entityId: "key-1" }] },
      { ...CALL, also: [{ ...part, entityId: "" }] },
      { ...CALL, also: [{ ...part, entity: "key-2" }] },
      { ...CALL, limits: ["rpd:1/day"], also: [part] },
      { ...CALL, also: Array.from({ length: 16 }, (_, at) => ({ ...part, entityId: `e-${at}` })) },
      {
        ...CALL,
        also: [
          { ...part, consume: { rpd: 1e12 } },
          { ...part, entityId: "org", consume: { rpd: 1e12 } },
        ],
      },
    ];
    for (const request of wrong) {
      expect(await invalidityOf(limiter.acquire(request as never))).toBeInstanceOf(ValidationError);
    }
    expect(await used(subject, ...all)).toEqual([0, 0, 0]);
  });

  extra("a call that waits for another entity waits in the queue of that entity", async () => {
    const subject = await store.open({ virtualTimer: true });
    const { limiter, repo, time } = subject;
    await repo.limits.setSystem(["rps:10/sec"]);
    const provider = { entityId: "provider", resource: "chat" };
    await time.until(limiter.acquire({ ...provider, consume: { rps: 10 } }));
    const order: string[] = [];
    const ask = async (name: string, rps: number) => {
      const also = [{ ...provider, consume: { rps } }];
      const call = { entityId: name, resource: "chat", consume: { rps: 1 }, also };
      await limiter.acquire({ ...call, maxWaitSeconds: 10 });
      order.push(name);
    };
    const first = ask("a", 8);
    await time.pass(300);
    // Three tokens are there by now, and they belong to the first.
    const second = ask("b", 2);
    const refusal = await time.until(limiter.tryAcquire({ ...provider, consume: { rps: 1 } }));
    expect(refusal.granted).toBe(false);
    const free = await time.until(
      limiter.tryAcquire({ entityId: "c", resource: "chat", consume: { rps: 10 } }),
    );
    expect(free.granted).toBe(true);
    await time.until(Promise.all([first, second]));
    expect(order).toEqual(["a", "b"]);
  });
}
