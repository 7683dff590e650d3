/** Random decisions of the server against an ideal bucket, which never rounds. */

import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import { RedisItemTable } from "@zae-limiter/limiter/storage/redis/item-table.ts";
import {
  WARM_BUCKETS,
  WARM_ROW,
  type WarmLeg,
  type WarmRow,
} from "@zae-limiter/limiter/storage/warm-buckets.ts";
import { describeRedis } from "@zae-limiter/test-engines/redis.ts";
import { casesOf, NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { newPrefix, type TestPrefix } from "@zae-limiter/test-support/redis-prefix.ts";
import { seededRandom } from "@zae-limiter/test-support/seeded-random.ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { World } from "../postgres/ideal-world.ts";

/** Draws the same decisions each day, and others each night. */
const SEED = NIGHTLY_ONLY ? 39 : Date.now() % 1_000_000;
const DECISIONS = casesOf(100_000);
const PER_WORLD = 250;
const AT_ONCE = 8;
const SOON = { timeoutMs: 20_000 };
const CONFIG = { PK: "exact/SYSTEM#", SK: "#CONFIG" };
const HOUR_MS = 3_600_000;
const NOW_MS = 1_800_000_000_000;

describeRedis("decisions", (url) => {
  let prefix: TestPrefix;
  let table: RedisItemTable;
  beforeAll(async () => {
    prefix = await newPrefix(url);
    table = new RedisItemTable(prefix.connection);
  });
  afterAll(() => prefix.drop());

  /** Plays worlds one after the other until there were enough decisions. */
  async function play(worlds: Iterator<World>): Promise<Played> {
    const own = await newPrefix(url);
    const place = new RedisItemTable(own.connection);
    const played = { decided: 0, granted: 0, handedBack: 0 };
    for (let next = worlds.next(); next.done !== true; next = worlds.next()) {
      const world = next.value;
      for (const { key, row } of world.rows()) await write(place, key, row);
      for (let step = 0; step < PER_WORLD; step += 1) {
        if (await world.step(place[WARM_BUCKETS])) played.granted += 1;
      }
      played.handedBack += world.handedBack;
      played.decided += PER_WORLD - world.handedBack;
      const cells = await place.read(world.keys, SOON);
      world.check(cells.map(({ item }) => item?.[WARM_ROW] as unknown as WarmRow));
    }
    await own.drop();
    return played;
  }

  it(`${DECISIONS} random decisions are those of an ideal bucket (seed ${SEED})`, async () => {
    const worlds = worldsFrom(SEED, DECISIONS / PER_WORLD);
    const played = await Promise.all(Array.from({ length: AT_ONCE }, () => play(worlds)));
    const [decided, granted, handedBack] = (["decided", "granted", "handedBack"] as const).map(
      (name) => played.reduce((sum, each) => sum + each[name], 0),
    ) as [number, number, number];
    expect(decided + handedBack).toBeGreaterThanOrEqual(DECISIONS);
    expect(granted).toBeGreaterThan(DECISIONS / 5);
    // Products beyond 2^53 are for a step, and half of the limits are made to have some.
    expect(handedBack).toBeGreaterThan(0);
    expect(handedBack).toBeLessThan(DECISIONS / 2);
  });

  it("a refund that is sent twice at once is made once", async () => {
    const key = { PK: "exact/twice", SK: "bucket" };
    const rows = casesOf(1000);
    await write(table, key, rowOf(0));
    const leg = { key, build: "B", countedMilli: [-3], consumedMilli: [-3], acquires: -1 };
    const warm = table[WARM_BUCKETS];
    const other = new RedisItemTable(await prefix.connect());
    await Promise.all(
      Array.from({ length: rows }, async (_, at) => {
        const refund = { leg, token: `refund-${at}`, nowMs: NOW_MS };
        const both = [warm.adjust(refund, SOON), other[WARM_BUCKETS].adjust(refund, SOON)];
        expect(await Promise.all(both)).toEqual([true, true]);
      }),
    );
    await other.close();
    const [cell] = await table.read([key], SOON);
    expect(cell?.item?.[WARM_ROW]).toMatchObject({ tok: [3 * rows], used: [-3 * rows] });
  });

  const AMOUNTS = { consumedMilli: [1], countedMilli: [1], acquires: 1 };
  const legOf = (key: Key): WarmLeg => ({
    ...{ key, build: "B", parentId: undefined, cascades: undefined, gatesMilli: [1] },
    ...AMOUNTS,
  });
  const consume = (key: Key, nowMs: number | undefined) =>
    table[WARM_BUCKETS].consume(
      { legs: [legOf(key)], configKey: CONFIG, knownVersion: undefined, nowMs },
      SOON,
    );

  it("a row is not warm from the moment that it names, and nothing is written then", async () => {
    const key = { PK: "exact/until", SK: "bucket" };
    await write(table, key, rowOf(1000));
    const warm = table[WARM_BUCKETS];
    const adjust = (nowMs: number) =>
      warm.adjust({ leg: legOf(key), token: `t${nowMs}`, nowMs }, SOON);
    const last = NOW_MS + HOUR_MS - 1;
    expect(await consume(key, last)).toMatchObject({ outcome: "granted" });
    expect(await adjust(last)).toBe(true);
    const [before] = await table.read([key], SOON);
    expect(await consume(key, last + 1)).toBeUndefined();
    expect(await adjust(last + 1)).toBe(false);
    expect(await table.read([key], SOON)).toEqual([before]);
    // An adjustment that was made before is still known.
    const again = { leg: legOf(key), token: `t${last}`, nowMs: last + 1 };
    expect(await warm.adjust(again, SOON)).toBe(true);
  });

  it("a clock of a client that is behind a bucket earns nothing, and takes nothing away", async () => {
    const key = { PK: "exact/behind", SK: "bucket" };
    const aheadMs = Date.now() + HOUR_MS;
    const times = { at: [aheadMs], until: aheadMs + HOUR_MS };
    await write(table, key, { ...rowOf(1000), ...times, refill: [1_000_000], period: [1] });
    expect(await consume(key, undefined)).toMatchObject({ balancesMilli: [[999]] });
    const [cell] = await table.read([key], SOON);
    expect(cell?.item?.[WARM_ROW]).toMatchObject({ at: [aheadMs], tok: [999] });
  });

  it("scripts that the server has forgotten are sent again on the same connection", async () => {
    const key = { PK: "exact/flushed", SK: "bucket" };
    await write(table, key, rowOf(1000));
    for (let time = 1; time <= 3; time += 1) {
      await prefix.connection.command(["SCRIPT", "FLUSH"], SOON);
      expect(await consume(key, NOW_MS)).toMatchObject({ balancesMilli: [[1000 - time]] });
    }
  });

  it("a bucket with two limits takes at most 250 bytes of the server's memory", async () => {
    const key = { PK: "0123456789a/ROW#key-1", SK: "#ROW#gpt-4" };
    const two = <Value>(value: Value) => [value, value];
    const row = {
      ...{ build: "rpm 600000 600000 60000,tpm 10000000 10000000 60000", parent: null },
      ...{ cascades: false, until: NOW_MS + HOUR_MS, events: 1234, period: two(60_000) },
      ...{ cap: two(10_000_000), refill: two(10_000_000), at: two(NOW_MS) },
      ...{ tok: two(9_876_543), rem: two(54_321), used: two(123_456_789) },
    };
    await write(table, key, row);
    const name = `${prefix.prefix}{0123456789a}w:/ROW#key-1\u0000#ROW#gpt-4`;
    const bytes = await prefix.connection.command(["MEMORY", "USAGE", name], SOON);
    // The prefix of a test is longer than `zael:`.
    expect(Number(bytes) - prefix.prefix.length + "zael:".length).toBeLessThanOrEqual(250);
  });

  function rowOf(tok: number): WarmRow {
    return {
      ...{ build: "B", parent: null, cascades: false, until: NOW_MS + HOUR_MS },
      ...{ cap: [1e9], refill: [1], period: [1e9] },
      ...{ at: [NOW_MS], tok: [tok], rem: [0], used: [0], events: 0 },
    };
  }
});

/** Decisions, how many of them were grants, and calls that were left to a step. */
interface Played {
  readonly decided: number;
  readonly granted: number;
  readonly handedBack: number;
}

function* worldsFrom(seed: number, count: number): Generator<World> {
  for (let at = seed; at < seed + count; at += 1) {
    yield new World(seededRandom(at), `exact/world ${at}`, true);
  }
}

async function write(table: RedisItemTable, key: Key, row: WarmRow): Promise<void> {
  const after = { ...key, [WARM_ROW]: row as unknown as Item[string] };
  const commit = {
    reads: [{ key, item: undefined, revision: undefined }],
    writes: [{ key, before: undefined, after, isLogged: false }],
    token: undefined,
    nowMs: row.at[0] ?? 0,
  };
  expect(await table.commit(commit, SOON)).toBe("done");
}
