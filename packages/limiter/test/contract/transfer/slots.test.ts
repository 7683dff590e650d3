/** Slots in a copy: the calls that hold them end on their own store. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { copyStore } from "@zae-limiter/limiter/transfer/copy-store.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { describeRedis } from "@zae-limiter/test-engines/redis.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { afterAll, expect, test } from "vitest";
import { openFile, openPostgres, openRedis, openTable } from "../limiter/limiter-stores.ts";

const CALL = { entityId: "key", resource: "api" };
const SLOTS = ["rpm:60", "parallel:5 concurrent"];

type Place = Awaited<ReturnType<typeof openFile>>;

/** Declares a copy while calls of the source hold slots. */
function copiesFree(title: string, openSource: () => Promise<Place>, open: () => Promise<Place>) {
  const opened: Place[] = [];
  afterAll(async () => {
    for (const { close } of opened) await close();
  });

  test(`slots in flight are free in a copy ${title}, and come back once on the source`, async () => {
    opened.push(await openSource(), await open());
    const [source, target] = opened as [Place, Place];
    const namespace = newName();
    const from = await source.open({ namespace });
    await from.limits.setSystem(SLOTS);
    const limiter = new RateLimiter(from);
    const lease = await limiter.acquire({ ...CALL, consume: { rpm: 1, parallel: 4 } });
    // Fewer than are in flight: what is free is below zero.
    await from.limits.setSystem(["rpm:60", "parallel:3 concurrent"]);
    await limiter.tryAcquire({ ...CALL, consume: { parallel: 1 } });
    expect((await limiter.available(CALL)).parallel).toBeLessThan(0);

    const to = await target.open({ namespace: newName() });
    const { same } = await copyStore(from, to, { namespaces: [namespace] });
    expect(same).toBe(true);
    const copy = await to.namespace(namespace);
    const states = await copy.buckets.list("key");
    const slots = states.find(({ limitName }) => limitName === "parallel");
    expect(slots).toMatchObject({ tokens: 3, capacity: 3 });
    expect(slots?.holders ?? {}).toEqual({});
    const copied = new RateLimiter(copy);
    const other = await copied.acquire({ ...CALL, consume: { parallel: 3 } });
    await lease.commit();
    expect((await limiter.available(CALL)).parallel).toBe(3);
    expect((await copied.available(CALL)).parallel).toBe(0);
    await other.commit();
    expect((await copied.available(CALL)).parallel).toBe(3);
    await Promise.all([from.close(), to.close()]);
  });
}

copiesFree("from a file to another", openFile, openFile);

describeEngines("slots in a copy", (engine) => {
  const table = () => openTable(engine);
  copiesFree("from a table to a file", table, openFile);
  copiesFree("from a file to a table", openFile, table);
});

describeRedis("slots in a copy", (url) => {
  const redis = () => openRedis(url);
  copiesFree("from a file to Redis", openFile, redis);

  describePostgres("slots in a copy between two servers", (postgresUrl) => {
    const postgres = () => openPostgres(postgresUrl);
    copiesFree("from Redis to PostgreSQL", redis, postgres);
    copiesFree("from PostgreSQL to a file", postgres, openFile);
  });
});
