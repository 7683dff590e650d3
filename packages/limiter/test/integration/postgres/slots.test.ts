/** Slots on a real server: exact over lost and late answers, and over processes that end. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { PostgresConnection } from "@zae-limiter/limiter/storage/postgres/connection.ts";
import { PostgresItemTable } from "@zae-limiter/limiter/storage/postgres/item-table.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { newSchema, type TestSchema } from "@zae-limiter/test-support/postgres-schema.ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { slotProcessTests } from "../remote/slot-processes.ts";

const SOON = { timeoutMs: 20_000 };
const SOON_POLL = { timeout: 20_000, interval: 20 };
const CALL = { entityId: "key", resource: "api", consume: { parallel: 1, rpd: 1 } };
const LIMITS = ["parallel:2 concurrent", "rpd:100/day"];

/** A network that loses the answer of a commit, or delivers the commit itself too late. */
class Unsure implements PostgresConnection {
  readonly place = "postgres://test";
  readonly schema: string;
  readonly #connection: PostgresConnection;
  /** The fault of the next commit of a step with a token. */
  next: "lost" | "late" | undefined;
  /** Sends what was held back. */
  deliver: () => Promise<unknown> = async () => undefined;
  readonly waits: unknown[] = [];

  constructor(connection: PostgresConnection) {
    this.schema = connection.schema;
    this.#connection = connection;
  }

  async query(...call: Parameters<PostgresConnection["query"]>) {
    const [text, values] = call;
    const isCommit = text.includes(".commit_1(");
    if (isCommit) this.waits.push(values[4]);
    const { next } = this;
    if (!isCommit || next === undefined || values[2] === null) {
      return this.#connection.query(...call);
    }
    this.next = undefined;
    this.deliver = () => this.#connection.query(...call);
    if (next === "lost") await this.deliver();
    throw new RateLimiterUnavailable("the answer is lost", { reason: "network" });
  }

  async close(): Promise<void> {}
}

describePostgres("slots", (url) => {
  let schema: TestSchema;
  beforeAll(async () => {
    schema = await newSchema(url);
  });
  afterAll(() => schema.drop());

  async function open(namespace: string) {
    const network = new Unsure(schema.connection);
    const options = { namespace, ...SOON, configCacheTtlSeconds: 1e6 };
    const repo = await Repository.over(new PostgresItemTable(network), options);
    await repo.limits.setSystem(LIMITS);
    return { repo, network, limiter: new RateLimiter(repo) };
  }

  const left = async (repo: Repository) => {
    const states = await repo.buckets.list("key");
    return Object.fromEntries(states.map((each) => [each.limitName, each.tokens]));
  };

  it("slots are taken with the other limits or not at all, and wait for the disk", async () => {
    const [one, other] = [await open("all"), await open("all")];
    const leases = [await one.limiter.acquire(CALL), await other.limiter.acquire(CALL)];
    for (const { limiter } of [one, other]) {
      expect((await limiter.tryAcquire(CALL)).granted).toBe(false);
    }
    expect(await left(one.repo)).toEqual({ parallel: 0, rpd: 98 });
    // Calls that take none are warm, and go on.
    const { granted } = await one.limiter.tryAcquire({ ...CALL, consume: { rpd: 1 } });
    expect(granted).toBe(true);
    await leases[1]?.commit();
    expect(await left(one.repo)).toEqual({ parallel: 1, rpd: 97 });
    const again = await one.limiter.acquire(CALL);
    await again.rollback();
    await leases[0]?.commit();
    expect(await left(one.repo)).toEqual({ parallel: 2, rpd: 97 });
    expect(new Set([...one.network.waits, ...other.network.waits])).toEqual(new Set(["true"]));
    await one.repo.close();
    await other.repo.close();
  });

  it("a slot whose grant was lost comes back, and what it consumed is consumed", async () => {
    const { repo, network, limiter } = await open("lost");
    await limiter.acquire(CALL);
    network.next = "lost";
    await expect(limiter.acquire(CALL)).rejects.toMatchObject({ nothingWritten: false });
    await expect.poll(() => left(repo), SOON_POLL).toEqual({ parallel: 1, rpd: 98 });
    await repo.close();
  });

  it("a call that passes while the store is away holds nothing", async () => {
    const { repo, network, limiter } = await open("degraded");
    network.next = "lost";
    const lease = await limiter.acquire({ ...CALL, onUnavailable: "allow" });
    expect(lease).toMatchObject({ degraded: true, consumed: {} });
    await expect.poll(() => left(repo), SOON_POLL).toEqual({ parallel: 2, rpd: 99 });
    lease.release({ parallel: 1 });
    await lease.commit();
    expect(await left(repo)).toEqual({ parallel: 2, rpd: 99 });
    await repo.close();
  });

  it("a grant that arrives too late for its caller takes nothing", async () => {
    const { repo, network, limiter } = await open("late");
    await limiter.acquire(CALL);
    network.next = "late";
    await expect(limiter.acquire(CALL)).rejects.toMatchObject({ nothingWritten: false });
    // The token of the step is spent before anything else can be seen.
    const writes = () => network.waits.length;
    const before = writes();
    await expect.poll(writes, SOON_POLL).toBeGreaterThan(before);
    await limiter.tryAcquire({ ...CALL, consume: { rpd: 1 } });
    await network.deliver();
    expect(await left(repo)).toEqual({ parallel: 1, rpd: 98 });
    await repo.close();
  });

  it("a release whose answer is lost gives back once", async () => {
    const { repo, network, limiter } = await open("release");
    const leases = [await limiter.acquire(CALL), await limiter.acquire(CALL)];
    network.next = "lost";
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
      network.next = fault;
      await lease.commit();
      await expect.poll(() => left(repo), SOON_POLL).toEqual({ parallel: 2, rpd: 95 });
      await network.deliver();
      expect(await left(repo)).toEqual({ parallel: 2, rpd: 95 });
      await repo.close();
    },
  );

  slotProcessTests(() => `${url}${url.includes("?") ? "&" : "?"}schema=${schema.schema}`);
});
