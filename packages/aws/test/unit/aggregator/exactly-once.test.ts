/**
 * Every change counts once: batches are replayed, divided and begun renewed, shards of the stream
 * come in any order, readers overtake each other, and processes die between any two writes.
 */

import { Aggregator } from "@zae-limiter/aws/aggregator/aggregator.ts";
import { orderOf, type StreamChange } from "@zae-limiter/aws/aggregator/stream-change.ts";
import { WINDOW_TYPES, windowStartMs } from "@zae-limiter/limiter/core/windows.ts";
import { slotAttributes } from "@zae-limiter/limiter/records/slot-attributes.ts";
import { decodeUsage } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { casesOf } from "@zae-limiter/test-support/effort.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { AT, bucketItem, NAMESPACE } from "./changes.ts";
import { CrashingStore } from "./crashing-store.ts";

const ENTITIES = ["e0", "e1", "e2"];
const BUCKET_SHARDS = 2;
const STREAM_SHARDS = 3;

/** One write to a bucket: an acquire, or a correction of one. */
interface Step {
  readonly entity: number;
  readonly shard: number;
  readonly amounts: readonly [rpm: number, tpm: number];
  readonly acquires: boolean;
  readonly minutes: number;
  /** Slots that are held after it. */
  readonly held: number;
  /** The item is gone before, and is made renewed. */
  readonly renewed: boolean;
}

/** The next act of a reader. */
interface Turn {
  /** Which of the shards that can be read. */
  readonly pick: number;
  readonly size: number;
  /**
   * How many records before the checkpoint are delivered again, by a reader that lost its lease.
   */
  readonly back: number;
  readonly crashAfter: number;
  readonly crashes: boolean;
  readonly afterwards: boolean;
}

const steps = fc.array(
  fc.record<Step>({
    entity: fc.nat(ENTITIES.length - 1),
    shard: fc.nat(BUCKET_SHARDS - 1),
    amounts: fc.tuple(fc.integer({ min: -3, max: 9 }), fc.integer({ min: -900, max: 5000 })),
    acquires: fc.boolean(),
    minutes: fc.integer({ min: 0, max: 50 }),
    held: fc.nat(9),
    renewed: fc.integer({ min: 0, max: 19 }).map((drawn) => drawn === 0),
  }),
  { minLength: 1, maxLength: 60 },
);
const turns = fc.array(
  fc.record<Turn>({
    pick: fc.nat(7),
    size: fc.integer({ min: 1, max: 12 }),
    back: fc.oneof(fc.constant(0), fc.nat(15)),
    crashAfter: fc.nat(6),
    crashes: fc.boolean(),
    afterwards: fc.boolean(),
  }),
  { maxLength: 40 },
);

interface Shard {
  readonly records: StreamChange[];
  readonly parent: Shard | undefined;
  checkpoint: number;
}

interface History {
  readonly shards: Shard[];
  readonly consumed: Map<string, number>;
  readonly acquires: Map<string, number>;
  /** The most slots that were held, by the window, the entity, and the shard. */
  readonly peaks: Map<string, number>;
}

/** The stream that the steps leave behind. Each of its shards is closed halfway and has a child. */
function historyOf(all: readonly Step[]): History {
  const parents = Array.from({ length: STREAM_SHARDS }, (): Shard => newShard(undefined));
  const children = parents.map((parent) => newShard(parent));
  const items = new Map<string, Item>();
  const consumed = new Map<string, number>();
  const acquires = new Map<string, number>();
  const peaks = new Map<string, number>();
  let atMs = AT;
  all.forEach((step, position) => {
    atMs += step.minutes * 60_000;
    const entity = ENTITIES[step.entity] as string;
    const place = `${entity}#${step.shard}`;
    const line = (step.entity * BUCKET_SHARDS + step.shard) % STREAM_SHARDS;
    const shard = (position < all.length / 2 ? parents : children)[line] as Shard;
    const before = step.renewed ? undefined : items.get(place);
    const count = ((before?.ac as number | undefined) ?? 0) + (step.acquires ? 1 : 0);
    const [rpm, tpm] = step.amounts.map((amount, at) => {
      const name = at === 0 ? "rpm" : "tpm";
      add(consumed, `${entity} ${name}`, amount);
      return ((before?.[`b_${name}_tc`] as number | undefined) ?? 0) + amount * 1000;
    }) as [number, number];
    if (step.acquires) add(acquires, entity, 1);
    const fields = { entity, shard: step.shard, shards: BUCKET_SHARDS };
    // Every write of ours moves the meter of writes.
    const more = { wm: AT + position, ...slotsOf(step.held) };
    const after = bucketItem({ ...fields, tc: { rpm, tpm }, acquires: count, more });
    items.set(place, after);
    notePeaks(peaks, place, step, { before, atMs });
    shard.records.push(recordOf(position, before, after, atMs));
  });
  return { shards: [...parents, ...children], consumed, acquires, peaks };
}

/** Notes what a write shows of slots; one that consumes and corrects nothing counts nothing. */
function notePeaks(
  peaks: Map<string, number>,
  place: string,
  { acquires, amounts, held }: Step,
  { before, atMs }: { readonly before: Item | undefined; readonly atMs: number },
): void {
  if (!acquires && amounts.every((amount) => amount === 0)) return;
  for (const type of WINDOW_TYPES) {
    const name = `${type} ${place} ${windowStartMs(type, atMs)}`;
    peaks.set(name, Math.max(peaks.get(name) ?? 0, heldIn(before), held));
  }
}

const SLOTS = 1000;

function slotsOf(count: number) {
  const marks = new Map([["p.1", { sequence: 1, count }]]);
  return slotAttributes("parallel", { free: SLOTS - count, capacity: SLOTS, marks });
}

function heldIn(item: Item | undefined): number {
  return item === undefined ? 0 : SLOTS - (item.s_parallel_fr as number);
}

function newShard(parent: Shard | undefined): Shard {
  return { records: [], parent, checkpoint: 0 };
}

function recordOf(
  position: number,
  before: Item | undefined,
  after: Item,
  atMs: number,
): StreamChange {
  const id = String(position * 7 + 1);
  const { PK, SK } = after;
  return { id, order: orderOf("", id), key: { PK, SK }, before, after, atMs };
}

function add(sums: Map<string, number>, name: string, amount: number): void {
  sums.set(name, (sums.get(name) ?? 0) + amount);
}

/** Shards that are not read to their end and whose parent is. */
function readable(shards: readonly Shard[]): Shard[] {
  const isDone = ({ checkpoint, records }: Shard) => checkpoint >= records.length;
  return shards.filter(
    (shard) => !isDone(shard) && (shard.parent === undefined || isDone(shard.parent)),
  );
}

/** One batch; the checkpoint moves to the first record that failed, unless the process died. */
async function deliver(
  aggregator: Aggregator,
  store: CrashingStore,
  shard: Shard,
  turn: Turn,
): Promise<void> {
  const from = Math.max(0, shard.checkpoint - turn.back);
  const batch = shard.records.slice(from, from + turn.size);
  if (turn.crashes) store.crashAfter(turn.crashAfter, turn.afterwards);
  const { failedIds } = await aggregator.process(batch);
  store.restart();
  const failed = batch.findIndex(({ id }) => id === failedIds[0]);
  const reached = from + (failed === -1 ? batch.length : failed);
  // A late redelivery moves no checkpoint back.
  shard.checkpoint = Math.max(shard.checkpoint, reached);
}

async function totals(store: CrashingStore): Promise<Map<string, number>> {
  const sums = new Map<string, number>();
  for (const entity of ENTITIES) {
    for await (const item of store.query({ partition: `${NAMESPACE}/ENTITY#${entity}` })) {
      const snapshot = decodeUsage(item);
      if (snapshot === undefined) continue;
      const { windowType, counters, totalEvents, peaks } = snapshot;
      add(sums, `${windowType} ${entity} peaks`, peaks?.["parallel"] ?? 0);
      add(sums, `${windowType} ${entity} events`, totalEvents);
      for (const [name, count] of Object.entries(counters)) {
        add(sums, `${windowType} ${entity} ${name}`, count);
      }
    }
  }
  return sums;
}

function expected({ consumed, acquires, peaks }: History): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [name, peak] of peaks) add(sums, `${name.split("#")[0]} peaks`, peak);
  for (const type of WINDOW_TYPES) {
    for (const [name, amount] of consumed) sums.set(`${type} ${name}`, amount);
    for (const [name] of consumed) {
      const entity = name.split(" ")[0] as string;
      sums.set(`${type} ${entity} events`, acquires.get(entity) ?? 0);
    }
  }
  return sums;
}

/** Without what adds up to nothing, for which there may be no counter. */
const sorted = (sums: ReadonlyMap<string, number>) =>
  Object.fromEntries([...sums].filter(([, sum]) => sum !== 0).toSorted());

async function run(all: readonly Step[], readers: readonly Turn[]): Promise<void> {
  const history = historyOf(all);
  const store = new CrashingStore({ clock: () => AT });
  const aggregator = new Aggregator({
    store,
    clock: () => AT,
    log: () => undefined,
    timer: { nowMs: () => 0, sleep: async () => undefined },
  });
  for (const turn of readers) {
    const open = readable(history.shards);
    if (open.length === 0) break;
    await deliver(aggregator, store, open[turn.pick % open.length] as Shard, turn);
  }
  const rest = { pick: 0, size: 5, back: 2, crashAfter: 0, crashes: false, afterwards: false };
  for (let open = readable(history.shards); open.length > 0; open = readable(history.shards)) {
    await deliver(aggregator, store, open[0] as Shard, { ...rest, back: 0 });
  }
  expect(sorted(await totals(store))).toEqual(sorted(expected(history)));
  // Everything once more, from the beginning.
  for (const shard of history.shards) await aggregator.process(shard.records);
  expect(sorted(await totals(store))).toEqual(sorted(expected(history)));
  await store.close();
}

test("every change counts once, whatever readers do", async () => {
  await fc.assert(fc.asyncProperty(steps, turns, run), { numRuns: casesOf(300) });
});

test("a process that dies between any two writes leaves nothing half counted", async () => {
  const all: Step[] = Array.from({ length: 12 }, (_, at) => ({
    entity: at % ENTITIES.length,
    shard: at % BUCKET_SHARDS,
    amounts: [1, 100 * (at + 1)],
    acquires: true,
    minutes: 25,
    held: (at * 5) % 9,
    renewed: false,
  }));
  for (const afterwards of [false, true]) {
    for (let crashAfter = 0; crashAfter < 40; crashAfter += 1) {
      const turn = { size: 12, back: 0, crashAfter, crashes: true, afterwards };
      const readers = Array.from({ length: 9 }, (_, pick) => ({ ...turn, pick }));
      await run(all, readers);
    }
  }
});
