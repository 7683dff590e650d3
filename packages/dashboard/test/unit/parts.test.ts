/**
 * The pure parts of the dashboard: rankings, differences, charts, files, the policy of the page.
 */

import { balanceOf, wholeBalances } from "@zae-limiter/dashboard/balance.ts";
import { BucketCensus, TopList } from "@zae-limiter/dashboard/bucket-census.ts";
import { allowedInHour, differencesOf, exceededBy } from "@zae-limiter/dashboard/differences.ts";
import { limitTexts } from "@zae-limiter/dashboard/limit-texts.ts";
import { heldText } from "@zae-limiter/dashboard/page/limit-words.ts";
import { policyOf } from "@zae-limiter/dashboard/server/page-file.ts";
import { csvOf, grouped } from "@zae-limiter/dashboard/usage-report.ts";
import type { StoredState } from "@zae-limiter/limiter/buckets/bucket-admin.ts";
import { counterOf } from "@zae-limiter/limiter/domain/counter.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import type { UsageSnapshot } from "@zae-limiter/limiter/records/usage/usage-item.ts";
import { expect, test } from "vitest";

const limits = (...texts: string[]) => texts.map((text) => Limit.parse(text));

function snapshot(fields: Partial<UsageSnapshot>): UsageSnapshot {
  return {
    entityId: "key-1",
    resource: "gpt-4",
    windowType: "hourly",
    windowStart: "2026-01-01T00:00:00Z",
    windowEnd: "2026-01-01T00:59:59Z",
    counters: {},
    totalEvents: 1,
    ...fields,
  };
}

test("a top list keeps the highest of many, the highest first", () => {
  const top = new TopList<number>(3, (number) => number);
  for (const number of [5, 1, 9, 7, 3, 8]) top.add(number);
  expect(top.all).toEqual([9, 8, 7]);
});

test("a resource of which nothing is in use is not among the busiest", () => {
  const census = new BucketCensus();
  const state = (resource: string, balanceMilli: number): StoredState => ({
    entityId: "key-1",
    resource,
    shard: 0,
    shardCount: 1,
    limitName: "rpm",
    capacityMilli: 60_000,
    refillMilli: 60_000,
    periodMs: 60_000,
    balanceMilli,
    consumedMilli: 0,
    refilledAtMs: 0,
  });
  census.add(state("full", 60_000));
  census.add(state("in-use", 20_000));
  const [busiest] = census.overview(0, 0, true).busiest;
  expect(busiest?.resources.map(({ name, inUse }) => [name, inUse])).toEqual([["in-use", 40]]);
});

test("the balance of a quota says when it resets", () => {
  const { rate, rule } = Limit.parse("req:10/day UTC");
  const state: StoredState = {
    entityId: "key-1",
    resource: "gpt-4",
    shard: 0,
    shardCount: 1,
    limitName: "req",
    ...rate,
    balanceMilli: 4000,
    consumedMilli: 6000,
    refilledAtMs: 0,
    rule,
    period: { endMs: 86_400_000, grantedMilli: 10_000, atMs: 86_310_000 },
  };
  expect(balanceOf(state)).toEqual({
    entityId: "key-1",
    resource: "gpt-4",
    limitName: "req",
    available: 4,
    capacity: 10,
    refillPerSecond: 0,
    resets: "resets at 00:00",
    resetsInSeconds: 90,
    shardCount: 1,
  });
});

test("what a quota has carried is beyond its amount, also in shards, and a rate is bounded", () => {
  const { rate, rule } = Limit.quota("req", 10, { every: "day", carry: "rest", carryMax: 9 });
  const half: StoredState = {
    ...{ entityId: "key-1", resource: "api", shard: 0, shardCount: 2, limitName: "req" },
    ...{ ...rate, balanceMilli: 8000, consumedMilli: 0, refilledAtMs: 0 },
    period: { endMs: 86_400_000, grantedMilli: 9000, atMs: 0 },
  };
  const [carried] = wholeBalances([
    { ...half, rule },
    { ...half, rule, shard: 1 },
  ]);
  expect(carried).toMatchObject({ available: 16, capacity: 10 });
  const even = { ...half, ...Limit.parse("req:10").rate, rule: undefined };
  expect(wholeBalances([even, { ...even, shard: 1 }])[0]?.available).toBe(10);
});

test("limits are described where their text could mean both, or says less", () => {
  const limits = [
    ...["rpm:5", "rpd:5/day", "req:5/day UTC", "p:2 concurrent"].map((text) => Limit.parse(text)),
    Limit.quota("c", 5, { every: "month", carry: "debt" }),
    Limit.parse("w:5").withSchedule([{ when: "sat", scale: 2 }]),
  ];
  expect(limitTexts(limits)).toEqual({
    limits: limits.map(String),
    words: {
      "rpd:5/day": "refills evenly",
      "req:5/day UTC": "resets at 00:00",
      "c:5/month UTC": "resets on day 1 of the month at 00:00, carries a debt",
      "w:5/min": "by the clock of UTC x 2 in sat",
    },
  });
  expect(limitTexts([Limit.parse("rpm:5")])).toEqual({ limits: ["rpm:5/min"] });
});

test("a budget that is used too fast says on which day of its zone it is empty", () => {
  const { rate, rule } = Limit.parse("usd:$500/month Europe/Berlin");
  const endMs = Date.parse("2026-11-30T23:00:00Z");
  const state = (usedMilli: number, shard = 0): StoredState => ({
    ...{ entityId: "ann", resource: "@all", limitName: "usd", shard, shardCount: 2 },
    ...{ ...rate, rule, consumedMilli: usedMilli, refilledAtMs: 0 },
    balanceMilli: 250_000_000_000 - usedMilli,
    period: { endMs, grantedMilli: 250_000_000_000, atMs: Date.parse("2026-11-10T23:00:00Z") },
  });
  const shards = [state(100_000_000_000), state(150_000_000_000, 1)];
  expect(wholeBalances(shards)[0]?.empty).toBe("empty on 2026-11-21 at this pace");
  expect(wholeBalances([state(50_000_000_000), state(50_000_000_000, 1)])[0]?.empty).toBe(
    undefined,
  );
  expect(balanceOf(state(250_000_000_000)).empty).toBe(undefined);
  const session = Limit.parse("tok:1000/session:5hour");
  const period = { endMs: 5 * 3_600_000, grantedMilli: 1_000_000, atMs: 3_600_000 };
  const open = { ...state(0), ...session.rate, rule: session.rule, period, balanceMilli: 500_000 };
  expect(balanceOf(open).empty).toBe("empty on 1970-01-01 02:00 UTC at this pace");
});

test("limits that only count are in no list, for they are always whole", () => {
  const rate = counterOf("usd").rate;
  const state = {
    ...{ entityId: "ann", resource: "gpt-4", limitName: "usd", shard: 0, shardCount: 1 },
    ...{ ...rate, balanceMilli: 0, consumedMilli: 5, refilledAtMs: 0 },
  };
  expect(wholeBalances([state])).toEqual([]);
  const census = new BucketCensus();
  census.add(state);
  expect(census.overview(0, 0, true)).toMatchObject({ emptyCount: 0, busiest: [] });
});

test("slots are shown with what each process has in flight", () => {
  const slots = { capacityMilli: 5000, refillMilli: 0, periodMs: 1000 };
  const state = {
    ...{ entityId: "key-1", resource: "gpt-4", shard: 0, shardCount: 1, limitName: "parallel" },
    ...{ ...slots, balanceMilli: 2000, consumedMilli: 0, refilledAtMs: 0 },
    holders: { ann: 2, bob: 1 },
  };
  const [balance] = wholeBalances([state]);
  expect(balance).toMatchObject({ available: 2, capacity: 5, holders: { ann: 2, bob: 1 } });
  expect(heldText(balance?.holders ?? {})).toBe("3 in flight: 2 by ann, 1 by bob");
  expect(heldText({ a: 1, b: 4, c: 2, d: 3 })).toBe(
    "10 in flight: 4 by b, 3 by d, 2 by c and 1 more",
  );
  expect(heldText({})).toBe("none in flight");
  const { holders: _, ...free } = state;
  expect(balanceOf(free)).toMatchObject({ holders: {} });
});

test("differences name what is added, removed and changed, and nothing else", () => {
  expect(differencesOf(limits("a:1", "b:2", "c:3"), limits("b:2", "c:4", "d:5"))).toEqual([
    { limitName: "a", before: "a:1/min", after: null },
    { limitName: "c", before: "c:3/min", after: "c:4/min" },
    { limitName: "d", before: null, after: "d:5/min" },
  ]);
});

test("an hour allows a full bucket and an hour of refill", () => {
  expect(allowedInHour(Limit.parse("rpm:10/min:50"))).toBe(650);
  expect(allowedInHour(Limit.parse("rpd:240/day"))).toBe(250);
});

test("an hour that used exactly what is allowed does not exceed it", () => {
  const hour = (used: number) => [{ windowStart: "2026-01-01T00:00:00Z", counters: { rpm: used } }];
  expect(exceededBy(limits("rpm:1"), hour(61))).toEqual([]);
  expect(exceededBy(limits("rpm:1"), hour(62))).toEqual([
    { limitName: "rpm", used: 62, allowed: 61, hour: "2026-01-01T00:00:00Z" },
  ]);
});

test("usage is grouped by the entities that used most, and the rest is one group", () => {
  const many = Array.from({ length: 12 }, (_, n) =>
    snapshot({ entityId: `key-${n}`, totalEvents: n + 1, counters: { tpm: 10 } }),
  );
  const { groups, windows, limitNames } = grouped(many, "entity");
  expect(windows).toEqual(["2026-01-01T00:00:00Z"]);
  expect(limitNames).toEqual(["tpm"]);
  expect(groups.map(({ name }) => name)).toEqual([
    ...["key-11", "key-10", "key-9", "key-8", "key-7", "key-6", "key-5"],
    "other",
  ]);
  expect(groups.at(-1)?.values).toEqual({ requests: [15], tpm: [50] });
});

test("a resource with the name of the rest is one group with it", () => {
  const few = ["gpt-4", "other"].map((resource) => snapshot({ resource, counters: { usd: 10 } }));
  const named = grouped(few, "resource").groups;
  expect(named.map(({ name, values }) => [name, values.usd])).toEqual([
    ["gpt-4", [10]],
    ["other", [10]],
  ]);
  const many = Array.from({ length: 12 }, (_, n) =>
    snapshot({
      resource: n === 11 ? "other" : `model-${n}`,
      totalEvents: n,
      counters: { usd: 10 },
    }),
  );
  const { groups } = grouped(many, "resource");
  expect(groups.map(({ name, values }) => [name, values.usd])[0]).toEqual(["other", [60]]);
  expect(groups).toHaveLength(7);
});

test("peaks of slots are the highest of a group, with those of ancestors, and no sum", () => {
  const at = (windowStart: string, entityId: string, parallel: number) =>
    snapshot({ windowStart, entityId, counters: { rpm: 1 }, peaks: { parallel } });
  const [first, second] = ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"];
  const own = [at(first, "ann", 4), at(first, "bob", 3), at(second, "bob", 2)];
  const all = [...own, at(first, "team", 6), snapshot({ windowStart: second })];
  const byResource = grouped(own, "resource", all);
  expect(byResource.peakNames).toEqual(["parallel at once"]);
  expect(byResource.limitNames).toEqual(["rpm"]);
  expect(byResource.groups.map(({ values }) => values)).toEqual([
    { requests: [2, 1], rpm: [2, 1], "parallel at once": [6, 2] },
  ]);
  const byEntity = grouped(own, "entity", all).groups;
  expect(byEntity.map(({ name, values }) => [name, values["parallel at once"]])).toEqual([
    ["bob", [3, 2]],
    ["ann", [4, 0]],
    ["team", [6, 0]],
  ]);
  expect(csvOf(all).split("\r\n").slice(0, 2)).toEqual([
    "window_start,window,entity_id,resource,total_events,rpm,parallel at once",
    "2026-01-01T00:00:00Z,hourly,ann,gpt-4,1,1,4",
  ]);
  expect(csvOf(all)).toContain(",0,\r\n");
});

test("a CSV file quotes what it must, and no cell of it is a formula", () => {
  const text = csvOf([
    snapshot({ entityId: "=cmd|'/C calc'!A0", counters: { tpm: -5 } }),
    snapshot({ entityId: 'a,"b"', counters: { rpm: 2 } }),
  ]);
  expect(text.split("\r\n")).toEqual([
    "window_start,window,entity_id,resource,total_events,rpm,tpm",
    "2026-01-01T00:00:00Z,hourly,'=cmd|'/C calc'!A0,gpt-4,1,0,-5",
    '2026-01-01T00:00:00Z,hourly,"a,""b""",gpt-4,1,2,0',
    "",
  ]);
});

test("the policy of the page allows its own script and style by their hashes, and nothing else", () => {
  const policy = policyOf("<style>a{}</style><script>b()</script>");
  expect(policy).toContain("default-src 'none'; script-src 'sha256-");
  expect(policy).not.toContain("unsafe");
  expect(policy).toContain("frame-ancestors 'none'");
});
