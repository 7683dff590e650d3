/** Slots on a real server, over requests that are lost and requests that come too late. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { holderKey } from "@zae-limiter/limiter/records/holders.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { StoreCall } from "@zae-limiter/limiter/storage/item-store.ts";
import {
  type Commit,
  ITEM_TABLE,
  type ItemTable,
  type TableCallOptions,
} from "@zae-limiter/limiter/storage/item-table.ts";
import {
  WARM_BUCKETS,
  type WarmBuckets,
  warmBucketsOf,
} from "@zae-limiter/limiter/storage/warm-buckets.ts";
import { expect, it } from "vitest";

const SOON = { timeoutMs: 20_000 };
const SOON_POLL = { timeout: 20_000, interval: 20 };
const CALL = { entityId: "key", resource: "api", consume: { parallel: 1, rpd: 1 } };
const LIMITS = ["parallel:2 concurrent", "rpd:100/day"];

type TokenRequest = "commit" | "consume" | "adjust";

interface NextFault {
  readonly fault: "lost" | "late";
  readonly of: TokenRequest;
  /** The fault after it. */
  readonly after?: NextFault;
}

/** A table behind a network that loses an answer, or delivers a request too late. */
class UnsureTable implements ItemTable {
  readonly [ITEM_TABLE] = true;
  readonly [WARM_BUCKETS]: WarmBuckets;
  readonly #table: ItemTable;
  /** The fault of the next request of a kind that has a token. */
  next: NextFault | undefined;
  /** Sends what was held back. */
  deliver: () => Promise<unknown> = async () => undefined;
  /** How many requests with a token were sent since. */
  sent = 0;
  /** Called before a call is sent, which waits for it. */
  beforeConsume: () => unknown = () => undefined;

  constructor(table: ItemTable) {
    this.#table = table;
    const warm = warmBucketsOf(table) as WarmBuckets;
    this[WARM_BUCKETS] = {
      serverDateSkewMs: undefined,
      consume: async (call, options) => {
        await this.beforeConsume();
        return this.#send("consume", call.token, () => warm.consume(call, options));
      },
      adjust: (call, options) => this.#send("adjust", call.token, () => warm.adjust(call, options)),
      hold: (hold, options) => warm.hold(hold, options),
    };
  }

  commit(commit: Commit, options: TableCallOptions) {
    return this.#send("commit", commit.token, () => this.#table.commit(commit, options));
  }

  read: ItemTable["read"] = (...call) => this.#table.read(...call);
  page: ItemTable["page"] = (...call) => this.#table.page(...call);
  log: ItemTable["log"] = (...call) => this.#table.log(...call);

  /** The test closes the table. */
  async close(): Promise<void> {}

  async #send<Answer>(
    of: TokenRequest,
    token: string | undefined,
    request: () => Promise<Answer>,
  ): Promise<Answer> {
    if (token === undefined) return request();
    this.sent += 1;
    const { next } = this;
    if (next?.of !== of) return request();
    this.next = next.after;
    this.deliver = request;
    if (next.fault === "lost") await request();
    throw new RateLimiterUnavailable("the answer is lost", { reason: "network" });
  }
}

/** `tableOf` returns the table, with which no other test shares the namespaces. */
export function slotFaultTests(tableOf: () => ItemTable): void {
  async function open(namespace: string) {
    const network = new UnsureTable(tableOf());
    const operations: string[] = [];
    const onCall = ({ operation }: StoreCall) => void operations.push(operation);
    const options = { namespace, ...SOON, configCacheTtlSeconds: 1e6, onCall };
    const repo = await Repository.over(network, options);
    await repo.limits.setSystem(LIMITS);
    return { repo, network, operations, limiter: new RateLimiter(repo) };
  }

  const left = async (repo: Repository) => {
    const states = await repo.buckets.list("key");
    return Object.fromEntries(states.map((each) => [each.limitName, each.tokens]));
  };

  // The first call of a bucket is a step, and the next ones are decided by the server.
  const takes = (before: number) => (before === 0 ? "commit" : "consume");
  it.each([0, 1])(
    "a slot whose grant was lost comes back, and what it consumed is consumed: after %i calls",
    async (before) => {
      const { repo, network, limiter } = await open(`lost-${before}`);
      for (let at = 0; at < before; at += 1) await limiter.acquire(CALL);
      network.next = { fault: "lost", of: takes(before) };
      await expect(limiter.acquire(CALL)).rejects.toMatchObject({ nothingWritten: false });
      const after = { parallel: 2 - before, rpd: 99 - before };
      await expect.poll(() => left(repo), SOON_POLL).toEqual(after);
      await repo.close();
    },
  );

  it.each([0, 1])(
    "a grant that arrives too late for its caller takes nothing: after %i calls",
    async (before) => {
      const { repo, network, limiter } = await open(`late-${before}`);
      for (let at = 0; at < before; at += 1) await limiter.acquire(CALL);
      network.next = { fault: "late", of: takes(before) };
      await expect(limiter.acquire(CALL)).rejects.toMatchObject({ nothingWritten: false });
      // The token of the request is spent before anything else can be seen.
      const { sent } = network;
      await expect.poll(() => network.sent, SOON_POLL).toBeGreaterThan(sent);
      await limiter.tryAcquire({ ...CALL, consume: { rpd: 1 } });
      await network.deliver();
      expect(await left(repo)).toEqual({ parallel: 2 - before, rpd: 99 - before });
      await repo.close();
    },
  );

  it.each(["lost", "late"] as const)(
    "a slot is free once where the answer is lost that says whether it was taken: %s",
    async (fault) => {
      const { repo, network, limiter } = await open(`spent-${fault}`);
      await (await limiter.acquire(CALL)).commit();
      const held = await limiter.acquire(CALL);
      network.next = { fault, of: "consume", after: { fault: "lost", of: "commit" } };
      const { sent } = network;
      await expect(limiter.acquire(CALL)).rejects.toMatchObject({ nothingWritten: false });
      // The token is spent by a commit whose answer is lost, by another one, and one gives back.
      await expect.poll(() => network.sent, SOON_POLL).toBeGreaterThanOrEqual(sent + 4);
      expect(held.consumed).toEqual(CALL.consume);
      await repo.close();
      const { repo: after } = await open(`spent-${fault}`);
      const taken = fault === "lost" ? 1 : 0;
      expect(await left(after)).toEqual({ parallel: 1, rpd: 98 - taken });
      const { snapshots } = await after.usage.snapshots({ entityId: "key", window: "hourly" });
      expect(snapshots.map(({ peaks }) => peaks?.["parallel"])).toEqual([1 + taken]);
      await after.close();
    },
  );

  it.each([0, 1])(
    "a call that passes while the store is away holds nothing: after %i calls",
    async (before) => {
      const { repo, network, limiter } = await open(`degraded-${before}`);
      for (let at = 0; at < before; at += 1) await (await limiter.acquire(CALL)).commit();
      network.next = { fault: "lost", of: takes(before) };
      const lease = await limiter.acquire({ ...CALL, onUnavailable: "allow" });
      expect(lease).toMatchObject({ degraded: true, consumed: {} });
      const after = { parallel: 2, rpd: 99 - before };
      await expect.poll(() => left(repo), SOON_POLL).toEqual(after);
      lease.release({ parallel: 1 });
      await lease.commit();
      expect(await left(repo)).toEqual(after);
      await repo.close();
    },
  );

  it("a release whose answer is lost gives back once", async () => {
    const { repo, network, limiter } = await open("release");
    const leases = [await limiter.acquire(CALL), await limiter.acquire(CALL)];
    network.next = { fault: "lost", of: "adjust" };
    await leases[0]?.commit();
    await expect.poll(() => left(repo), SOON_POLL).toEqual({ parallel: 1, rpd: 98 });
    await leases[1]?.commit();
    expect(await left(repo)).toEqual({ parallel: 2, rpd: 98 });
    await repo.close();
  });

  it.each(["lost", "late"] as const)(
    "a settle whose outcome is unknown gives its slot back and counts once: %s",
    async (fault) => {
      const { repo, network, limiter } = await open(`settle-${fault}`);
      const lease = await limiter.acquire(CALL);
      lease.adjust({ rpd: 4 });
      network.next = { fault, of: "adjust" };
      await lease.commit();
      await expect.poll(() => left(repo), SOON_POLL).toEqual({ parallel: 2, rpd: 95 });
      await network.deliver();
      expect(await left(repo)).toEqual({ parallel: 2, rpd: 95 });
      await repo.close();
    },
  );

  it("a slot of a bucket that was made again is not that of a lease from before", async () => {
    const { repo, limiter } = await open("again");
    const [first, second] = [await limiter.acquire(CALL), await limiter.acquire(CALL)];
    await repo.entities.create({ id: "key" });
    await repo.entities.delete("key");
    const [third, fourth] = [await limiter.acquire(CALL), await limiter.acquire(CALL)];
    await first.commit();
    await second.commit();
    expect((await left(repo))["parallel"]).toBe(0);
    expect((await limiter.tryAcquire(CALL)).granted).toBe(false);
    await third.commit();
    await fourth.commit();
    expect((await left(repo))["parallel"]).toBe(2);
    await repo.close();
  });

  it.each([false, true])(
    "slots that are granted after the record of their holder was over are not held: renewed %s",
    async (isRenewed) => {
      const network = new UnsureTable(tableOf());
      let nowMs = 1_800_000_000_000;
      const clock = () => nowMs;
      const namespace = `over-${isRenewed}`;
      const options = { namespace, ...SOON, clock, slotExpirySeconds: 2 };
      const repo = await Repository.over(network, options);
      await repo.limits.setSystem(LIMITS);
      const limiter = new RateLimiter(repo);
      const other = { ...CALL, entityId: "other" };
      for (const call of [CALL, other]) await (await limiter.acquire(call)).commit();
      let calls = 0;
      network.beforeConsume = async () => {
        calls += 1;
        if (calls > 1) return;
        nowMs += 2500;
        // Meanwhile a call of another bucket begins another holder.
        if (isRenewed) await limiter.acquire(other);
      };
      const lease = await limiter.acquire(CALL);
      await expect.poll(() => left(repo), SOON_POLL).toEqual({ parallel: 1, rpd: 98 });
      // The first grant was given back, and the call asked again under another holder.
      expect(calls).toBe(isRenewed ? 3 : 2);
      const states = await repo.buckets.list("key");
      const [holder = ""] = states.flatMap(({ holders }) => Object.keys(holders ?? {}));
      const [{ item } = {}] = await tableOf().read([holderKey(holder)], SOON);
      expect(item?.["until"]).toBeGreaterThan(nowMs);
      await lease.commit();
      expect(await left(repo)).toEqual({ parallel: 2, rpd: 98 });
      await repo.close();
    },
  );

  it("a call that overdraws soft slots gives back those of the dead", async () => {
    let nowMs = 1_800_000_000_000;
    const open = (clock: () => number) => {
      const options = { namespace: "soft", ...SOON, clock, slotExpirySeconds: 2 };
      return Repository.over(new UnsureTable(tableOf()), options);
    };
    // The clock of the first client stays where it is, so its records are over at once.
    const dead = await open(() => 1_800_000_000_000);
    await dead.limits.setSystem(["parallel:1 concurrent soft", "rpd:100/day"]);
    await new RateLimiter(dead).acquire(CALL);
    const repo = await open(() => nowMs);
    const limiter = new RateLimiter(repo);
    const alive = await limiter.acquire(CALL);
    expect((await left(repo))["parallel"]).toBe(-1);
    await alive.commit();
    nowMs += 9000;
    const lease = await limiter.acquire(CALL);
    expect((await left(repo))["parallel"]).toBe(0);
    await lease.commit();
    expect((await left(repo))["parallel"]).toBe(1);
    await dead.close();
    await repo.close();
  });

  it("calls with slots cost a request, and one more to give them back with their tokens", async () => {
    const { repo, limiter, operations: sent } = await open("requests");
    await (await limiter.acquire(CALL)).commit();
    sent.splice(0);
    const plain = await limiter.acquire(CALL);
    expect(sent.splice(0)).toEqual(["consume"]);
    await plain.commit();
    expect(sent.splice(0)).toEqual(["adjust"]);
    const settled = await limiter.acquire(CALL);
    settled.settle({ rpd: 3 });
    await settled.commit();
    expect(sent.splice(0)).toEqual(["consume", "adjust"]);
    const leases = await Promise.all([limiter.acquire(CALL), limiter.acquire(CALL)]);
    expect(sent.splice(0)).toEqual(["consume"]);
    await Promise.all(leases.map((lease) => lease.commit()));
    expect(sent).toEqual(["adjust"]);
    await repo.close();
  });

  it("a lease of a bucket that was deleted makes calls of the next bucket no slower", async () => {
    const { repo, limiter, operations: sent } = await open("replaced");
    const old = await limiter.acquire(CALL);
    const older = await limiter.acquire(CALL);
    await repo.entities.create({ id: "key" });
    await repo.entities.delete("key");
    await (await limiter.acquire(CALL)).commit();
    sent.splice(0);
    await (await limiter.acquire(CALL)).commit();
    expect(sent).toEqual(["consume", "adjust"]);
    await Promise.all([old.commit(), older.rollback()]);
    expect((await left(repo))["parallel"]).toBe(2);
    await repo.close();
  });
}
