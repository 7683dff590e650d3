/** Changes of stored limits reach live buckets, at every level and from every client. */

import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { milliOf } from "./balances.ts";
import { failureOf, lines, refusalOf } from "./outcomes.ts";
import type { StoreUnderTest, Subject } from "./subject.ts";

const RESOURCE = "gpt-4";
const USER = { entityId: "user-1", resource: RESOURCE };
const OWN = { resource: RESOURCE };
const CACHE_MS = 60_000;

/** How limits are stored at each level. */
const LEVELS: [string, (repo: Repository, limits: string[]) => Promise<void>][] = [
  ["system", (repo, limits) => repo.limits.setSystem(limits)],
  ["resource", (repo, limits) => repo.limits.setResource(RESOURCE, limits)],
  ["entity_default", (repo, limits) => repo.limits.setEntity("user-1", limits)],
  ["entity", (repo, limits) => repo.limits.setEntity("user-1", limits, OWN)],
];

/** Lists the limits of the bucket as `name tokens/capacity`. */
async function bucket({ repo }: Subject, entityId = "user-1"): Promise<string[]> {
  const states = await repo.buckets.list(entityId, { resource: RESOURCE });
  return states.map((state) => `${state.limitName} ${state.tokens}/${state.limit}`).sort();
}

export function configChangesContract(store: StoreUnderTest): void {
  const { expect, extra, extraEach, test, testEach } = store.cases;

  test("a change of limits of the entity reaches its bucket at once, balance kept (A140)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    const set = (...limits: string[]) => repo.limits.setEntity("user-1", limits, OWN);
    await set("rpm:100");
    await limiter.acquire({ ...USER, consume: { rpm: 10 } });
    await set("rpm:200");
    // Raising the capacity gives no tokens; lowering it takes those beyond.
    expect(await bucket(subject)).toEqual(["rpm 90/rpm:200/min"]);
    await set("rpm:50");
    expect(await bucket(subject)).toEqual(["rpm 50/rpm:50/min"]);
    await set("rpm:100/30sec:200");
    expect(await bucket(subject)).toEqual(["rpm 50/rpm:100/30sec:200"]);
    await set("rpm:100", "tpm:1000");
    expect(await bucket(subject)).toEqual(["rpm 50/rpm:100/min", "tpm 1000/tpm:1000/min"]);
    expect(await milliOf(subject, "user-1", RESOURCE, "rpm")).toMatchObject({ consumed: 10_000 });
  });

  test("a change of limits makes no bucket where there is none (A141)", async () => {
    const subject = await store.open();
    await subject.repo.limits.setEntity("user-1", ["rpm:100"], OWN);
    await subject.repo.limits.setSystem(["rpm:100"]);
    expect(await bucket(subject)).toEqual([]);
  });

  test("a change of limits to an empty list is a change to what applies then (A142)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setEntity("user-1", ["rpm:100"], OWN);
    await limiter.acquire({ ...USER, consume: { rpm: 10 } });
    await repo.limits.setEntity("user-1", [], OWN);
    // No level has any: the bucket stays as it is.
    expect(await bucket(subject)).toEqual(["rpm 90/rpm:100/min"]);
    expect(await failureOf(limiter.acquire({ ...USER, consume: {} }))).toMatchObject({
      field: "limits",
    });
  });

  test("a change of limits back to the resource's limits reaches the bucket (A145)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setResource(RESOURCE, ["rpm:100"]);
    await repo.limits.setEntity("user-1", ["rpm:1000"], OWN);
    await limiter.acquire({ ...USER, consume: { rpm: 10 } });
    await repo.limits.deleteEntity("user-1", OWN);
    await limiter.acquire({ ...USER, consume: { rpm: 10 } });
    expect(await bucket(subject)).toEqual(["rpm 90/rpm:100/min"]);
  });

  test("a change of limits removes the limits that are gone (A146)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setResource(RESOURCE, ["rpm:100"]);
    await repo.limits.setEntity("user-1", ["rpm:50", "tpm:1000"], OWN);
    await limiter.acquire({ ...USER, consume: { rpm: 10, tpm: 10 } });
    await repo.limits.deleteEntity("user-1", OWN);
    await limiter.acquire({ ...USER, consume: {} });
    expect(await bucket(subject)).toEqual(["rpm 40/rpm:100/min"]);
    expect(await failureOf(limiter.acquire({ ...USER, consume: { tpm: 1 } }))).toMatchObject({
      name: "ValidationError",
    });
  });

  test("a change of limits leaves the bucket alone where nothing applies any more (A147)", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setEntity("user-1", ["rpm:100"], OWN);
    await limiter.acquire({ ...USER, consume: { rpm: 10 } });
    await repo.limits.deleteEntity("user-1", OWN);
    expect(await bucket(subject)).toEqual(["rpm 90/rpm:100/min"]);
  });

  test("a change of limits is no trouble without a bucket (A148)", async () => {
    const subject = await store.open();
    const { repo } = subject;
    await repo.limits.setResource(RESOURCE, ["rpm:100"]);
    await repo.limits.setEntity("user-1", ["rpm:50"], OWN);
    await repo.limits.deleteEntity("user-1", OWN);
    expect(await bucket(subject)).toEqual([]);
  });

  test("a change of limits is what the next acquire goes by (A149)", async () => {
    const { limiter, repo } = await store.open();
    await repo.limits.setSystem(["rpm:1000"]);
    await limiter.acquire({ ...USER, consume: { rpm: 1 } });
    await repo.limits.setEntity("user-1", ["rpm:5"], OWN);
    await refusalOf(limiter.acquire({ ...USER, consume: { rpm: 6 } }));
    await limiter.acquire({ ...USER, consume: { rpm: 5 } });
    await repo.limits.deleteEntity("user-1", OWN);
    const refusal = await refusalOf(limiter.acquire({ ...USER, consume: { rpm: 6 } }));
    expect(refusal.statuses[0]).toMatchObject({ available: 0, retryAfterSeconds: 0.361 });
  });

  testEach(store.variants(LEVELS))(
    "a change to more limits starts the new ones full (%s) (A150)",
    async (_, set) => {
      const subject = await store.open();
      const { limiter, repo } = subject;
      await set(repo, ["rpm:100"]);
      await limiter.acquire({ ...USER, consume: { rpm: 10 } });
      await set(repo, ["rpm:100", "tpm:1000"]);
      const lease = await limiter.acquire({ ...USER, consume: { rpm: 10, tpm: 400 } });
      expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 10/80", "user-1/gpt-4 tpm 400/600"]);
      await set(repo, ["rpm:100", "rps:5/sec", "tpm:1000"]);
      // Also when the new one is not asked for.
      await limiter.acquire({ ...USER, consume: { rpm: 10 } });
      expect(await bucket(subject)).toEqual([
        "rpm 70/rpm:100/min",
        "rps 5/rps:5/sec",
        "tpm 600/tpm:1000/min",
      ]);
    },
  );

  testEach(store.variants(LEVELS))(
    "a change to other limits altogether starts these full (%s) (A151)",
    async (_, set) => {
      const subject = await store.open();
      const { limiter, repo } = subject;
      await set(repo, ["rpm:100", "tpm:1000"]);
      await limiter.acquire({ ...USER, consume: { rpm: 10, tpm: 10 } });
      await set(repo, ["rph:10/hour"]);
      const lease = await limiter.acquire({ ...USER, consume: { rph: 4 } });
      expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rph 4/6"]);
      expect(await bucket(subject)).toEqual(["rph 6/rph:10/hour"]);
    },
  );

  extraEach(LEVELS)(
    "a change of limits keeps balances, capped, and counts on from there (%s)",
    async (_, set) => {
      const subject = await store.open();
      const { limiter, repo, time } = subject;
      await set(repo, ["rpm:60"]);
      await limiter.acquire({ ...USER, consume: { rpm: 40 } });
      time.advance(10_000);
      await set(repo, ["rpm:600"]);
      // 20 left, 10 gained by the old rate; from here on by the new one.
      await limiter.acquire({ ...USER, consume: { rpm: 10 } });
      expect(await bucket(subject)).toEqual(["rpm 20/rpm:600/min"]);
      time.advance(10_000);
      expect(await limiter.available(USER)).toEqual({ rpm: 120 });
      await set(repo, ["rpm:6"]);
      expect(await limiter.available(USER)).toEqual({ rpm: 6 });
      await limiter.acquire({ ...USER, consume: { rpm: 6 } });
      await refusalOf(limiter.acquire({ ...USER, consume: { rpm: 1 } }));
      expect(await milliOf(subject, "user-1", RESOURCE, "rpm")).toEqual({
        balance: 0,
        consumed: 56_000,
      });
    },
  );

  extraEach(LEVELS.slice(3))(
    "a change of limits lets a bucket grow that is asked for more (%s)",
    async (_, set) => {
      const { limiter, repo, time } = await store.open();
      await set(repo, ["rpm:10"]);
      await limiter.acquire({ ...USER, consume: { rpm: 1 } });
      time.advance(60_000);
      await set(repo, ["rpm:100"]);
      // The old capacity does not suffice, so nothing is ever taken that could carry the change.
      const refusal = await refusalOf(limiter.acquire({ ...USER, consume: { rpm: 50 } }));
      expect(lines(refusal.statuses)).toEqual(["user-1/gpt-4 rpm 50/10!"]);
      expect(refusal.retryAfterSeconds).toBe(24.001);
      time.advance(24_001);
      await limiter.acquire({ ...USER, consume: { rpm: 50 } });
    },
  );

  extra("a change of limits moves between levels in both directions", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    const take = async () => {
      await limiter.acquire({ ...USER, consume: { rpm: 1 } });
      return (await bucket(subject))[0];
    };
    await repo.limits.setSystem(["rpm:100"]);
    expect(await take()).toBe("rpm 99/rpm:100/min");
    await repo.limits.setResource(RESOURCE, ["rpm:90"]);
    expect(await take()).toBe("rpm 89/rpm:90/min");
    await repo.limits.setEntity("user-1", ["rpm:80"]);
    expect(await take()).toBe("rpm 79/rpm:80/min");
    await repo.limits.setEntity("user-1", ["rpm:70"], OWN);
    expect(await take()).toBe("rpm 69/rpm:70/min");
    await repo.limits.deleteEntity("user-1", OWN);
    expect(await take()).toBe("rpm 68/rpm:80/min");
    await repo.limits.deleteEntity("user-1");
    expect(await take()).toBe("rpm 67/rpm:90/min");
    await repo.limits.deleteResource(RESOURCE);
    expect(await take()).toBe("rpm 66/rpm:100/min");
  });

  extra(
    "a change of limits finds the balance of a limit that was gone only between two acquires",
    async () => {
      const subject = await store.open();
      const { limiter, repo } = subject;
      await repo.limits.setSystem(["rpm:100", "tpm:1000"]);
      await limiter.acquire({ ...USER, consume: { rpm: 10, tpm: 900 } });
      await repo.limits.setSystem(["rpm:100"]);
      await repo.limits.setSystem(["rpm:100", "tpm:1000"]);
      await refusalOf(limiter.acquire({ ...USER, consume: { tpm: 101 } }));
    },
  );

  extra("a change of limits reaches the buckets of parents", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.entities.create({ id: "team" });
    await repo.entities.create({ id: "user-1", parentId: "team", cascade: true });
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...USER, consume: { rpm: 10 } });
    await repo.limits.setEntity("team", ["rpm:40", "rpd:500/day"]);
    const lease = await limiter.acquire({ ...USER, consume: { rpm: 10 } });
    expect(lines(lease.statuses)).toEqual([
      "user-1/gpt-4 rpm 10/80",
      "team/gpt-4 rpd 0/500",
      "team/gpt-4 rpm 10/30",
    ]);
  });

  extra("a change of limits touches no buckets of others", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...USER, consume: { rpm: 1 } });
    await limiter.acquire({ entityId: "user-10", resource: RESOURCE, consume: { rpm: 1 } });
    await limiter.acquire({ ...USER, resource: "gpt-4o", consume: { rpm: 1 } });
    await repo.limits.setEntity("user-1", ["rpm:5"], OWN);
    expect(await bucket(subject)).toEqual(["rpm 5/rpm:5/min"]);
    expect(await bucket(subject, "user-10")).toEqual(["rpm 99/rpm:100/min"]);
    expect(await limiter.available({ ...USER, resource: "gpt-4o" })).toEqual({ rpm: 99 });
  });
}

export function otherClientChangesContract(store: StoreUnderTest): void {
  const { expect, extra, extraEach, test } = store.cases;

  extraEach(LEVELS)(
    "a change of limits by another client is noticed when what was remembered is too old (%s)",
    async (_, set) => {
      const subject = await store.open();
      const { limiter, repo, time } = subject;
      await set(repo, ["rpm:100", "tpm:1000"]);
      await limiter.acquire({ ...USER, consume: { rpm: 10 } });
      const other = await store.another(subject);
      await set(other.repo, ["rpm:30", "rps:7/sec"]);
      time.advance(CACHE_MS + 600);
      const lease = await limiter.acquire({ ...USER, consume: { rpm: 10, rps: 7 } });
      expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 10/20", "user-1/gpt-4 rps 7/0"]);
      expect(await bucket(subject)).toEqual(["rpm 20/rpm:30/min", "rps 0/rps:7/sec"]);
    },
  );

  extraEach(LEVELS)(
    "a change of limits by another client is noticed at once where the bucket shows it (%s)",
    async (_, set) => {
      const subject = await store.open();
      const { limiter, repo } = subject;
      await set(repo, ["rpm:100"]);
      await limiter.acquire({ ...USER, consume: { rpm: 10 } });
      const other = await store.another(subject);
      await set(other.repo, ["rpm:30"]);
      await other.limiter.acquire({ ...USER, consume: { rpm: 10 } });
      const lease = await limiter.acquire({ ...USER, consume: { rpm: 10 } });
      expect(lines(lease.statuses)).toEqual(["user-1/gpt-4 rpm 10/10"]);
      expect(lease.statuses[0]?.limit.capacity).toBe(30);
    },
  );

  test("a change of limits by another client is not undone by a client that has not noticed yet", async () => {
    const subject = await store.open();
    const { limiter, repo } = subject;
    await repo.limits.setSystem(["rpm:100"]);
    await limiter.acquire({ ...USER, consume: { rpm: 10 } });
    await limiter.acquire({ ...USER, entityId: "user-2", consume: { rpm: 10 } });
    const other = await store.another(subject);
    await other.repo.limits.setSystem(["rpm:50", "tpm:100"]);
    await other.limiter.acquire({ ...USER, consume: { tpm: 100 } });
    await limiter.acquire({ ...USER, consume: { rpm: 10 } });
    await other.limiter.acquire({ ...USER, consume: { rpm: 10 } });
    expect(await bucket(subject)).toEqual(["rpm 30/rpm:50/min", "tpm 0/tpm:100/min"]);
    // Having seen one new bucket, the client goes by the new limits everywhere.
    await limiter.acquire({ ...USER, entityId: "user-2", consume: { rpm: 10, tpm: 1 } });
    expect(await bucket(subject, "user-2")).toEqual(["rpm 40/rpm:50/min", "tpm 99/tpm:100/min"]);
  });

  extra(
    "a change of limits by another client does not wear a bucket out: its limits are applied once",
    async () => {
      const subject = await store.open();
      const { limiter, repo } = subject;
      await repo.limits.setSystem(["rpm:100", "tpm:1000"]);
      await limiter.acquire({ ...USER, consume: { rpm: 90, tpm: 1000 } });
      await repo.limits.setSystem(["rpm:100"]);
      await limiter.acquire({ ...USER, consume: { rpm: 1 } });
      await repo.limits.setSystem(["rpm:100", "tpm:1000"]);
      const other = await store.another(subject);
      for (const client of [limiter, other.limiter, limiter, other.limiter]) {
        await client.acquire({ ...USER, consume: { tpm: 250 } });
      }
      await refusalOf(limiter.acquire({ ...USER, consume: { tpm: 1 } }));
      await refusalOf(other.limiter.acquire({ ...USER, consume: { tpm: 1 } }));
    },
  );
}
