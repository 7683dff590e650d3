/** Background responses are settled once, by whichever gateway learns their usage first. */

import { BackgroundResponses, type Remembered } from "@zae-limiter/gateway/background.ts";
import { keptLeaseOf } from "@zae-limiter/limiter/acquire/lease/kept-lease.ts";
import { type Lease, RateLimiter, type Repository } from "@zae-limiter/limiter/index.ts";
import { noteKey } from "@zae-limiter/limiter/records/keys.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import { describeStores } from "@zae-limiter/test-support/stores.ts";
import { expect, test } from "vitest";

const DAY_MS = 86_400_000;
const KEY = "gateway-key:1";
const TARGET = { entityId: "team-a", resource: "gpt-4" };

describeStores("background responses", (store) => {
  let nowMs: number;

  /** A repository with limits, and a gateway of its own on the same namespace. */
  async function opened(): Promise<{ repository: Repository; open(): Promise<RateLimiter> }> {
    nowMs = Date.now() + DAY_MS;
    const clock = () => nowMs;
    const repository = await store.open({ clock });
    await repository.limits.setSystem(["rpd:100/day", "tpd:10000/day"]);
    await repository.entities.create({ id: "org" });
    await repository.entities.create({ id: "team-a", parentId: "org", cascade: true });
    const namespace = repository.namespaceName;
    return {
      repository,
      open: async () => new RateLimiter(await store.open({ clock, namespace })),
    };
  }

  /** The lease of a call, which holds the most that the call can cost. */
  async function holds(limiter: RateLimiter, tpd = 6000): Promise<Lease> {
    const lease = await limiter.acquire({ ...TARGET, consume: { rpd: 1, tpd: 10 } });
    lease.settle({ tpd });
    await lease.commit();
    return lease;
  }

  async function remember(limiter: RateLimiter, lease: Lease, id = "resp_1"): Promise<void> {
    const responses = new BackgroundResponses(limiter);
    await responses.remember(id, KEY, "team-a", "gpt-4", "https://api.test/v1", keptLeaseOf(lease));
  }

  const left = async (limiter: RateLimiter) => [
    (await limiter.available({ entityId: "team-a", resource: "gpt-4" }))["tpd"],
    (await limiter.available({ entityId: "org", resource: "gpt-4" }))["tpd"],
  ];

  test("a response keeps its reserve until any gateway settles it by its usage", async () => {
    const { open } = await opened();
    const [first, second] = [await open(), await open()];
    await remember(first, await holds(first));
    const responses = new BackgroundResponses(second);
    const found = (await responses.of("resp_1", KEY)) as Remembered;
    expect(found).toMatchObject({ ...TARGET, keyId: KEY, upstream: "https://api.test/v1" });
    expect(await left(second)).toEqual([4000, 4000]);
    await responses.settle("resp_1", found, { tpd: 1500 });
    expect(await left(await open())).toEqual([8500, 8500]);
    // The key may go on asking for it.
    expect(await responses.of("resp_1", KEY)).toMatchObject({ ...TARGET, kept: null });
  });

  test("a response that several gateways settle at once is settled once", async () => {
    const { open } = await opened();
    const gateways = await Promise.all([open(), open(), open()]);
    const [first] = gateways;
    await remember(first, await holds(first));
    const settling = gateways.flatMap((limiter) => {
      const responses = new BackgroundResponses(limiter);
      return [1, 2].map(async () => {
        const found = (await responses.of("resp_1", KEY)) as Remembered;
        await responses.settle("resp_1", found, { tpd: 1500 });
      });
    });
    await Promise.all(settling);
    expect(await left(await open())).toEqual([8500, 8500]);
  });

  test("a response that costs more than there is leaves a debt, and refuses nothing", async () => {
    const { open } = await opened();
    const limiter = await open();
    await remember(limiter, await holds(limiter));
    const responses = new BackgroundResponses(limiter);
    const found = (await responses.of("resp_1", KEY)) as Remembered;
    await responses.settle("resp_1", found, { rpd: 1, tpd: 11_000 });
    expect(await left(await open())).toEqual([-1000, -1000]);
  });

  test("a gateway that ends between its claim and the correction leaves the reserve", async () => {
    const { repository, open } = await opened();
    const limiter = await open();
    await remember(limiter, await holds(limiter));
    const responses = new BackgroundResponses(await open());
    const found = (await responses.of("resp_1", KEY)) as Remembered;
    const [name = ""] = await noteNames(repository);
    const claim = { ...found, kept: null };
    expect(await repository[INTERNALS].notes.replace(name, found, claim)).toBe(true);
    await responses.settle("resp_1", found, { tpd: 1500 });
    expect(await left(limiter)).toEqual([4000, 4000]);
  });

  test("another key, another id and a time after 30 days find nothing", async () => {
    const { open } = await opened();
    const limiter = await open();
    await remember(limiter, await holds(limiter));
    const responses = new BackgroundResponses(limiter);
    expect(await responses.of("resp_1", "gateway-key:2")).toBeUndefined();
    expect(await responses.of("resp_2", KEY)).toBeUndefined();
    expect(await responses.of(`${"x".repeat(5000)}#/../`, KEY)).toBeUndefined();
    nowMs += 30 * DAY_MS - 1000;
    expect(await responses.of("resp_1", KEY)).toBeDefined();
    nowMs += 2000;
    expect(await responses.of("resp_1", KEY)).toBeUndefined();
  });

  test("an id that comes a second time stays what it was, and calls without a count have none", async () => {
    const { open } = await opened();
    const limiter = await open();
    const responses = new BackgroundResponses(limiter);
    await remember(limiter, await holds(limiter));
    await responses.remember("resp_1", KEY, "team-a", "gpt-4", "https://other.test", undefined);
    expect(await responses.of("resp_1", KEY)).toMatchObject({ upstream: "https://api.test/v1" });
    await responses.remember("resp_2", KEY, "team-a", "gpt-4", "https://other.test", undefined);
    const uncounted = (await responses.of("resp_2", KEY)) as Remembered;
    await responses.settle("resp_2", uncounted, { tpd: 100 });
    expect(await left(limiter)).toEqual([4000, 4000]);
  });

  test("what a call holds is added to a response that was remembered before, once", async () => {
    const { open } = await opened();
    const limiter = await open();
    const responses = new BackgroundResponses(limiter);
    await responses.remember("resp_1", KEY, "team-a", "gpt-4", "https://api.test/v1", undefined);
    await remember(limiter, await holds(limiter));
    await remember(limiter, await holds(limiter, 100));
    const found = (await responses.of("resp_1", KEY)) as Remembered;
    await responses.settle("resp_1", found, { tpd: 1500 });
    expect(await left(await open())).toEqual([8400, 8400]);
  });

  test("a record that another program has damaged is no response", async () => {
    const { repository, open } = await opened();
    const limiter = await open();
    await remember(limiter, await holds(limiter));
    const [name = ""] = await noteNames(repository);
    for (const damaged of [1, [], {}, { keyId: KEY, kept: 5 }, null]) {
      await repository[INTERNALS].notes.set(name, damaged);
      expect(await new BackgroundResponses(limiter).of("resp_1", KEY)).toBeUndefined();
    }
  });

  /** The names of all notes. */
  async function noteNames({ namespaceId }: Repository): Promise<string[]> {
    const prefix = noteKey(namespaceId, "").PK;
    const items = await store.itemsOf(namespaceId, "GSI4");
    const notes = items.filter(({ PK }) => PK.startsWith(prefix));
    return notes.map(({ PK }) => PK.slice(prefix.length));
  }
});
