/** Each checker, shown writes that are right and writes that are wrong. */

import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { Books, slotOf } from "@zae-limiter/simulator/checkers/books.ts";
import { imageOf } from "@zae-limiter/simulator/checkers/bucket-image.ts";
import { bucketLandings, Ledger } from "@zae-limiter/simulator/checkers/ledger.ts";
import { Moments } from "@zae-limiter/simulator/checkers/moments.ts";
import { Returns } from "@zae-limiter/simulator/checkers/returns.ts";
import { refuseGhost, Shape } from "@zae-limiter/simulator/checkers/shape.ts";
import { flowOf, Share } from "@zae-limiter/simulator/checkers/share.ts";
import { Totals } from "@zae-limiter/simulator/checkers/total.ts";
import { windowsIn } from "@zae-limiter/simulator/checkers/windows.ts";
import { mostOf } from "@zae-limiter/simulator/simulation/call-run.ts";
import type { Landing, TableCall } from "@zae-limiter/testing/table/call.ts";
import { beforeEach, describe, expect, test } from "vitest";

const START_MS = 1_800_000_000_000;
const SLOT = slotOf("e", "api", "a");

interface Held {
  readonly tk: number;
  readonly tc: number;
  readonly rf?: number;
  readonly rr?: number;
  readonly shard?: number;
  readonly count?: number;
  readonly cp?: number;
}

/** Returns a bucket of ten tokens that gains one a second; amounts in tokens, times in seconds. */
function bucket({ tk, tc, rf = 0, rr = 0, shard = 0, count = 1, cp = 10 }: Held): Item {
  return {
    PK: `ns/BUCKET#e#api#${shard}`,
    SK: "#STATE",
    GSI2PK: "ns/RESOURCE#api",
    GSI2SK: `BUCKET#e#${shard}`,
    GSI3PK: "ns/ENTITY#e",
    GSI3SK: `BUCKET#api#${shard}`,
    GSI4PK: "ns",
    GSI4SK: `BUCKET#e#api#${shard}`,
    entity_id: "e",
    resource: "api",
    cascade: false,
    rf: START_MS + rf * 1000,
    shard_count: count,
    b_a_tk: tk * 1000,
    b_a_tc: tc * 1000,
    b_a_cp: cp * 1000,
    b_a_ra: cp * 1000,
    b_a_rp: 10_000,
    ...(rr === 0 ? {} : { b_a_rr: rr }),
  };
}

function callAt(seconds: number, process = 0, token?: string): TableCall {
  return {
    process,
    operation: "UpdateItem",
    plannedMs: START_MS + seconds * 1000,
    token,
    landings: [],
  };
}

function landing(before: Item | undefined, after: Item | undefined): Landing {
  const { PK, SK } = (after ?? before) as Item;
  return { key: { PK, SK }, before, after };
}

type Follow = (call: TableCall, ...landings: Landing[]) => void;

describe("an ideal share with windows", () => {
  // It begins at eight, and has twice the numbers until nine.
  const limit = {
    capacity: 60_000,
    refill: 60_000,
    period: 60_000,
    windows: windowsIn("1h8s2000"),
  };
  const boundaryMs = START_MS + 3_600_000;

  test("a split by a clock that is behind a boundary counts the time before it by its numbers", () => {
    const plannedMs = boundaryMs - 2500;
    const share = new Share(flowOf(limit, 1, 2), plannedMs, 0n);
    share.refill(boundaryMs + 400);
    share.change(flowOf(limit, 1, 8), plannedMs, 0n, true);
    const stored = { tokens: 0n, epochMs: plannedMs, remainder: 0 };
    expect(share.judge(stored)).toBeUndefined();
    expect(share.judge({ ...stored, tokens: -700n })).toBe("below");
    expect(share.judge({ ...stored, tokens: 2900n })).toBe("above");
  });
});

describe("the ledger", () => {
  let follow: Follow;
  let debt = 0n;
  const first = bucket({ tk: 7, tc: 3 });

  beforeEach(() => {
    debt = 0n;
    const ledger = new Ledger(() => debt);
    follow = (call, ...landings) => ledger.landed(bucketLandings(call, landings));
    follow(callAt(0), landing(undefined, first));
  });

  test("a consume of what is there passes, at whatever time", () => {
    const landed = landing(first, bucket({ tk: -2, tc: 12 }));
    expect(() => follow(callAt(2), landed)).not.toThrow();
  });

  test("a balance that did not lose what was consumed is found", () => {
    const wrong = bucket({ tk: 7, tc: 4 });
    expect(() => follow(callAt(1), landing(first, wrong))).toThrow(/over-admission.*holds 8000/);
  });

  test("a full bucket that has kept the time beyond full passes", () => {
    // After ten seconds it is full: one token less leaves nine, -1 relative to the base time.
    const landed = landing(first, bucket({ tk: -1, tc: 4 }));
    expect(() => follow(callAt(10), landed)).not.toThrow();
  });

  test("a full bucket that has kept one token too many is found", () => {
    const wrong = bucket({ tk: 0, tc: 4 });
    expect(() => follow(callAt(10), landing(first, wrong))).toThrow(/over-admission/);
  });

  test("a write that was planned before another one, and lands after it, has forgotten less", () => {
    const second = bucket({ tk: -2, tc: 4 });
    follow(callAt(11), landing(first, second));
    // Planned for second 10, when the bucket was full as well.
    expect(() => follow(callAt(10), landing(second, bucket({ tk: -1, tc: 5 })))).toThrow();
  });

  describe("a write that is repeated for the moment of its first try", () => {
    // Full at second 10 and at second 11; the second write was served first.
    const second = bucket({ tk: -2, tc: 4 });
    const late = bucket({ tk: -3, tc: 5 });
    const below = (tk: number) => [{ is: "<=", name: "b_a_tk", value: tk * 1000 }] as const;
    const repeated = { ...landing(second, late), condition: below(0) };
    const { key } = repeated;

    test("a repeated write is right when it had failed before, and its condition proves the time", () => {
      const moments = new Moments();
      const ledger = new Ledger(() => 0n);
      const land = (call: TableCall, ...landings: Landing[]) =>
        ledger.landed(bucketLandings(call, landings, moments));
      land(callAt(0), landing(undefined, first));
      land(callAt(11), landing(first, second));
      moments.missed(callAt(10), key);
      land(callAt(15), repeated);
    });

    test.each([
      ["no call had tried before", () => {}, below(0)],
      ["another process had", (moments: Moments) => moments.missed(callAt(10, 1), key), below(0)],
      ["it proves no moment", (moments: Moments) => moments.missed(callAt(10), key), below(1)],
    ])("a repeated write is too much where %s", (_, prepare, condition) => {
      const moments = new Moments();
      const ledger = new Ledger(() => 0n);
      const land = (call: TableCall, ...landings: Landing[]) =>
        ledger.landed(bucketLandings(call, landings, moments));
      land(callAt(0), landing(undefined, first));
      land(callAt(11), landing(first, second));
      prepare(moments);
      expect(() => land(callAt(15), { ...repeated, condition })).toThrow(/over-admission/);
    });
  });

  test("a balance that lost more than was consumed is found", () => {
    const wrong = bucket({ tk: 5, tc: 4 });
    expect(() => follow(callAt(1), landing(first, wrong))).toThrow(/conservation/);
  });

  test("a remainder that was lost is found", () => {
    // Half a token per second: 1,001 ms make 500 milli-tokens and a half.
    const odd = { ...bucket({ tk: 7, tc: 3 }), b_a_ra: 5000 };
    const ledger = new Ledger(() => 0n);
    const land = (seconds: number, before: Item | undefined, after: Item) =>
      ledger.landed(bucketLandings(callAt(seconds), [landing(before, after)]));
    land(0, undefined, odd);
    const moved = (ms: number, tk: number, before: Item) => {
      const after = { ...odd, rf: START_MS + ms, b_a_tk: tk };
      land(ms / 1000, before, after);
      return after;
    };
    expect(() => moved(1001, 7500, odd)).toThrow(/conservation/);
  });

  test("a debt that no adjustment has made is found", () => {
    const owing = bucket({ tk: -2, tc: 12 });
    expect(() => follow(callAt(0), landing(first, owing))).toThrow(/in debt/);
  });

  test("a debt that an adjustment may have made passes", () => {
    debt = 2000n;
    const landed = landing(first, bucket({ tk: -2, tc: 12 }));
    expect(() => follow(callAt(0), landed)).not.toThrow();
  });

  test("halves of a split that add up, moved in one step, pass", () => {
    const half = bucket({ tk: 3, tc: 3, rf: 0, count: 2 });
    const other = bucket({ tk: 4, tc: 0, rf: 0, count: 2, shard: 1 });
    follow(callAt(0), landing(first, half), landing(undefined, other));
    // Each gains at half the rate.
    const later = landing(other, bucket({ tk: 1, tc: 3, rf: 0, count: 2, shard: 1 }));
    expect(() => follow(callAt(2), later)).not.toThrow();
  });

  test("halves of a split that are more than the whole are found", () => {
    const half = bucket({ tk: 4, tc: 3, count: 2 });
    const other = bucket({ tk: 4, tc: 0, count: 2, shard: 1 });
    const split = () => follow(callAt(0), landing(first, half), landing(undefined, other));
    expect(split).toThrow(/over-admission/);
  });

  test("a shard that comes from nowhere is found", () => {
    const other = bucket({ tk: 1, tc: 0, count: 2, shard: 1 });
    expect(() => follow(callAt(0), landing(undefined, other))).toThrow(/over-admission/);
  });

  test("a bucket that expired before it was full is found", () => {
    const again = bucket({ tk: 9, tc: 1, rf: 2 });
    expect(() => follow(callAt(2), landing(undefined, again))).toThrow(/expired before/);
  });

  test("a bucket that expired full, and one that was deleted, pass", () => {
    follow(callAt(3), landing(undefined, bucket({ tk: 9, tc: 1, rf: 3 })));
    follow(callAt(3), landing(bucket({ tk: 9, tc: 1, rf: 3 }), undefined));
    const again = landing(undefined, bucket({ tk: 9, tc: 1, rf: 3 }));
    expect(() => follow(callAt(3), again)).not.toThrow();
  });
});

describe("totals", () => {
  test("shards that consume more together than the bucket ever had are found", () => {
    const totals = new Totals(() => 0n);
    const land = (call: TableCall, ...landings: Landing[]) =>
      totals.landed(bucketLandings(call, landings));
    const zero = bucket({ tk: 5, tc: 5, count: 2 });
    land(callAt(0), landing(undefined, zero));
    const one = (tc: number) => bucket({ tk: 0, tc, rf: 1, count: 2, shard: 1 });
    land(callAt(1), landing(undefined, one(6)));
    expect(totals.follows("e api", "a")).toBe(true);
    expect(() => land(callAt(1), landing(one(6), one(7)))).toThrow(/over-admission/);
  });

  describe("a shard that a slow clock consumes from after a fast one did from the other", () => {
    const shardOf = (shard: number, tc: number) => bucket({ tk: 0, tc, count: 2, shard });
    const land = (totals: Totals, seconds: number, ...landings: Landing[]) =>
      totals.landed(bucketLandings(callAt(seconds), landings));
    let totals: Totals;

    beforeEach(() => {
      totals = new Totals(() => 0n);
      land(totals, 0, landing(undefined, shardOf(0, 0)), landing(undefined, shardOf(1, 0)));
      // Both are full. The second write was made at the same moment, by a clock that is 4 s behind.
      land(totals, 14, landing(shardOf(0, 0), shardOf(0, 5)));
      land(totals, 10, landing(shardOf(1, 0), shardOf(1, 5)));
    });

    test("a total may have what the other shard gains in the time by which clocks differ", () => {
      land(totals, 14, landing(shardOf(1, 5), shardOf(1, 7)));
      expect(totals.follows("e api", "a")).toBe(true);
    });

    test("a total above what accrues within the difference of the clocks is reported", () => {
      const more = () => land(totals, 14, landing(shardOf(1, 5), shardOf(1, 10)));
      expect(more).toThrow(/over-admission.*a take of 5000 milli-tokens/);
    });

    test("a total has no such time where the clocks agree", () => {
      const same = new Totals(() => 0n);
      land(same, 0, landing(undefined, shardOf(0, 0)), landing(undefined, shardOf(1, 0)));
      land(same, 14, landing(shardOf(0, 0), shardOf(0, 5)));
      land(same, 14, landing(shardOf(1, 0), shardOf(1, 5)));
      const more = () => land(same, 14, landing(shardOf(1, 5), shardOf(1, 6)));
      expect(more).toThrow(/over-admission/);
    });

    test("a total counts a refund when it lands, and not by the clock of its process", () => {
      land(totals, 14, landing(shardOf(1, 5), shardOf(1, 9)));
      land(totals, 10, landing(shardOf(1, 9), shardOf(1, 8)));
      land(totals, 14, landing(shardOf(1, 8), shardOf(1, 9)));
      const more = () => land(totals, 14, landing(shardOf(1, 9), shardOf(1, 10)));
      expect(more).toThrow(/over-admission/);
    });
  });

  test("limits that change are not followed any more", () => {
    const totals = new Totals(() => 0n);
    const before = bucket({ tk: 0, tc: 10 });
    totals.landed(bucketLandings(callAt(0), [landing(undefined, before)]));
    const after = bucket({ tk: 0, tc: 20, cp: 100 });
    totals.landed(bucketLandings(callAt(0), [landing(before, after)]));
    expect(totals.follows("e api", "a")).toBe(false);
  });
});

describe("the books", () => {
  const taken = bucket({ tk: 7, tc: 3 });
  const images = (item: Item) => [imageOf(item)].flatMap((image) => image ?? []);
  const amounts = (milli: number) => new Map([[SLOT, milli]]);
  const booksAfter = (call: TableCall) => {
    const books = new Books();
    books.landed(call, bucketLandings(call, [landing(undefined, taken)]));
    return books;
  };

  test("the books agree when the process heard of its write and its call has kept it", () => {
    const call = callAt(0);
    const books = booksAfter(call);
    books.answered(call);
    books.claim(0, amounts(3000));
    books.close(images(taken));
    expect(books.unheardMilli).toBe(0);
  });

  test("a write without a call, and one that was only claimed, are found", () => {
    const call = callAt(0);
    const books = booksAfter(call);
    books.answered(call);
    expect(() => books.close(images(taken))).toThrow(/books: e api a of process 0/);
    const claimed = new Books();
    claimed.claim(0, amounts(1000));
    expect(() => claimed.close([])).toThrow(/books/);
  });

  test("a write whose process never heard of it is counted apart", () => {
    const call = callAt(0);
    const books = booksAfter(call);
    books.unanswered(call);
    books.close(images(taken));
    expect(books.unheardMilli).toBe(3000);
  });

  test("an answer to the repetition of a token counts for its first attempt too", () => {
    const books = booksAfter(callAt(0, 0, "t"));
    books.answered(callAt(1, 0, "t"));
    books.claim(0, amounts(3000));
    expect(() => books.close(images(taken))).not.toThrow();
  });

  test("the writes that a crashed process had under way are counted within bounds", () => {
    const call = callAt(0);
    const books = booksAfter(call);
    books.answered(call);
    books.claim(0, new Map(), amounts(3000));
    expect(() => books.close(images(taken))).not.toThrow();
  });

  test("the most that a call can have consumed includes adjustments of limits it did not ask for", () => {
    const most = mostOf({
      number: 1,
      entityId: "e1",
      ancestors: ["e0"],
      deed: "adjust",
      consume: { a: 4 },
      slots: {},
      also: [{ resource: "api2", consume: { a: 2 } }],
      totals: [],
      deltas: { a: -3, b: 6 },
      limits: undefined,
      thinkMs: 0,
    });
    expect(Object.fromEntries(most)).toEqual({
      "e1 api a": 8000,
      "e1 api b": 6000,
      "e1 api2 a": 4000,
      "e1 api2 b": 6000,
      "e0 api a": 8000,
      "e0 api b": 6000,
      "e0 api2 a": 4000,
      "e0 api2 b": 6000,
    });
  });

  test("a total that was overwritten is found", () => {
    const call = callAt(0);
    const books = booksAfter(call);
    books.unanswered(call);
    expect(() => books.close(images(bucket({ tk: 7, tc: 2 })))).toThrow(/tc says 2000/);
  });
});

describe("returns", () => {
  test("a refund to another shard than it came from is found", () => {
    const returns = new Returns();
    const land = (call: TableCall, ...landings: Landing[]) =>
      returns.landed(call, bucketLandings(call, landings));
    const zero = bucket({ tk: 5, tc: 0, count: 2 });
    const one = bucket({ tk: 3, tc: 2, count: 2, shard: 1 });
    land(callAt(0, 1), landing(undefined, zero), landing(undefined, one));
    land(callAt(0, 1), landing(one, bucket({ tk: 4, tc: 1, count: 2, shard: 1 })));
    const wrong = bucket({ tk: 6, tc: -1, count: 2 });
    expect(() => land(callAt(0, 1), landing(zero, wrong))).toThrow(/leases: e api 0 a/);
  });
});

describe("shapes", () => {
  const shape = () => new Shape(0);
  const land = (to: Shape, call: TableCall, ...landings: Landing[]) =>
    to.landed(landings, bucketLandings(call, landings));

  test("an item of which only a part is there is found", () => {
    const { entity_id: _, ...rest } = bucket({ tk: 1, tc: 0 });
    expect(() => refuseGhost(rest as unknown as Item)).toThrow(/ghosts.*entity_id/);
    const { b_a_cp: __, ...part } = bucket({ tk: 1, tc: 0 });
    expect(() => bucketLandings(callAt(0), [landing(undefined, part as unknown as Item)])).toThrow(
      /ghosts/,
    );
  });

  test("a number of shards that is too large, odd or a leap is found", () => {
    const with_ = (count: number, shard = 0) => bucket({ tk: 0, tc: 0, count, shard });
    expect(() => land(shape(), callAt(0), landing(undefined, with_(128)))).toThrow(/shards/);
    expect(() => land(shape(), callAt(0), landing(undefined, with_(3)))).toThrow(/shards/);
    expect(() => land(shape(), callAt(0), landing(undefined, with_(2, 2)))).toThrow(/beyond/);
    expect(() => land(shape(), callAt(0), landing(with_(1), with_(4)))).toThrow(/at once/);
  });

  test("two splits within a second are found", () => {
    const two = bucket({ tk: 0, tc: 0, count: 2, rf: 5 });
    const four = (rf: number) => bucket({ tk: 0, tc: 0, count: 4, rf });
    const quick = shape();
    land(quick, callAt(5), landing(bucket({ tk: 0, tc: 0 }), two));
    expect(() => land(quick, callAt(5.9), landing(two, four(5.9)))).toThrow(/twice within 900 ms/);
    const slow = shape();
    land(slow, callAt(5), landing(bucket({ tk: 0, tc: 0 }), two));
    land(slow, callAt(6), landing(two, four(6)));
    expect([slow.shardsOf("e api"), slow.splits, slow.shardsMax]).toEqual([4, 2, 4]);
  });
});
