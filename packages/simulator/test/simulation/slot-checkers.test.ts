/** The checkers of slots, shown writes and grants that are right and some that are wrong. */

import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { SlotBooks } from "@zae-limiter/simulator/checkers/slots/slot-books.ts";
import { SlotGrants } from "@zae-limiter/simulator/checkers/slots/slot-grants.ts";
import { CallDrawer } from "@zae-limiter/simulator/simulation/call-drawer.ts";
import { CallJudge } from "@zae-limiter/simulator/simulation/call-judge.ts";
import { World } from "@zae-limiter/simulator/simulation/world.ts";
import { drawWorld } from "@zae-limiter/simulator/simulation/worlds.ts";
import { seededRandom } from "@zae-limiter/testing/seeded-random.ts";
import type { Landing, TableCall } from "@zae-limiter/testing/table/call.ts";
import { VirtualTime } from "@zae-limiter/testing/time/virtual-time.ts";
import { beforeEach, describe, expect, test } from "vitest";

const START_MS = 1_800_000_000_000;
const SLOT = "e api s";

interface Slots {
  readonly free: number;
  readonly cp?: number;
  /** Sequence and count by entry. */
  readonly held?: Readonly<Record<string, readonly [number, number]>>;
}

/** Returns a shard of a bucket with three slots. */
function shard({ free, cp = 3, held = {} }: Slots, number = 0): Item {
  const entries = Object.entries(held).map(([entry, [sequence, count]]) => {
    return [`s_s_h_${entry}`, sequence * 65_536 + count] as const;
  });
  return {
    PK: `ns/BUCKET#e#api#${number}`,
    SK: "#STATE",
    rf: START_MS,
    s_s_fr: free,
    s_s_cp: cp,
    ...Object.fromEntries(entries),
  };
}

function callOf(process: number): TableCall {
  return {
    process,
    operation: "UpdateItem",
    plannedMs: START_MS,
    token: undefined,
    landings: [],
  };
}

function landing(before: Item | undefined, after: Item | undefined): Landing {
  const { PK, SK } = (after ?? before) as Item;
  return { key: { PK, SK }, before, after };
}

/** The landing of the record of a holder that is over some seconds after the start. */
function record(id: string, seconds: number): Landing {
  const key = { PK: `_/HOLDER#${id}`, SK: "#META" };
  return { key, before: undefined, after: { ...key, until: START_MS + seconds * 1000 } };
}

describe("the books of slots", () => {
  let books: SlotBooks;
  const follow = (process: number, landings: readonly Landing[], seconds = 0) =>
    books.landed(callOf(process), landings, START_MS + seconds * 1000);
  const one = shard({ free: 2, held: { "p.1": [1, 1] } });
  const two = shard({ free: 1, held: { "p.1": [1, 1], "q.1": [1, 1] } });

  beforeEach(() => {
    books = new SlotBooks(100);
    follow(1, [record("p", 60)]);
    follow(2, [record("q", 60)]);
    follow(1, [landing(undefined, one)]);
  });

  test("a write that takes or gives back keeps the sum of what is free and held", () => {
    follow(2, [landing(one, two)]);
    follow(2, [landing(two, shard({ free: 2, held: { "p.1": [1, 1], "q.1": [2, 0] } }))]);
    follow(1, [landing(one, shard({ free: 3 }))]);
  });

  test("a slot that is freed and still held is one too many, and the other way one is lost", () => {
    const made = shard({ free: 3, held: { "p.1": [1, 1] } });
    expect(() => follow(1, [landing(one, made)])).toThrow(/^over-admission.*makes 1 slots/);
    const lost = shard({ free: 2 });
    expect(() => follow(1, [landing(one, lost)])).toThrow(/^conservation.*makes -1 slots/);
    expect(() => follow(1, [landing(undefined, shard({ free: 4 }))])).toThrow(/over-admission/);
  });

  test("an entry is written by its own process alone", () => {
    const taken = shard({ free: 1, held: { "p.1": [2, 2] } });
    expect(() => follow(2, [landing(one, taken)])).toThrow(/^leases.*changes the entry p\.1/);
  });

  test("an entry is removed by others once the record of its holder is over", () => {
    const free = shard({ free: 3 });
    expect(() => follow(2, [landing(one, free)], 59)).toThrow(/^leases.*removes the entry p\.1/);
    follow(2, [landing(one, free)], 60);
    books.crashed(1);
    follow(2, [landing(one, free)], 1);
  });

  test("a split and a merge move slots between shards and keep their sum", () => {
    const left = shard({ free: 1, held: { "p.1": [1, 1] } });
    const right = shard({ free: 1 }, 1);
    follow(2, [landing(one, left), landing(undefined, right)]);
    expect(() => follow(2, [landing(one, left)])).toThrow(/conservation/);
    const { PK, SK } = right;
    follow(2, [landing(left, one), landing(right, { PK, SK })]);
    expect(() => follow(2, [landing(left, left), landing(right, { PK, SK })])).toThrow(
      /conservation/,
    );
  });

  test("a changed number of slots is not compared, nor is a bucket that was deleted", () => {
    follow(1, [landing(one, shard({ free: 9, cp: 10, held: { "p.1": [1, 1] } }))]);
    follow(1, [landing(one, undefined)]);
  });

  test("no process that is alive holds slots when its calls have ended", () => {
    expect(() => books.close([one])).toThrow(/^conservation.*held by p\.1/);
    expect(() => books.close([shard({ free: 3, held: { "p.1": [4, 0] } })])).not.toThrow();
    books.lost("p");
    expect(() => books.close([one])).not.toThrow();
    expect(() => books.close([two])).toThrow(/held by q\.1/);
    books.crashed(2);
    expect(() => books.close([two])).not.toThrow();
  });
});

describe("the grants of slots", () => {
  let grants: SlotGrants;
  const grantOf = (process: number, count = 1) => ({ process, slot: SLOT, count });

  beforeEach(() => {
    grants = new SlotGrants();
  });

  test("calls may hold all slots, and not one more", () => {
    const first = grantOf(1, 2);
    grants.take(first, 3);
    grants.take(grantOf(2), 3);
    expect(() => grants.take(grantOf(2), 3)).toThrow(/calls hold 4 of 3 slots/);
    const others = { process: 1, slot: "e api2 s", count: 3 };
    grants.take(others, 3);
    grants.give(first);
    grants.take(grantOf(1), 3);
  });

  test("what a process has lost counts no more, and gives nothing of others back", () => {
    const lost = grantOf(1, 3);
    grants.take(lost, 3);
    grants.drop(1);
    grants.take(grantOf(2, 3), 3);
    grants.give(lost);
    expect(() => grants.take(grantOf(1), 3)).toThrow(/3 by process 2, 1 by process 1/);
  });
});

describe("a refusal that names slots", () => {
  test("a refusal is judged by the rates it names, unless it names slots too", async () => {
    const time = new VirtualTime();
    const table = { seed: 1, faults: {}, latency: { medianMs: 1 } };
    const world = new World({ time, table, keepsLog: false, skewMs: 0, judgesRefusals: true });
    const process = world.table.process();
    const limiter = await time.until(process.open());
    const limits = [Limit.parse("a:7/min"), Limit.parse("s:1 concurrent")];
    await time.until(limiter.repository.limits.setResource("api", limits));
    const consume = { a: 1, s: 1 };
    const request = { entityId: "e0", resource: "api", consume };
    const { statuses } = await time.until(limiter.acquire(request));
    const call = new CallDrawer(drawWorld("slots", 1, 1), seededRandom(1, "calls")).draw();
    const caller = { id: process.id, limiter, timer: process.timer, timeoutMs: 800 };
    const judge = new CallJudge(world, caller, call);
    expect(() => judge.refusal(statuses.slice(0, 1))).toThrow(/"a" of e0 api had at least/);
    expect(judge.refusal(statuses)).toBe("refused for slots");
  });
});
