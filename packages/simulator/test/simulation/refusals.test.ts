/** The checkers of refusals, links and edges, on stories that are short enough to follow. */

import type { ShardImage } from "@zae-limiter/simulator/checkers/bucket-image.ts";
import { chargedBy } from "@zae-limiter/simulator/checkers/charges.ts";
import { ConfigHistory } from "@zae-limiter/simulator/checkers/config-history.ts";
import { LevelHistory } from "@zae-limiter/simulator/checkers/level-history.ts";
import { LinkHistory } from "@zae-limiter/simulator/checkers/links.ts";
import { Refusals } from "@zae-limiter/simulator/checkers/refusals.ts";
import { nextEdgeMs } from "@zae-limiter/simulator/simulation/edges.ts";
import { describe, expect, test } from "vitest";

const HOUR_MS = 3_600_000;
const RATE = { capacity: 10_000, refill: 10_000, period: HOUR_MS };

function image(consumed: number, rate = RATE): ShardImage {
  const limit = { name: "a", tokens: 0n, consumed: BigInt(consumed), remainder: 0, ...rate };
  const place = { entityId: "e0", resource: "api", bucket: "e0 api", id: "e0 api 0" };
  return { ...place, shard: 0, count: 1, epochMs: 0, acquires: 0, limits: [limit] };
}

function landing(before: ShardImage | undefined, after: ShardImage | undefined) {
  const charged = chargedBy(before, after, {});
  return [{ PK: "e0", before, after, plannedMs: 0, exactLimits: new Set<string>(), charged }];
}

const one = [{ bucket: "e0 api", limitName: "a", amountMilli: 1000 }];

describe("the level of an ideal bucket", () => {
  test("the level of an ideal bucket is the least of the window, and knows what has accrued", () => {
    const history = new LevelHistory({ capacity: 1000, refill: 1, period: 1 }, 0);
    history.take(900, 100);
    history.take(-500, 300);
    expect(history.least(0, 50)).toBe(1000);
    expect(history.least(0, 400)).toBe(100);
    expect(history.least(250, 280)).toBe(250);
    expect(history.least(350, 400)).toBe(850);
    expect(history.least(5000, 6000)).toBe(1000);
  });
});

describe("a refusal", () => {
  test("a refusal is right while the store had too little within the last second", () => {
    const refusals = new Refusals(0);
    refusals.landed(landing(undefined, image(9500)), 1000);
    expect(refusals.whyWrong(0, one, 1500, 1510)).toBeUndefined();
    refusals.landed(landing(image(9500), image(1000)), 2000);
    expect(refusals.whyWrong(0, one, 2900, 2910)).toBeUndefined();
    expect(refusals.whyWrong(0, one, 3100, 3110)).toMatch(/"a" of e0 api had at least \d+ milli/);
    expect([refusals.judged, refusals.wrong]).toEqual([3, 1]);
  });

  test("a refusal is right while calls of the same process wait for what is there", () => {
    const refusals = new Refusals(0);
    refusals.landed(landing(undefined, image(8100)), 0);
    const end = refusals.asks(0, one, false, () => 5000);
    expect(refusals.whyWrong(0, one, 5000, 5000)).toBeUndefined();
    expect(refusals.whyWrong(1, one, 5000, 5000)).toBeDefined();
    end();
    expect(refusals.whyWrong(0, one, 5000, 5000)).toBeDefined();
  });

  test("a clock that is behind sees the bucket as it was by the other clocks", () => {
    const story = (skewMs: number) => {
      const refusals = new Refusals(skewMs);
      refusals.landed(landing(undefined, image(9500)), 1000);
      refusals.landed(landing(image(9500), image(0)), 1100);
      return refusals.whyWrong(0, one, 2500, 2500);
    };
    expect(story(0)).toBeDefined();
    expect(story(600)).toBeUndefined();
  });

  test("a full bucket has less by a clock that is behind that of its last write, and not for longer", () => {
    const perSecond = { ...RATE, period: 1000 };
    const full = [{ bucket: "e0 api", limitName: "a", amountMilli: 10_000 }];
    const story = (skewMs: number, sinceMs: number) => {
      const refusals = new Refusals(skewMs);
      refusals.landed(landing(undefined, image(0, perSecond)), 5000);
      return refusals.whyWrong(0, full, sinceMs, sinceMs);
    };
    expect(story(0, 5000)).toBeDefined();
    expect(story(200, 5000)).toBeUndefined();
    expect(story(200, 6199)).toBeUndefined();
    expect(story(200, 6201)).toBeDefined();
  });

  test("a bucket that was created again is judged by what is known of it alone", () => {
    const refusals = new Refusals(0);
    refusals.landed(landing(undefined, image(9500)), 1000);
    refusals.landed(landing(image(9500), undefined), 2000);
    refusals.landed(landing(undefined, image(0)), 2100);
    expect(refusals.whyWrong(0, one, 3000, 3000)).toBeUndefined();
    expect(refusals.judged).toBe(0);
    expect(refusals.whyWrong(0, one, 3100, 3100)).toBeDefined();
  });

  test("tokens move with a split, and a shard that was merged holds nothing any more", () => {
    const refusals = new Refusals(0);
    const at = (epochMs: number, shard: number, count: number, tokens: bigint): ShardImage => {
      const limits = image(0).limits.map((limit) => ({ ...limit, tokens }));
      return { ...image(0), id: `e0 api ${shard}`, epochMs, shard, count, limits };
    };
    const [whole, first, second] = [at(0, 0, 1, 5400n), at(1, 0, 2, 400n), at(1, 1, 2, 5000n)];
    refusals.landed(landing(undefined, whole), 0);
    refusals.landed([...landing(whole, first), ...landing(undefined, second)], 1);
    expect(refusals.whyWrong(0, one, 5000, 5000)).toBeDefined();
    const merged = { PK: "e1", image: at(1, 1, 2, 400n) };
    const both = landing(first, at(6000, 0, 1, 800n)).map((kept) => ({ ...kept, merged }));
    refusals.landed(both, 6000);
    expect(refusals.whyWrong(0, one, 8000, 8000)).toBeUndefined();
  });

  test("a full bucket refuses for the sake of a waiter, and of no other call", () => {
    const refusals = new Refusals(0);
    refusals.landed(landing(undefined, image(0)), 0);
    const most = [{ bucket: "e0 api", limitName: "a", amountMilli: 8000 }];
    const some = [{ bucket: "e0 api", limitName: "a", amountMilli: 3000 }];
    const asked = refusals.asks(0, some, false, () => 5000);
    expect(refusals.whyWrong(0, most, 5000, 5000)).toBeDefined();
    asked();
    const waited = refusals.asks(0, some, true, () => 5000);
    expect(refusals.whyWrong(0, most, 5000, 5000)).toBeUndefined();
    expect(refusals.whyWrong(0, one, 5000, 5000)).toBeDefined();
    expect(refusals.whyWrong(1, most, 5000, 5000)).toBeDefined();
    waited();
    expect(refusals.whyWrong(0, most, 5000, 5001)).toBeDefined();
  });

  test("a refusal is right for the sake of a waiter that ends in the same instant, not of itself", () => {
    const refusals = new Refusals(0);
    refusals.landed(landing(undefined, image(0)), 0);
    const most = [{ bucket: "e0 api", limitName: "a", amountMilli: 8000 }];
    const some = [{ bucket: "e0 api", limitName: "a", amountMilli: 3000 }];
    const times = [5000, 5100, 5100];
    const end = refusals.asks(0, some, true, () => times.shift() as number);
    end();
    expect(refusals.whyWrong(0, most, 5000, 5100)).toBeUndefined();
    expect(refusals.whyWrong(0, most, 5000, 5101)).toBeDefined();
    expect(refusals.whyWrong(0, most, 5000, 5100, end)).toBeDefined();
    expect(refusals.whyWrong(1, most, 5000, 5100)).toBeDefined();
    const asked = refusals.asks(0, some, false, () => 5100);
    asked();
    expect(refusals.whyWrong(0, most, 5000, 5101)).toBeDefined();
  });

  test("a refusal is not judged once the limit has changed, and is right above the capacity", () => {
    const refusals = new Refusals(0);
    refusals.landed(landing(undefined, image(0)), 0);
    const tooMany = [{ bucket: "e0 api", limitName: "a", amountMilli: 11_000 }];
    expect(refusals.whyWrong(0, tooMany, 5000, 5000)).toBeUndefined();
    refusals.landed(landing(image(0), image(0, { ...RATE, capacity: 20_000 })), 100);
    expect(refusals.whyWrong(0, one, 5000, 5000)).toBeUndefined();
    expect([refusals.judged, refusals.wrong]).toEqual([1, 0]);
  });
});

describe("a refusal by a limit that the bucket does not have yet", () => {
  const wanted = (amountMilli: number, capacityMilli: number) => [
    { bucket: "e0 api", limitName: "a", amountMilli, capacityMilli },
  ];

  test("a refusal is right above the capacity that the process knows of, and not below", () => {
    const refusals = new Refusals(0);
    refusals.landed(landing(undefined, image(0)), 0);
    expect(refusals.whyWrong(0, wanted(3000, 2000), 5000, 5000)).toBeUndefined();
    expect(refusals.whyWrong(0, wanted(2000, 2000), 5000, 5000)).toMatch(/had at least 2000 milli/);
    expect(refusals.whyWrong(0, wanted(3000, 20_000), 5000, 5000)).toBeDefined();
    expect([refusals.judged, refusals.wrong]).toEqual([3, 2]);
  });

  test("a refusal is right by a new limit while the bucket has too little by the old one", () => {
    const refusals = new Refusals(0);
    refusals.landed(landing(undefined, image(9500)), 0);
    expect(refusals.whyWrong(0, wanted(1000, 20_000), 500, 500)).toBeUndefined();
    expect(refusals.whyWrong(0, wanted(1000, 2000), 500, 500)).toBeUndefined();
  });
});

describe("the limits that may apply", () => {
  const [OLD, NEW] = [
    { capacity: 10_000, refill: 10_000, period: 1000 },
    { capacity: 2000, refill: 2000, period: 13_000 },
  ];
  const item = (PK: string, SK: string, { capacity, refill, period }: typeof OLD) => ({
    ...{ PK, SK },
    ...{ l_a_cp: capacity / 1000, l_a_ra: refill / 1000, l_a_rp: period / 1000 },
  });
  const ofResource = { PK: "ns/RESOURCE#api", SK: "#CONFIG" };
  const ofEntity = { PK: "ns/ENTITY#e0", SK: "#CONFIG#api" };
  const stored = (key: typeof ofResource, rate: typeof OLD) => [
    { key, before: undefined, after: item(key.PK, key.SK, rate) },
  ];
  const removed = (key: typeof ofResource) => [{ key, before: undefined, after: undefined }];
  const may = (configs: ConfigHistory, rate: typeof OLD, fromMs: number, toMs = fromMs) =>
    configs.mayApply("e0", "api", "a", rate, [fromMs, toMs]);

  test("a limit applies from when it is stored, and the one before it while a process need not know", () => {
    const configs = new ConfigHistory(3000);
    configs.landed(stored(ofResource, OLD), 0);
    configs.landed(stored(ofResource, NEW), 10_000);
    expect([may(configs, OLD, 5000), may(configs, NEW, 5000)]).toEqual([true, false]);
    expect([may(configs, OLD, 12_000), may(configs, NEW, 12_000)]).toEqual([true, true]);
    expect([may(configs, OLD, 13_001), may(configs, NEW, 13_001)]).toEqual([false, true]);
    expect(may(configs, NEW, 9000, 10_000)).toBe(true);
  });

  test("limits for children apply below a parent that the entity may have had", () => {
    const ofChildren = { PK: "ns/ENTITY#e9", SK: "#CHILDREN_CONFIG#_default_" };
    const configs = new ConfigHistory(3000);
    configs.landed(stored(ofResource, OLD), 0);
    configs.landed(stored(ofChildren, NEW), 10_000);
    const below = (parents: (string | undefined)[], rate: typeof OLD) =>
      configs.mayApply("e0", "api", "a", rate, [14_000, 14_000], parents);
    expect([below(["e9"], OLD), below(["e9"], NEW)]).toEqual([false, true]);
    expect([below([undefined], OLD), below(["e8"], NEW)]).toEqual([true, false]);
    expect([below(["e9", undefined], OLD), below(["e9", undefined], NEW)]).toEqual([true, true]);
    expect(configs.mayApply("e0", "@all", "a", NEW, [14_000, 14_000], ["e9"])).toBe(false);
    configs.landed(stored(ofEntity, OLD), 20_000);
    expect(configs.mayApply("e0", "api", "a", NEW, [24_000, 24_000], ["e9"])).toBe(false);
  });

  test("a limit of the entity hides that of the resource until it is removed", () => {
    const configs = new ConfigHistory(3000);
    configs.landed(stored(ofResource, OLD), 0);
    configs.landed(stored(ofEntity, NEW), 10_000);
    expect([may(configs, OLD, 12_000), may(configs, OLD, 14_000)]).toEqual([true, false]);
    expect(configs.mayApply("e1", "api", "a", OLD, [14_000, 14_000])).toBe(true);
    expect(configs.mayApply("e1", "api", "a", NEW, [14_000, 14_000])).toBe(false);
    configs.landed(removed(ofEntity), 20_000);
    expect([may(configs, OLD, 21_000), may(configs, NEW, 21_000)]).toEqual([true, true]);
    expect([may(configs, OLD, 24_000), may(configs, NEW, 24_000)]).toEqual([true, false]);
  });

  test("a limit that is stored nowhere, or under another name, never applies", () => {
    const configs = new ConfigHistory(3000);
    configs.landed(stored(ofResource, OLD), 0);
    expect(may(configs, { ...OLD, capacity: 9000 }, 1000)).toBe(false);
    expect(configs.mayApply("e0", "api", "b", OLD, [1000, 1000])).toBe(false);
    expect(configs.mayApply("e0", "other", "a", OLD, [1000, 1000])).toBe(false);
  });
});

describe("links", () => {
  test("links count from the begin of their change, the old ones until its end", () => {
    let nowMs = 100;
    const links = new LinkHistory();
    const done = links.begin("child", "parent", () => nowMs);
    const judge = (consumed: string[], sinceMs: number) => () =>
      links.judge("call 1", "child", new Set(consumed), sinceMs);
    expect(judge(["child"], 90)).not.toThrow();
    expect(judge(["child", "parent"], 90)).not.toThrow();
    nowMs = 200;
    done();
    expect(judge(["child"], 150)).not.toThrow();
    expect(judge(["child"], 250)).toThrow(/consumed from child, where its links say child parent/);
    expect(judge(["child", "parent"], 250)).not.toThrow();
  });
});

test("an ancestor refuses by links that lead back, which are in force for no call", () => {
  let nowMs = 0;
  const links = new LinkHistory();
  const move = (entityId: string, parentId: string | undefined) => {
    links.begin(entityId, parentId, () => nowMs)();
  };
  links.start("child", "parent");
  links.start("parent", "grandparent");
  nowMs = 100;
  move("parent", undefined);
  nowMs = 200;
  move("grandparent", "child");
  const judge = (named: string, sinceMs: number) => () =>
    links.judgeRefusal("call 1", "child", [named], sinceMs);
  expect(judge("grandparent", 1100)).not.toThrow();
  expect(judge("grandparent", 1101)).toThrow(/refused by grandparent, where its links say/);
  expect(judge("stranger", 1100)).toThrow(/refused by stranger/);
});

describe("an edge", () => {
  test("an edge is the first millisecond with one milli-token less than a whole number", () => {
    const rate = { capacity: 5000, refill: 1000, period: 2000 };
    expect(nextEdgeMs(image(0, rate), 0)).toBe(1998);
    expect(nextEdgeMs(image(0, rate), 2000)).toBe(3998);
    expect(nextEdgeMs(image(0, { ...rate, capacity: 999 }), 0)).toBeUndefined();
  });
});
