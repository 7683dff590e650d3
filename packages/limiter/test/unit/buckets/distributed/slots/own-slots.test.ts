/**
 * The protocol of slots under writes that are lost and late, and processes that crash: never more
 * grants than slots, and in the end all of them are free.
 */

import { setMaxListeners } from "node:events";
import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { Deadline } from "@zae-limiter/limiter/base/time.ts";
import {
  OwnSlots,
  type SlotMove,
  type UnsureWrite,
} from "@zae-limiter/limiter/buckets/distributed/slots/own-slots.ts";
import { holderOf } from "@zae-limiter/limiter/buckets/slots/slot-holder.ts";
import {
  RateLimiterUnavailable,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { isEntry } from "@zae-limiter/limiter/records/slot-attributes.ts";
import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { lehmer } from "@zae-limiter/test-support/lehmer.ts";
import { busyTimer } from "@zae-limiter/test-support/table.ts";
import { describe, expect, test } from "vitest";

const KEY: Key = { PK: "ns/BUCKET#e#r#0", SK: "#STATE" };
const SLOTS = 5;
const TIMEOUT_MS = 1_000_000_000;

function move(count: number, entry?: string): SlotMove {
  const enough = { is: ">=", name: "s_parallel_fr", value: count } as const;
  const condition = count > 0 ? [enough] : [];
  const change = { add: { s_parallel_fr: -count } };
  return { key: KEY, plan: { change, condition, slots: new Map([["parallel", count]]) }, entry };
}

/** The way in which an update fails. */
type Fault = "none" | "late" | "lost";

class World {
  readonly items = new MemoryItemStore({ clock: () => 0 });
  readonly timer = busyTimer();
  readonly late: (() => Promise<unknown>)[] = [];
  readonly random: Random;
  fault: () => Fault = () => "none";
  /** Holds updates back until it resolves. */
  gate: Promise<void> | undefined;

  constructor(random: Random) {
    this.random = random;
  }

  async begin(): Promise<void> {
    await this.items.put({ ...KEY, rf: 1, s_parallel_fr: SLOTS, s_parallel_cp: SLOTS });
  }

  get item(): Item {
    return this.items.readNow(KEY) as Item;
  }

  get free(): number {
    return Number(this.item["s_parallel_fr"]);
  }

  store(isDown: () => boolean): ItemStore {
    const unknown = () => new RateLimiterUnavailable("The answer was lost", { reason: "timeout" });
    const { items } = this;
    return {
      get: async (...call: Parameters<ItemStore["get"]>) => {
        if (isDown()) throw unknown();
        return items.get(...call);
      },
      update: async (...call: Parameters<ItemStore["update"]>) => {
        if (isDown()) throw unknown();
        if (this.gate !== undefined) await this.gate;
        const fault = this.fault();
        if (fault === "late") this.late.push(() => items.update(...call));
        if (fault === "lost") await items.update(...call);
        if (fault !== "none") throw unknown();
        return items.update(...call);
      },
    } as Partial<ItemStore> as ItemStore;
  }
}

class Process {
  readonly leases: string[] = [];
  readonly closing = new AbortController();
  readonly slots: OwnSlots;
  readonly held: number[] = [];
  isDown = false;
  isBusy = false;
  readonly #world: World;

  constructor(
    world: World,
    readonly id: string,
  ) {
    this.#world = world;
    let entries = 0;
    const holder = {
      current: id,
      renew: async () => id,
      newEntry: () => {
        entries += 1;
        return `${id}.${entries}`;
      },
      add: (_: string, count: number) => {
        this.held.push(count);
      },
      close: async () => {},
    };
    const { timer, random } = world;
    const closed = this.closing.signal;
    setMaxListeners(0, closed);
    const options = { holder, timer, random, closed, timeoutMs: TIMEOUT_MS };
    this.slots = new OwnSlots({ store: world.store(() => this.isDown), clock: () => 0 }, options);
  }

  get deadline(): Deadline {
    return new Deadline(this.#world.timer, TIMEOUT_MS);
  }

  async take(): Promise<boolean> {
    try {
      const sent = await this.slots.update(move(1), this.deadline);
      if (sent?.ok === true && !this.isDown) this.leases.push(String(sent.entries[0]));
      return sent?.ok === true;
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      return false;
    }
  }

  /** Gives back as a lease does: again and again, once. */
  async release(): Promise<void> {
    const entry = this.leases.shift() as string;
    let unsure: UnsureWrite | undefined;
    while (!this.isDown) {
      try {
        if (unsure !== undefined && (await this.slots.hasArrived(unsure, this.deadline))) return;
        unsure = undefined;
        await this.slots.update(move(-1, entry), this.deadline, {}, (one) => {
          unsure = one;
        });
        return;
      } catch (error) {
        if (!(error instanceof RateLimiterUnavailable)) throw error;
      }
    }
  }

  act(random: Random): void {
    if (this.isBusy || this.isDown) return;
    this.isBusy = true;
    const goesBack = this.leases.length > 0 && random() < 0.5;
    void (goesBack ? this.release() : this.take()).finally(() => {
      this.isBusy = false;
    });
  }
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await Promise.resolve();
}

/** Gives back what dead processes have, as any client may. */
async function reclaim(world: World, dead: ReadonlySet<string>): Promise<void> {
  for (const [name, value] of Object.entries(world.item)) {
    if (!isEntry(name) || !dead.has(holderOf(name.slice("s_parallel_h_".length)))) continue;
    const test = { is: "=", name, value: value as number } as const;
    const add = { s_parallel_fr: (value as number) % 65_536 };
    await world.items.update(KEY, { add, remove: [name] }, [test]);
  }
}

async function run(seed: number): Promise<number> {
  const random = lehmer(seed);
  const world = new World(random);
  await world.begin();
  world.fault = () => {
    const part = random();
    if (part < 0.1) return "late";
    return part < 0.16 ? "lost" : "none";
  };
  let made = 0;
  const fresh = () => {
    made += 1;
    return new Process(world, `p${made}`);
  };
  const processes = Array.from({ length: 4 }, fresh);
  const all = [...processes];
  const dead = new Set<string>();
  let most = 0;
  for (let step = 0; step < 600; step += 1) {
    for (const [at, process] of processes.entries()) {
      if (random() < 0.003) {
        process.isDown = true;
        dead.add(process.id);
        process.leases.length = 0;
        processes[at] = fresh();
        all.push(processes[at] as Process);
      } else if (random() < 0.5) process.act(random);
    }
    if (random() < 0.05)
      await world.late.splice(Math.floor(random() * world.late.length), 1)[0]?.();
    if (random() < 0.1) await reclaim(world, dead);
    if (random() < 0.3) world.timer.wake();
    await turns(Math.floor(random() * 8));
    const held = processes.reduce((sum, { leases }) => sum + leases.length, 0);
    most = Math.max(most, held);
    expect(world.free).toBeGreaterThanOrEqual(0);
  }
  await end(world, processes, all, dead);
  return most;
}

/** All that is late arrives, all leases end, and all that is dead is given back. */
async function end(
  world: World,
  processes: readonly Process[],
  all: readonly Process[],
  dead: ReadonlySet<string>,
): Promise<void> {
  world.fault = () => "none";
  while (world.late.length > 0) await world.late.shift()?.();
  for (let round = 0; round < 20; round += 1) {
    world.timer.wake();
    await turns(50);
    for (const process of processes) if (process.leases.length > 0) process.act(() => 0);
    await reclaim(world, dead);
  }
  for (const { closing } of all) closing.abort();
  await Promise.all(all.map(({ slots }) => slots.close()));
  await reclaim(world, dead);
  expect(world.free).toBe(SLOTS);
  const held = Object.entries(world.item).filter(
    ([name, value]) => isEntry(name) && (value as number) % 65_536 > 0,
  );
  expect(held).toEqual([]);
  for (const process of processes) {
    expect(process.held.reduce((sum, count) => sum + count, 0)).toBe(0);
  }
}

describe("slots of four processes, with lost and late writes, crashes and reclaims", () => {
  test.each(Array.from({ length: 20 }, (_, at) => at + 1))(
    "seed %d never grants more than there are, and loses none",
    async (seed) => {
      const most = await run(seed);
      expect(most).toBeLessThanOrEqual(SLOTS);
      expect(most).toBeGreaterThan(SLOTS - 2);
    },
  );
});

async function opened(): Promise<{ world: World; process: Process }> {
  const world = new World(lehmer(7));
  await world.begin();
  return { world, process: new Process(world, "p1") };
}

test("a take whose answer was lost is given back, and held until that is known", async () => {
  const { world, process } = await opened();
  let faults: readonly Fault[] = ["lost"];
  world.fault = () => {
    const [fault = "none", ...others] = faults;
    faults = others;
    return fault;
  };
  expect(await process.take()).toBe(false);
  expect(process.held).toEqual([1]);
  await turns(100);
  await process.slots.close();
  expect(world.free).toBe(SLOTS);
  expect(process.held.filter((count) => count !== 0)).toEqual([1, -1]);
});

test("a take that is late finds a fence, and never happens", async () => {
  const { world, process } = await opened();
  let fault: Fault = "late";
  world.fault = () => {
    const now = fault;
    fault = "none";
    return now;
  };
  expect(await process.take()).toBe(false);
  await turns(100);
  expect(world.item["s_parallel_h_p1.1"]).toBe(65_536);
  await world.late.shift()?.();
  expect(world.free).toBe(SLOTS);
  // Its entry stays, and is used again.
  expect(await process.take()).toBe(true);
  await process.release();
  expect(world.item["s_parallel_h_p1.1"]).toBe(3 * 65_536);
  await process.slots.close();
});

test("an entry that is gone gives nothing back", async () => {
  const { world, process } = await opened();
  await process.take();
  await reclaim(world, new Set(["p1"]));
  expect(await process.slots.update(move(-1, "p1.1"), process.deadline)).toMatchObject({
    ok: false,
  });
  expect(await process.slots.update(move(-1, "p1.1"), process.deadline)).toBeUndefined();
  expect(world.free).toBe(SLOTS);
  expect(process.held).toEqual([1, -1]);
});

test("one process cannot hold more slots of a bucket than its entry counts", async () => {
  const { world, process } = await opened();
  await world.items.update(KEY, { set: { s_parallel_fr: 1_000_000 } });
  await process.slots.update(move(65_535), process.deadline);
  await expect(process.slots.update(move(1), process.deadline)).rejects.toThrow(ValidationError);
  expect(world.free).toBe(1_000_000 - 65_535);
});

test("a call whose turn does not come in time ends, and passes its turn on", async () => {
  const { world, process } = await opened();
  let open: () => void = () => {};
  world.gate = new Promise((resolve) => {
    open = resolve;
  });
  const first = process.take();
  const late = [process.take(), process.take()];
  await turns(20);
  // All deadlines of those that wait are over.
  world.timer.wake();
  expect(await Promise.all(late)).toEqual([false, false]);
  const next = process.take();
  open();
  expect(await first).toBe(true);
  expect(await next).toBe(true);
  expect(world.free).toBe(SLOTS - 2);
  expect(process.held).toEqual([1, 1]);
});
