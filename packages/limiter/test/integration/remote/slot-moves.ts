/** Random moves of slots by a server against the entries of a model. */

import { movedSlots, type SlotEntry } from "@zae-limiter/limiter/buckets/slots/slot-entries.ts";
import {
  newEntryText,
  WARM_BUCKETS,
  WARM_ROW,
  type WarmRow,
} from "@zae-limiter/limiter/storage/warm-buckets.ts";
import { casesOf, NIGHTLY_ONLY } from "@zae-limiter/test-support/effort.ts";
import { seededRandom } from "@zae-limiter/test-support/seeded-random.ts";
import { expect, it } from "vitest";
import { NOW_MS, rowWith, SOON, type WarmTable, writeRow } from "./decisions.ts";

/** Draws the same moves each day, and others each night. */
const SEED = NIGHTLY_ONLY ? 41 : Date.now() % 1_000_000;
const MOVES = casesOf(5000);
const CONFIG_KEY = { PK: "exact/SYSTEM#", SK: "#CONFIG" };
const KEY = { PK: "exact/slots", SK: "bucket" };
/** Names of which one is the beginning or the end of another, or the same but for its dot. */
const ENTRIES = ["p7.1", "p7.11", "xp7.1", "p7x1.1", "12.5"];
const NEVER_MS = 4_000_000_000_000;

/** The limits of the row: a rate, and two limits of slots. */
const FREE = [1e9, 6000, 4000] as const;

/** The slots, balances and peaks that the row should have. */
interface Model {
  slots: readonly SlotEntry[];
  readonly tok: number[];
  readonly peaks: number[];
}

/** `tableOf` returns a table that no other test uses. */
export function slotMoveTests(tableOf: () => WarmTable): void {
  it(`${MOVES} random moves leave the slots of a model (seed ${SEED})`, async () => {
    const random = seededRandom(SEED);
    const draw = (below: number) => Math.floor(random() * below);
    const table = tableOf();
    await writeRow(table, KEY, {
      ...{ ...rowWith(0), until: NEVER_MS, cap: [...FREE], tok: [...FREE], refill: [1, 0, 0] },
      ...{ period: [1e12, 1000, 1000], at: [NOW_MS, NOW_MS, NOW_MS], rem: [0, 0, 0] },
      used: [0, 0, 0],
    });
    const model: Model = { slots: [], tok: [...FREE], peaks: [0, 0] };
    const seen = { granted: 0, refused: 0, unknown: 0, givenBack: 0, gone: 0 };
    for (let at = 0; at < MOVES; at += 1) {
      const entry = ENTRIES[draw(ENTRIES.length)] as string;
      const milli = [draw(3), draw(3)].map((slots) => slots * 1000);
      if (random() < 0.5) seen[await take(table, model, entry, milli, random() < 0.7, at)] += 1;
      else seen[await giveBack(table, model, entry, milli, at)] += 1;
    }
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(MOVES / 100);
    const [cell] = await table.read([KEY], SOON);
    const row = cell?.item?.[WARM_ROW] as unknown as WarmRow;
    expect(row.tok).toEqual(model.tok);
    expect(row.used.slice(1)).toEqual(model.peaks);
    expect(row.held.split(";").filter(Boolean).toSorted()).toEqual(
      model.slots.map((each) => `${each.entry} ${each.limitName} ${each.milli}`).toSorted(),
    );
  });
}

/** Takes slots of both limits, and a milli-token of the rate. */
async function take(
  table: WarmTable,
  model: Model,
  entry: string,
  milli: readonly number[],
  mayBeNew: boolean,
  at: number,
): Promise<"granted" | "refused" | "unknown"> {
  const amounts = [1, ...milli];
  const name = mayBeNew ? newEntryText(entry) : entry;
  const leg = {
    ...{ key: KEY, build: "B", parentId: undefined, cascades: undefined, acquires: 1 },
    ...{ gatesMilli: amounts, consumedMilli: amounts, countedMilli: amounts },
    entries: amounts.map((amount, place) => (place === 0 || amount === 0 ? undefined : name)),
  };
  const call = { legs: [leg], configKey: CONFIG_KEY, knownVersion: undefined, nowMs: NOW_MS };
  const answer = await table[WARM_BUCKETS].consume({ ...call, token: `take-${at}` }, SOON);
  const isThere = mayBeNew || model.slots.some((each) => each.entry === entry);
  if (!isThere && milli.some((amount) => amount > 0)) {
    expect(answer).toBeUndefined();
    return "unknown";
  }
  const fits = amounts.every((amount, place) => amount <= (model.tok[place] as number));
  expect(answer?.outcome).toBe(fits ? "granted" : "refused");
  if (!fits) return "refused";
  amounts.forEach((amount, place) => {
    model.tok[place] = (model.tok[place] as number) - amount;
    if (place > 0) move(model, place, entry, amount);
  });
  expect(answer?.balancesMilli).toEqual([model.tok]);
  return "granted";
}

async function giveBack(
  table: WarmTable,
  model: Model,
  entry: string,
  milli: readonly number[],
  at: number,
): Promise<"givenBack" | "gone"> {
  const deltas = [0, ...milli.map((amount) => -amount)];
  const leg = {
    ...{ key: KEY, build: "B", acquires: 0, consumedMilli: deltas, countedMilli: deltas },
    entries: deltas.map((_, place) => (place === 0 ? undefined : entry)),
  };
  const adjust = { leg, token: `back-${at}`, nowMs: NOW_MS };
  expect(await table[WARM_BUCKETS].adjust(adjust, SOON)).toBe(true);
  // Another time with the token, it is done already.
  if (at % 5 === 0) expect(await table[WARM_BUCKETS].adjust(adjust, SOON)).toBe(true);
  const isMoved = deltas.map((delta, place) => {
    const isBack = delta < 0 && move(model, place, entry, delta);
    if (isBack) model.tok[place] = (model.tok[place] as number) - delta;
    return isBack;
  });
  return isMoved.includes(true) ? "givenBack" : "gone";
}

/** Moves slots in the model; false where the entry has fewer than are given back. */
function move(model: Model, place: number, entry: string, milli: number): boolean {
  const moved = movedSlots(model.slots, String(place + 1), entry, milli);
  if (moved === undefined) return false;
  model.slots = moved;
  const held = moved.filter(({ limitName }) => limitName === String(place + 1));
  const sum = held.reduce((total, each) => total + each.milli, 0);
  model.peaks[place - 1] = Math.max(model.peaks[place - 1] as number, sum);
  return true;
}
