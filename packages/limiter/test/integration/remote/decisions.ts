/** Random decisions of a server against an ideal bucket, which never rounds. */

import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemTable } from "@zae-limiter/limiter/storage/item-table.ts";
import {
  WARM_BUCKETS,
  WARM_ROW,
  type WarmBuckets,
  type WarmLeg,
  type WarmRow,
} from "@zae-limiter/limiter/storage/warm-buckets.ts";
import { casesOf, NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { seededRandom } from "@zae-limiter/test-support/seeded-random.ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { World, type WorldOptions } from "./ideal-world.ts";

/** Draws the same decisions each day, and others each night. */
const SEED = NIGHTLY_ONLY ? 38 : Date.now() % 1_000_000;
const DECISIONS = casesOf(100_000);
const PER_WORLD = 250;
const HOUR_MS = 3_600_000;
/** All decisions, on a machine that has much else to do. */
const LONG = { timeout: HOUR_MS / 4 };
export const SOON = { timeoutMs: 20_000 };
export const NOW_MS = 1_800_000_000_000;
/** Keys have a namespace, by which clusters spread them. */
const CONFIG = { PK: "exact/SYSTEM#", SK: "#CONFIG" };

export type WarmTable = ItemTable & { readonly [WARM_BUCKETS]: WarmBuckets };

/** A part of a server that no other test uses. */
interface RemotePlace {
  readonly table: WarmTable;
  /** Opens the place once more, by other connections. */
  connect(): Promise<WarmTable>;
  /** Removes what there is, and closes the connection of `table`. */
  drop(): Promise<void>;
}

export interface DecisionOptions extends WorldOptions {
  readonly open: () => Promise<RemotePlace>;
  /** Worlds that are played at once. */
  readonly atOnce: number;
}

/** Decisions, how many steps had a grant, and calls that were left to a step. */
interface Played {
  decided: number;
  granted: number;
  handedBack: number;
}

/** Declares the tests, inside of a suite. */
export function decisionTests({ open, atOnce, ...options }: DecisionOptions): void {
  const { handsBack } = options;
  let place: RemotePlace;
  beforeAll(async () => {
    place = await open();
  });
  afterAll(() => place.drop());

  /** Plays worlds one after the other until there were enough decisions. */
  async function play(worlds: Iterator<World>): Promise<Played> {
    // Tokens are forgotten by the clock of the call, so clocks that differ need places.
    const { table, drop } = await open();
    const played = { decided: 0, granted: 0, handedBack: 0 };
    for (let next = worlds.next(); next.done !== true; next = worlds.next()) {
      const world = next.value;
      for (const { key, row } of world.rows()) await writeRow(table, key, row);
      for (let step = 0; step < PER_WORLD; step += 1) {
        if (await world.step(table[WARM_BUCKETS])) played.granted += 1;
      }
      played.handedBack += world.handedBack;
      played.decided += world.calls;
      const cells = await table.read(world.keys, SOON);
      world.check(cells.map(({ item }) => item?.[WARM_ROW] as unknown as WarmRow));
    }
    await drop();
    return played;
  }

  it(
    `${DECISIONS} random decisions are those of an ideal bucket (seed ${SEED})`,
    LONG,
    async () => {
      const worlds = worldsFrom(SEED, DECISIONS / PER_WORLD, options);
      const parts = await Promise.all(Array.from({ length: atOnce }, () => play(worlds)));
      const sum = (name: keyof Played) => parts.reduce((total, each) => total + each[name], 0);
      expect(sum("decided")).toBeGreaterThanOrEqual(DECISIONS);
      expect(sum("granted")).toBeGreaterThan(DECISIONS / (handsBack ? 5 : 4));
      // Half of the limits are made to have products beyond 2^53.
      expect(sum("handedBack") > 0).toBe(handsBack);
      expect(sum("handedBack")).toBeLessThan(sum("decided") / 2);
    },
  );

  it("a refund that is sent twice at once is made once", LONG, async () => {
    const { table } = place;
    const key = { PK: "exact/twice", SK: "bucket" };
    const rows = casesOf(1000);
    await writeRow(table, key, rowWith(0));
    const leg = { key, build: "B", countedMilli: [-3], consumedMilli: [-3], acquires: -1 };
    const other = await place.connect();
    await Promise.all(
      Array.from({ length: rows }, async (_, at) => {
        const refund = { leg, token: `refund-${at}`, nowMs: NOW_MS };
        const both = [table, other].map((each) => each[WARM_BUCKETS].adjust(refund, SOON));
        expect(await Promise.all(both)).toEqual([true, true]);
      }),
    );
    await other.close();
    const [cell] = await table.read([key], SOON);
    expect(cell?.item?.[WARM_ROW]).toMatchObject({ tok: [3 * rows], used: [-3 * rows] });
  });

  it("a row is not warm from the moment that it names, and nothing is written then", async () => {
    const { table } = place;
    const key = { PK: "exact/until", SK: "bucket" };
    await writeRow(table, key, rowWith(1000));
    const adjust = (nowMs: number, token = `t${nowMs}`) =>
      table[WARM_BUCKETS].adjust({ leg: legOf(key), token, nowMs }, SOON);
    const last = NOW_MS + HOUR_MS - 1;
    expect(await consume(table, key, last)).toMatchObject({ outcome: "granted" });
    expect(await adjust(last)).toBe(true);
    const [before] = await table.read([key], SOON);
    expect(await consume(table, key, last + 1)).toBeUndefined();
    expect(await adjust(last + 1)).toBe(false);
    expect(await table.read([key], SOON)).toEqual([before]);
    // An adjustment that was made before is still known.
    expect(await adjust(last + 1, `t${last}`)).toBe(true);
  });

  it("a clock that is behind a bucket earns nothing, and takes nothing away", async () => {
    const { table } = place;
    const key = { PK: "exact/behind", SK: "bucket" };
    const aheadMs = Date.now() + 24 * HOUR_MS;
    const times = { at: [aheadMs], until: aheadMs + HOUR_MS };
    await writeRow(table, key, { ...rowWith(1000), ...times, refill: [1_000_000], period: [1] });
    expect(await consume(table, key)).toMatchObject({ balancesMilli: [[999]] });
    const [cell] = await table.read([key], SOON);
    expect(cell?.item?.[WARM_ROW]).toMatchObject({ at: [aheadMs], tok: [999] });
  });
}

/** Takes one milli-token; by the clock of the server where no time is given. */
export function consume(table: WarmTable, key: Key, nowMs?: number) {
  const legs = [legOf(key)];
  const call = { legs, configKey: CONFIG, knownVersion: undefined, nowMs };
  return table[WARM_BUCKETS].consume(call, SOON);
}

/** Returns the leg of a call that takes from a row of `rowWith`. */
export function legOf(key: Key, milli = 1): WarmLeg {
  return {
    ...{ key, build: "B", parentId: undefined, cascades: undefined, acquires: 1 },
    ...{ gatesMilli: [milli], consumedMilli: [milli], countedMilli: [milli] },
  };
}

/** Returns a row of one limit with a balance, for an hour. */
export function rowWith(tok: number): WarmRow {
  return {
    ...{ build: "B", parent: null, cascades: false, until: NOW_MS + HOUR_MS },
    ...{ cap: [1e9], refill: [1], period: [1e9] },
    ...{ at: [NOW_MS], tok: [tok], rem: [0], used: [0], events: 0, held: "" },
  };
}

export async function writeRow(table: ItemTable, key: Key, row: WarmRow): Promise<void> {
  const after = { ...key, [WARM_ROW]: row as unknown as Item[string] };
  const commit = {
    reads: [{ key, item: undefined, revision: undefined }],
    writes: [{ key, before: undefined, after, isLogged: false }],
    token: undefined,
    nowMs: row.at[0] ?? 0,
  };
  expect(await table.commit(commit, SOON)).toBe("done");
}

function* worldsFrom(seed: number, count: number, options: WorldOptions): Generator<World> {
  for (let at = seed; at < seed + count; at += 1) {
    yield new World(seededRandom(at), `exact/world ${at}`, options);
  }
}
