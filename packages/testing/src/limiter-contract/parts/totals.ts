/** Totals: one limit over all resources of an entity, stored for the resource `@all`. */

import {
  InvalidNameError,
  ResourceDisabled,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { TOTAL } from "@zae-limiter/limiter/domain/names.ts";
import { milliOf } from "../balances.ts";
import { failureOf, invalidityOf, lines, refusalOf } from "../outcomes.ts";
import type { StoreUnderTest, Subject, SubjectOptions } from "../subject.ts";

const MODELS = ["gpt-4o", "claude", "llama"];
const CALL = { entityId: "team", consume: { rpd: 1 } };

async function used(
  subject: Subject,
  entityId: string,
  resource = TOTAL,
  limitName = "rpd",
): Promise<number | undefined> {
  const milli = await milliOf(subject, entityId, resource, limitName);
  return milli && milli.consumed / 1000;
}

export function totalsContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;

  /** Opens a limiter that counts totals; models have room for more than the total. */
  async function opened(options: SubjectOptions = {}): Promise<Subject> {
    const subject = await store.open({ totals: true, ...options });
    await subject.repo.limits.setSystem(["rpd:1000/day"]);
    return subject;
  }

  test("a total of 60 passes 60 calls over three models, and refuses the next on each", async () => {
    const subject = await opened();
    const { limiter, repo } = subject;
    await repo.limits.setEntity("team", ["rpd:60/day"], { resource: TOTAL });
    for (let call = 0; call < 60; call += 1) {
      const lease = await limiter.acquire({ ...CALL, resource: MODELS[call % 3] as string });
      expect(lease.consumed).toEqual({ rpd: 1 });
    }
    for (const resource of MODELS) {
      const refusal = await refusalOf(limiter.acquire({ ...CALL, resource }));
      expect(lines(refusal.statuses)).toEqual([`team/${resource} rpd 1/980`, "team/@all rpd 1/0!"]);
      expect(refusal.message).toContain("team/@all: [rpd]");
      expect(refusal.message).toContain("over all resources");
      expect(await used(subject, "team", resource)).toBe(20);
    }
    expect(await used(subject, "team")).toBe(60);
    expect(
      (await limiter.acquire({ ...CALL, entityId: "other", resource: "gpt-4o" })).consumed,
    ).toEqual({ rpd: 1 });
  });

  test("a total of each ancestor counts along the cascade", async () => {
    const subject = await opened();
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "key-1", parentId: "team", cascade: true });
    await repo.entities.create({ id: "key-2", parentId: "team", cascade: true });
    await repo.entities.create({ id: "alone", parentId: "team" });
    await repo.limits.setEntity("team", ["rpd:3/day"], { resource: TOTAL });
    await repo.limits.setEntity("key-1", ["rpd:2/day"], { resource: TOTAL });
    for (const resource of ["gpt-4o", "claude"]) {
      await limiter.acquire({ ...CALL, entityId: "key-1", resource });
    }
    const own = await refusalOf(limiter.acquire({ ...CALL, entityId: "key-1", resource: "llama" }));
    expect(lines(own.violations)).toEqual(["key-1/@all rpd 1/0!"]);
    await limiter.acquire({ ...CALL, entityId: "key-2", resource: "llama" });
    const above = await refusalOf(
      limiter.acquire({ ...CALL, entityId: "key-2", resource: "gpt-4o" }),
    );
    expect(lines(above.violations)).toEqual(["team/@all rpd 1/0!"]);
    await limiter.acquire({ ...CALL, entityId: "alone", resource: "gpt-4o" });
    expect([await used(subject, "team"), await used(subject, "key-1")]).toEqual([3, 2]);
    expect(await used(subject, "key-2", "gpt-4o")).toBeUndefined();
  });

  test("a total comes from the entity or the resource level, never from a default", async () => {
    const subject = await opened();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpd:1/day"]);
    await repo.limits.setEntity("team", ["rpd:1/day"]);
    for (const resource of MODELS) await limiter.acquire({ ...CALL, resource });
    expect(await repo.limits.resolve("team", TOTAL)).toBeUndefined();
    await repo.limits.setResource(TOTAL, ["rpd:1/day"]);
    await limiter.acquire({ ...CALL, resource: "mistral" });
    const refusal = await refusalOf(limiter.acquire({ ...CALL, resource: "qwen" }));
    expect(lines(refusal.violations)).toEqual(["team/@all rpd 1/0!"]);
    await limiter.acquire({ ...CALL, entityId: "other", resource: "qwen" });
  });

  test("a total alone is enough to acquire, and each of the two takes the names it has", async () => {
    const subject = await store.open({ totals: true });
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "org" });
    await repo.entities.create({ id: "team", parentId: "org", cascade: true });
    await repo.limits.setEntity("org", ["rpd:5/day"], { resource: TOTAL });
    const first = await limiter.acquire({ ...CALL, resource: "gpt-4o" });
    expect(lines(first.statuses)).toEqual(["org/@all rpd 1/4"]);
    await repo.limits.setEntity("team", ["tpd:100/day"], { resource: TOTAL });
    await repo.limits.setEntity("team", ["rpd:10/day"], { resource: "gpt-4o" });
    const consume = { rpd: 1, tpd: 30 };
    const lease = await limiter.acquire({ ...CALL, resource: "gpt-4o", consume });
    expect(lease.consumed).toEqual({ rpd: 1, tpd: 30 });
    expect(lines(lease.statuses)).toEqual([
      "team/gpt-4o rpd 1/9",
      "team/@all tpd 30/70",
      "org/@all rpd 1/3",
    ]);
    const typo = { ...CALL, resource: "gpt-4o", consume: { rpd: 1, tokens: 1 } };
    expect(await invalidityOf(limiter.acquire(typo))).toBeInstanceOf(ValidationError);
    expect(await invalidityOf(limiter.acquire({ ...typo, entityId: "stranger" }))).toMatchObject({
      field: "limits",
    });
  });

  test("a total is reserved: no call may name it as its resource", async () => {
    const subject = await opened();
    const { limiter, repo } = subject;
    await repo.limits.setEntity("team", ["rpd:5/day"], { resource: TOTAL });
    await limiter.acquire({ ...CALL, resource: "gpt-4o" });
    for (const more of [{}, { limits: ["rpd:5/day"] }, { maxWaitSeconds: 1 }]) {
      const error = await failureOf(limiter.acquire({ ...CALL, resource: TOTAL, ...more }));
      expect(error).toBeInstanceOf(InvalidNameError);
    }
    expect(await used(subject, "team")).toBe(1);
  });

  test("a limiter without totals counts none, unless a call names it", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpd:1000/day"]);
    await repo.limits.setEntity("team", ["rpd:2/day"], { resource: TOTAL });
    for (const resource of MODELS) await limiter.acquire({ ...CALL, resource });
    expect(await used(subject, "team")).toBeUndefined();
    const also = [{ resource: TOTAL, consume: { rpd: 2 } }];
    const lease = await limiter.acquire({ ...CALL, resource: "gpt-4o", also });
    expect(lease.of(TOTAL).consumed).toEqual({ rpd: 2 });
    await refusalOf(limiter.acquire({ ...CALL, resource: "claude", also }));
    await limiter.acquire({ ...CALL, resource: "claude", totals: false });
    await refusalOf(limiter.acquire({ ...CALL, resource: "claude", totals: true }));
    lease.of(TOTAL).settle({ rpd: 1 });
    await lease.commit();
    await limiter.acquire({ ...CALL, resource: "claude", totals: true });
    expect([await used(subject, "team"), await used(subject, "team", "claude")]).toEqual([2, 3]);
  });

  extra("a total that a call names itself is not counted a second time", async () => {
    const subject = await opened();
    const { limiter, repo } = subject;
    await repo.limits.setEntity("team", ["rpd:9/day"], { resource: TOTAL });
    const also = [{ resource: TOTAL, consume: { rpd: 3 } }];
    const lease = await limiter.acquire({ ...CALL, resource: "gpt-4o", also });
    await lease.consume({ rpd: 1 });
    await lease.commit();
    expect([await used(subject, "team"), await used(subject, "team", "gpt-4o")]).toEqual([3, 2]);
  });

  extra("status, available and the wait for tokens include the total", async () => {
    const subject = await opened();
    const { limiter, repo } = subject;
    await repo.limits.setEntity("team", ["rpd:96/day", "units:9/day"], { resource: TOTAL });
    await limiter.acquire({ ...CALL, resource: "claude", consume: { rpd: 3, units: 2 } });
    const target = { entityId: "team", resource: "gpt-4o" };
    expect(lines(await limiter.status(target))).toEqual([
      "team/gpt-4o rpd 0/1000",
      "team/@all rpd 0/93",
      "team/@all units 0/7",
    ]);
    expect(await limiter.available(target)).toEqual({ rpd: 93, units: 7 });
    const wait = await limiter.timeUntilAvailable({ ...target, needed: { rpd: 94 } });
    expect(Math.round(wait)).toBe(900);
    expect(await limiter.available({ ...target, totals: false })).toEqual({ rpd: 1000 });
    expect(lines(await limiter.status({ ...target, resource: TOTAL }))).toEqual([
      "team/@all rpd 0/93",
      "team/@all units 0/7",
    ]);
  });

  extra("a total counts with limits of a call, soft limits, bypass and switches", async () => {
    const subject = await opened();
    const { limiter, repo } = subject;
    await repo.limits.setEntity("team", ["rpd:2/day"], { resource: TOTAL });
    const given = { ...CALL, resource: "gpt-4o", limits: ["rpd:50/day"] };
    await limiter.acquire(given);
    await limiter.acquire(given);
    expect(lines((await refusalOf(limiter.acquire(given))).violations)).toEqual([
      "team/@all rpd 1/0!",
    ]);
    await repo.limits.setEntity("team", ["rpd:2/day soft"], { resource: TOTAL });
    const soft = await limiter.acquire({ ...CALL, resource: "claude" });
    expect(soft.overdrawn).toEqual(["rpd"]);
    await repo.limits.setEntity("team", ["rpd:2/day"], { resource: TOTAL });
    await repo.limits.bypass({ entityId: "team", resource: TOTAL });
    const passed = await limiter.acquire({ ...CALL, resource: "claude" });
    expect(passed.bypassed).toBe(false);
    expect(await used(subject, "team")).toBe(4);
    await repo.limits.disable({ entityId: "team", resource: TOTAL });
    const error = await failureOf(limiter.acquire({ ...CALL, resource: "claude" }));
    expect(error).toBeInstanceOf(ResourceDisabled);
    await limiter.acquire({ ...CALL, resource: "claude", totals: false });
    await repo.limits.enable({ entityId: "team", resource: TOTAL });
    await refusalOf(limiter.acquire({ ...CALL, resource: "claude" }));
  });

  extra(
    "a total that is stored later counts for calls that were made without one before",
    async () => {
      const subject = await opened();
      const { limiter, repo } = subject;
      for (let call = 0; call < 3; call += 1)
        await limiter.acquire({ ...CALL, resource: "gpt-4o" });
      const lease = await limiter.acquire({ ...CALL, resource: "gpt-4o" });
      await repo.limits.setEntity("team", ["rpd:3/day"], { resource: TOTAL });
      await limiter.acquire({ ...CALL, resource: "gpt-4o" });
      await lease.consume({ rpd: 1 });
      expect(await used(subject, "team")).toBe(2);
      // The total gets back what the lease has consumed from it, and no more.
      await lease.rollback();
      expect([await used(subject, "team"), await used(subject, "team", "gpt-4o")]).toEqual([1, 4]);
      await repo.limits.deleteEntity("team", { resource: TOTAL });
      for (let call = 0; call < 4; call += 1)
        await limiter.acquire({ ...CALL, resource: "gpt-4o" });
    },
  );

  extra("a call waits for a total behind calls of other resources that came before", async () => {
    const subject = await opened({ virtualTimer: true });
    const { limiter, repo, time } = subject;
    await repo.limits.setSystem(["rps:100/sec"]);
    await repo.limits.setEntity("team", ["rps:10/sec"], { resource: TOTAL });
    const call = { entityId: "team", maxWaitSeconds: 10 };
    await time.until(limiter.acquire({ ...call, resource: "gpt-4o", consume: { rps: 10 } }));
    const startMs = time.nowMs;
    const served: string[] = [];
    const ask = async (name: string, resource: string, rps: number) => {
      const decision = await limiter.tryAcquire({ ...call, resource, consume: { rps } });
      served.push(`${name} ${decision.granted} ${time.nowMs - startMs}`);
    };
    const large = ask("large", "claude", 8);
    await time.pass(350);
    const small = [ask("small", "gpt-4o", 1), ask("other", "llama", 1)];
    const now = { entityId: "team", resource: "mistral", consume: { rps: 1 } };
    const refused = await time.until(limiter.tryAcquire(now));
    expect(refused.granted).toBe(false);
    await time.until(Promise.all([large, ...small]));
    expect(served[0]).toBe("large true 801");
    expect(served).toHaveLength(3);
    expect(served.every((line) => line.includes("true"))).toBe(true);
  });
}

export function totalsLeaseContract(store: StoreUnderTest): void {
  const { expect, extra, test } = store.cases;
  const resource = "gpt-4o";
  const call = { entityId: "team", resource, consume: { rpd: 1, tpd: 50 } };

  async function opened(): Promise<Subject> {
    const subject = await store.open({ totals: true });
    const { repo } = subject;
    await repo.limits.setSystem(["rpd:100/day", "tpd:1000/day"]);
    await repo.limits.setEntity("team", ["rpd:100/day", "tpd:500/day"], { resource: TOTAL });
    return subject;
  }

  /** Reads what was consumed of `tpd`: of the model, then of the total. */
  async function tokens(subject: Subject, model = resource): Promise<(number | undefined)[]> {
    return [await used(subject, "team", model, "tpd"), await used(subject, "team", TOTAL, "tpd")];
  }

  test("a lease corrects the resource and the total by the same amounts", async () => {
    const subject = await opened();
    const lease = await subject.limiter.acquire(call);
    expect(await tokens(subject)).toEqual([50, 50]);
    lease.adjust({ tpd: 30 });
    await lease.flush();
    expect(await tokens(subject)).toEqual([80, 80]);
    await lease.consume({ tpd: 5 });
    expect(await tokens(subject)).toEqual([85, 85]);
    lease.release({ tpd: 15 });
    lease.settle({ tpd: 60 });
    await lease.commit();
    expect(await tokens(subject)).toEqual([60, 60]);
    expect(lease.consumed).toEqual({ rpd: 1, tpd: 60 });
    expect(lease.resources).toEqual([resource]);
    const other = await subject.limiter.acquire(call);
    await other.rollback();
    expect(await tokens(subject)).toEqual([60, 60]);
    expect(await used(subject, "team")).toBe(1);
  });

  test("a lease that consumes more is refused by the total, and keeps what it has", async () => {
    const subject = await opened();
    const lease = await subject.limiter.acquire(call);
    const refusal = await refusalOf(lease.consume({ tpd: 451 }));
    expect(lines(refusal.violations)).toEqual(["team/@all tpd 451/450!"]);
    expect(await tokens(subject)).toEqual([50, 50]);
    lease.adjust({ tpd: 600 });
    await lease.commit();
    expect(await tokens(subject)).toEqual([650, 650]);
    await refusalOf(subject.limiter.acquire({ ...call, resource: "claude" }));
    expect(await tokens(subject, "claude")).toEqual([undefined, 650]);
  });

  extra("each part of a lease corrects its own share of the total", async () => {
    const subject = await opened();
    const also = [{ resource: "claude", consume: { tpd: 20 } }];
    const lease = await subject.limiter.acquire({ ...call, also });
    expect(lines(lease.statuses)).toEqual([
      "team/gpt-4o rpd 1/99",
      "team/gpt-4o tpd 50/950",
      "team/claude rpd 0/100",
      "team/claude tpd 20/980",
      "team/@all rpd 1/99",
      "team/@all tpd 70/430",
    ]);
    const claude = lease.of("claude");
    expect([lease.consumed, claude.consumed]).toEqual([{ rpd: 1, tpd: 50 }, { tpd: 20 }]);
    claude.settle({ tpd: 5 });
    lease.settle({ tpd: 60 });
    await lease.commit();
    expect([...(await tokens(subject)), ...(await tokens(subject, "claude"))]).toEqual([
      60, 65, 5, 65,
    ]);
    const back = await subject.limiter.acquire({ ...call, also });
    await back.rollback();
    expect(await tokens(subject, "claude")).toEqual([5, 65]);
  });

  extra("a lease of a total alone is corrected too", async () => {
    const subject = await store.open({ totals: true });
    const { limiter, repo } = subject;
    await repo.limits.setResource(TOTAL, ["rpd:100/day", "tpd:500/day"]);
    const lease = await limiter.acquire(call);
    expect(lease.consumed).toEqual({ rpd: 1, tpd: 50 });
    lease.settle({ tpd: 10 });
    await lease.commit();
    expect(lease.consumed).toEqual({ rpd: 1, tpd: 10 });
    expect(await tokens(subject)).toEqual([undefined, 10]);
  });
}
