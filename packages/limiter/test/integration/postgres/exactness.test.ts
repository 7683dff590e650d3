/** Random decisions of the server against an ideal bucket, which never rounds. */

import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import { PostgresItemTable } from "@zae-limiter/limiter/storage/postgres/item-table.ts";
import {
  WARM_BUCKETS,
  WARM_ROW,
  type WarmAnswer,
  type WarmLeg,
  type WarmRow,
} from "@zae-limiter/limiter/storage/warm-buckets.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { casesOf, NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { newSchema, type TestSchema } from "@zae-limiter/test-support/postgres-schema.ts";
import { seededRandom } from "@zae-limiter/test-support/seeded-random.ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { World } from "./ideal-world.ts";

/** Draws the same decisions each day, and others each night. */
const SEED = NIGHTLY_ONLY ? 38 : Date.now() % 1_000_000;
const DECISIONS = casesOf(100_000);
const PER_WORLD = 250;
const AT_ONCE = 4;
const SOON = { timeoutMs: 20_000 };
const CONFIG = { PK: "config", SK: "none" };
const HOUR_MS = 3_600_000;

describePostgres("decisions", (url) => {
  let schema: TestSchema;
  let table: PostgresItemTable;
  beforeAll(async () => {
    schema = await newSchema(url);
    table = new PostgresItemTable(schema.connection);
  });
  afterAll(() => schema.drop());

  /** Plays worlds one after the other until there were enough decisions. */
  async function play(worlds: Iterator<World>): Promise<Played> {
    // Tokens are forgotten by the clock of the call, so clocks that differ need schemas.
    const own = await newSchema(url);
    const place = new PostgresItemTable(own.connection);
    const played = { decided: 0, granted: 0 };
    for (let next = worlds.next(); next.done !== true; next = worlds.next()) {
      const world = next.value;
      for (const { key, row } of world.rows()) await write(place, key, row);
      for (let step = 0; step < PER_WORLD; step += 1) {
        if (await world.step(place[WARM_BUCKETS])) played.granted += 1;
      }
      played.decided += PER_WORLD;
      const cells = await place.read(world.keys, SOON);
      world.check(cells.map(({ item }) => item?.[WARM_ROW] as unknown as WarmRow));
    }
    await own.drop();
    return played;
  }

  it(`${DECISIONS} random decisions are those of an ideal bucket (seed ${SEED})`, async () => {
    const worlds = worldsFrom(SEED, DECISIONS / PER_WORLD);
    const played = await Promise.all(Array.from({ length: AT_ONCE }, () => play(worlds)));
    const [decided, granted] = (["decided", "granted"] as const).map((name) =>
      played.reduce((sum, each) => sum + each[name], 0),
    );
    expect(decided).toBeGreaterThanOrEqual(DECISIONS);
    expect(granted).toBeGreaterThan(DECISIONS / 4);
  });

  it("calls that share a statement get their own answers, each by itself", async () => {
    let statements = 0;
    const own = schema.connection;
    const { place } = own;
    const query: typeof own.query = (...call) => {
      statements += 1;
      return own.query(...call);
    };
    const counted = new PostgresItemTable({
      ...{ place, schema: own.schema, query },
      close: never,
    });
    const nowMs = 1_800_000_000_000;
    const keys = Array.from({ length: 100 }, (_, at) => ({ PK: `many-${at}`, SK: "bucket" }));
    for (const [at, key] of keys.entries()) {
      if (at % 10 !== 9) await write(counted, key, { ...rowOf(nowMs), tok: [at] });
    }
    statements = 0;
    const legOf = (key: Key, amount: number): WarmLeg => ({
      ...{ key, build: "B", parentId: undefined, cascades: undefined, acquires: 1 },
      ...{ gatesMilli: [amount], consumedMilli: [amount], countedMilli: [amount] },
    });
    const call = { configKey: CONFIG, knownVersion: undefined, nowMs };
    const asked = keys.map((key) => ({ legs: [legOf(key, 50)], ...call }));
    const malformed = { legs: [legOf(keys[60] as Key, 1e30)], ...call };
    const warm = counted[WARM_BUCKETS];
    const [answers, error] = await Promise.all([
      Promise.all(asked.map((each) => warm.consume(each, SOON))),
      warm.consume(malformed, SOON).catch(String),
    ]);
    expect(error).toMatch(/out of range|invalid input syntax/);
    expect(statements).toBeLessThan(asked.length / 2);
    expect(answers).toEqual(keys.map((_, at) => answerOfBucket(at)));
  });

  it("a refund that is sent twice at once is made once", async () => {
    const key = { PK: "twice", SK: "bucket" };
    const nowMs = 1_800_000_000_000;
    const rows = casesOf(1000);
    await write(table, key, rowOf(nowMs));
    const leg = { key, build: "B", countedMilli: [-3], consumedMilli: [-3], acquires: -1 };
    const warm = table[WARM_BUCKETS];
    const other = new PostgresItemTable(await schema.connect());
    await Promise.all(
      Array.from({ length: rows }, async (_, at) => {
        const refund = { leg, token: `refund-${at}`, nowMs };
        const both = [warm.adjust(refund, SOON), other[WARM_BUCKETS].adjust(refund, SOON)];
        expect(await Promise.all(both)).toEqual([true, true]);
      }),
    );
    await other.close();
    const [cell] = await table.read([key], SOON);
    expect(cell?.item?.[WARM_ROW]).toMatchObject({ tok: [3 * rows], used: [-3 * rows] });
  });

  it("a row is not warm from the moment that it names, and nothing is written then", async () => {
    const key = { PK: "until", SK: "bucket" };
    const nowMs = 1_800_000_000_000;
    await write(table, key, { ...rowOf(nowMs), tok: [1000], until: nowMs + HOUR_MS });
    const warm = table[WARM_BUCKETS];
    const amounts = { consumedMilli: [1], countedMilli: [1], acquires: 1 };
    const leg: WarmLeg = {
      ...{ key, build: "B", parentId: undefined, cascades: undefined, gatesMilli: [1] },
      ...amounts,
    };
    const consume = (at: number) =>
      warm.consume({ legs: [leg], configKey: CONFIG, knownVersion: undefined, nowMs: at }, SOON);
    const adjust = (at: number) =>
      warm.adjust({ leg: { key, build: "B", ...amounts }, token: `t${at}`, nowMs: at }, SOON);
    const last = nowMs + HOUR_MS - 1;
    expect(await consume(last)).toMatchObject({ outcome: "granted" });
    expect(await adjust(last)).toBe(true);
    const [before] = await table.read([key], SOON);
    expect(await consume(last + 1)).toBeUndefined();
    expect(await adjust(last + 1)).toBe(false);
    expect(await table.read([key], SOON)).toEqual([before]);
    // An adjustment that was made before is still known.
    expect(await warm.adjust({ leg, token: `t${last}`, nowMs: last + 1 }, SOON)).toBe(true);
  });

  function rowOf(nowMs: number): WarmRow {
    return {
      ...{ build: "B", parent: null, cascades: false, until: nowMs + HOUR_MS },
      ...{ cap: [1e9], refill: [1], period: [1e9] },
      ...{ at: [nowMs], tok: [0], rem: [0], used: [0], events: 0 },
    };
  }
});

/** Decisions, and how many of them were grants. */
interface Played {
  readonly decided: number;
  readonly granted: number;
}

function* worldsFrom(seed: number, count: number): Generator<World> {
  for (let at = seed; at < seed + count; at += 1) {
    yield new World(seededRandom(at), `world ${at}`);
  }
}

async function write(table: PostgresItemTable, key: Key, row: WarmRow): Promise<void> {
  const after = { ...key, [WARM_ROW]: row as unknown as Item[string] };
  const commit = {
    reads: [{ key, item: undefined, revision: undefined }],
    writes: [{ key, before: undefined, after, isLogged: false }],
    token: undefined,
    nowMs: row.at[0] ?? 0,
  };
  expect(await table.commit(commit, SOON)).toBe("done");
}

/** Returns what a bucket with `at` tokens says to a call of 50; there is not one for each. */
function answerOfBucket(at: number): WarmAnswer | undefined {
  if (at % 10 === 9) return undefined;
  const isRefused = at < 50;
  const left = isRefused ? at : at - 50;
  return {
    outcome: isRefused ? "refused" : "granted",
    balancesMilli: [[left]],
    configVersion: 0,
  };
}

const never = () => Promise.resolve();
