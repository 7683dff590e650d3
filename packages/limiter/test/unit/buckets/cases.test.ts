/** Single cases of the shared store, most of them found by the model and the races. */

import { DEBT_MILLI_MAX } from "@zae-limiter/limiter/core/bucket.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { namespaceIdKey } from "@zae-limiter/limiter/records/keys.ts";
import type { ItemStore } from "@zae-limiter/limiter/storage/item-store.ts";
import { configOf, KEY, TARGET, Table } from "@zae-limiter/test-support/table.ts";
import { describe, expect, test } from "vitest";

const HOUR_MS = 3_600_000;

function lost(): RateLimiterUnavailable {
  return new RateLimiterUnavailable("lost", { reason: "timeout", nothingWritten: false });
}

describe("refill", () => {
  test("full, idle for a minute, then a burst: the capacity is admitted once, not twice", async () => {
    const table = new Table();
    const [one, other] = [table.client(), table.client()];
    const config = configOf(["rpm:100/min"]);
    await one.take(config, {});
    await other.take(config, {});
    table.nowMs += 60_000;
    let granted = 0;
    for (let attempt = 0; attempt < 250; attempt += 1) {
      const client = attempt % 2 === 0 ? one : other;
      if ((await client.take(config, { rpm: 1000 })).outcome === "granted") granted += 1;
    }
    expect(granted).toBe(100);
  });

  test("a slow limit next to a fast one refills exactly, taken every 10 s for a day (B4)", async () => {
    const table = new Table();
    const client = table.client();
    const config = configOf(["rps:1000/sec", "rpd:5/day"]);
    await client.take(config, { rps: 1000, rpd: 5000 });
    let admitted = 0;
    for (let second = 10; second <= 86_400; second += 10) {
      table.nowMs += 10_000;
      await client.take(config, { rps: 1000 });
      if ((await client.take(config, { rpd: 1000 })).outcome === "granted") admitted += 1;
    }
    expect(admitted).toBe(5);
  });

  test("an emptied bucket is empty, whatever part of a milli-token had accrued", async () => {
    const table = new Table();
    const client = table.client();
    const config = configOf(["rpm:100/min"]);
    await client.take(config, { rpm: 1 });
    table.nowMs += 3;
    await client.take(config, { rpm: 1 });
    table.nowMs += 61;
    const result = await client.take(config, { rpm: 100_000 });
    expect(result).toMatchObject({ outcome: "granted", legs: [{ balancesMilli: [0] }] });
    expect(await client.balances(config)).toStrictEqual([0]);
    const refused = await client.take(config, { rpm: 1000 });
    expect(refused).toMatchObject({ outcome: "refused", balancesMilli: [[0]] });
  });

  test("a full take forgets nothing, and what has accrued is there in the same millisecond", async () => {
    // A fifth of a day is a token, so a forgotten part of a milli-token would be missed for 17 s.
    const table = new Table();
    const [one, other] = [table.client(), table.client()];
    const config = configOf(["rpd:5/day"]);
    await one.take(config, { rpd: 1000 });
    await other.take(config, { rpd: 1000 });
    table.nowMs += 2 * 86_400_000 + 7;
    await one.take(config, { rpd: 5000 });
    const empty = table.nowMs;
    for (let token = 1; token <= 4; token += 1) {
      table.nowMs = empty + token * 17_280_000 - 1;
      expect(await other.take(config, { rpd: 1000 })).toMatchObject({ outcome: "refused" });
      table.nowMs += 1;
      expect(await one.take(config, { rpd: 1000 })).toMatchObject({ outcome: "granted" });
    }
  });

  test("refill at the edge of full not even a part of a milli-token is kept beyond it", async () => {
    const table = new Table();
    const [one, other] = [table.client(), table.client()];
    const config = configOf(["rpd:5/day"]);
    await one.take(config, { rpd: 1 });
    await other.balances(config);
    await one.refund(config, { rpd: 1 });
    // A milli-token takes 17 s: the other client still takes the bucket for low.
    table.nowMs += 17_000;
    await other.take(config, { rpd: 1000 });
    table.nowMs += 281;
    expect(await one.balances(config)).toStrictEqual([4000]);
  });
});

describe("rebase", () => {
  test("two clients add a limit in the millisecond of the epoch: neither take is lost", async () => {
    const table = new Table();
    const [one, other] = [table.client(), table.client()];
    const stored = configOf(["a:10/day"]);
    const given = configOf(["a:10/day", "b:10/day"], "override");
    await one.take(stored, {});
    await other.balances(stored);
    await one.take(given, { b: 10_000 });
    expect(await other.take(given, { b: 10_000 })).toMatchObject({ outcome: "refused" });
    expect(table.item?.b_b_tc).toBe(10_000);
    table.nowMs += 1000;
    await one.take(stored, { a: 1000 });
    expect(table.item).toHaveProperty("rn");
    // A later epoch needs no number.
    await one.take(configOf(["a:20/day"], "resource", 2), { a: 1000 });
    expect(table.item).not.toHaveProperty("rn");
  });

  test("clocks that differ do not count the same time twice at another rate", async () => {
    const table = new Table();
    const [slow, fast] = [table.client(-1000), table.client(1000)];
    const high = configOf(["a:1000/sec"], "override");
    const low = configOf(["a:1/day:1000"], "override");
    await slow.take(low, { a: 1_000_000 });
    for (let round = 0; round < 10; round += 1) {
      await slow.take(high, {});
      await fast.take(low, {});
    }
    const [balance] = await fast.balances(low);
    // Once the two seconds that lie between the clocks, and never more.
    expect(balance).toBeLessThanOrEqual(1_000_000);
    await fast.take(low, { a: balance as number });
    for (let round = 0; round < 10; round += 1) {
      await slow.take(high, {});
      await fast.take(low, {});
    }
    expect(await fast.balances(low)).toStrictEqual([0]);
  });

  test("an epoch that lies far ahead is pulled back, less what that time had promised", async () => {
    const table = new Table();
    const ahead = table.client(10_000);
    const config = configOf(["a:100/sec:5000"]);
    await ahead.take(config, { a: 1_000_000 });
    const client = table.client();
    await client.take(config, { a: 1000 });
    expect(table.item?.rf).toBe(table.nowMs);
    expect(table.item?.b_a_tk).toBe(5_000_000 - 1_000_000 - 1_000_000 - 1000);
  });

  test("a debt stops where numbers end", async () => {
    const table = new Table();
    const client = table.client();
    const config = configOf(["a:1/day"]);
    await client.take(config, { a: 1000 });
    for (let time = 0; time < 10; time += 1) await client.adjust(config, { a: 1e15 });
    expect(table.item?.b_a_tk).toBe(-DEBT_MILLI_MAX);
    expect(table.item?.b_a_tc).toBe(10_000_000_000_001_000n);
  });

  test("a bucket that was built from newer limits is not charged by older ones", async () => {
    const table = new Table();
    const client = table.client();
    const config = configOf(["a:10/day"]);
    await client.take(config, { a: 1000 });
    await table.items.update(KEY, { set: { cv: 2, b_a_cp: 20_000 } });
    expect(await client.take(config, { a: 1000 })).toStrictEqual({ outcome: "outdated" });
    expect(table.item?.b_a_tc).toBe(1000);
  });

  test("a bucket grows that is only ever asked for more than it held before", async () => {
    const table = new Table();
    const client = table.client();
    await client.take(configOf(["a:10/min"]), { a: 1000 });
    table.nowMs += 60_000;
    const raised = configOf(["a:100/min"], "resource", 2);
    expect(await client.take(raised, { a: 50_000 })).toMatchObject({ outcome: "refused" });
    table.nowMs += 24_001;
    expect(await client.take(raised, { a: 50_000 })).toMatchObject({ outcome: "granted" });
  });

  test("limits of a call that is refused are kept only where they take nothing away", async () => {
    const table = new Table();
    const client = table.client();
    const stored = configOf(["a:100/min"]);
    await client.take(stored, { a: 40_000 });
    for (const limit of ["a:5/min", "a:500/day", "a:1/min:500"]) {
      const given = configOf([limit], "override");
      expect(await client.take(given, { a: 499_000 })).toMatchObject({ outcome: "refused" });
    }
    table.nowMs += 6000;
    expect(await client.balances(stored)).toStrictEqual([70_000]);
    const given = configOf(["a:600/min"], "override");
    expect(await client.take(given, { a: 120_000 })).toMatchObject({ outcome: "refused" });
    table.nowMs += 5001;
    expect(await client.take(given, { a: 120_000 })).toMatchObject({ outcome: "granted" });
  });

  test("limits given with a call do not go with the first stored ones", async () => {
    const table = new Table();
    const client = table.client();
    const given = configOf(["x:10/day"], "override");
    await client.take(given, { x: 10_000 });
    await client.take(configOf(["y:5/day"]), { y: 1000 });
    expect(await client.take(given, { x: 1000 })).toMatchObject({ outcome: "refused" });
  });
});

describe("time to live", () => {
  test("the time to live covers the time to repay a debt (B46)", async () => {
    const table = new Table();
    const client = table.client();
    const config = configOf(["a:60/min"]);
    await client.take(config, {});
    await client.adjust(config, { a: 100_000_000 });
    const secondsToFill = 100_000 + 1;
    expect(table.item?.ttl).toBeGreaterThanOrEqual(table.nowMs / 1000 + secondsToFill);
  });

  test("two clients go into debt at once: it covers both", async () => {
    const table = new Table();
    const [one, other] = [table.client(), table.client()];
    const config = configOf(["a:60/min"]);
    await one.take(config, { a: 1000 });
    await other.balances(config);
    await one.adjust(config, { a: 50_000_000 });
    await other.adjust(config, { a: 50_000_000 });
    expect(table.item?.b_a_tk).toBe(59_000 - 100_000_000);
    expect(table.item?.ttl).toBeGreaterThanOrEqual(table.nowMs / 1000 + 100_001);
  });

  test("a call with limits of its own gives no end to a bucket that stays", async () => {
    const table = new Table();
    const client = table.client();
    const own = configOf(["rpd:5/day"], "entity");
    await client.take(own, { rpd: 5000 });
    await client.take(configOf(["rps:10/sec"], "override"), { rps: 1000 });
    expect(table.item).not.toHaveProperty("ttl");
    table.nowMs += 2 * HOUR_MS;
    await table.items.put({ PK: "other", SK: "write" });
    expect(await client.take(own, { rpd: 1000 })).toMatchObject({ outcome: "refused" });
  });

  test("the time to live covers limits that the call does not name", async () => {
    const table = new Table();
    const client = table.client();
    await client.take(configOf(["rpd:5/day"], "entity"), { rpd: 5000 });
    await client.take(configOf(["rps:10/sec"], "override"), { rps: 1000 });
    expect(table.item).not.toHaveProperty("ttl");
    // Limits of the resource apply now, and they are what the bucket has.
    await client.take(configOf(["rps:10/sec"]), { rps: 1000 });
    expect(table.item?.ttl).toBeGreaterThanOrEqual(table.nowMs / 1000 + 86_400);
  });
});

describe("giving back", () => {
  test("an adjustment of a limit that the cached state does not have yet is written", async () => {
    const table = new Table();
    const [one, other] = [table.client(), table.client()];
    const before = configOf(["a:10/day"]);
    await one.take(before, { a: 1000 });
    const after = configOf(["a:10/day", "b:10/day"], "resource", 2);
    await other.take(after, { a: 1000, b: 3000 });
    await one.refund(after, { a: 1000, b: 3000 });
    expect(table.item).toMatchObject({ b_a_tc: 1000, b_b_tc: 0, b_b_tk: 10_000 });
  });

  test("a consume is refunded once, however often the answer is lost and the plan changes", async () => {
    const table = new Table();
    const config = configOf(["a:10/day", "b:10/day"]);
    await table.client().take(config, { a: 4000, b: 4000 });
    let calls = 0;
    const transact: ItemStore["transact"] = async (writes, options) => {
      calls += 1;
      // Before the first one arrives, a limit goes; the answers to the next two are lost.
      if (calls === 1) {
        await table.items.update(KEY, {
          remove: ["b_b_tk", "b_b_cp", "b_b_ra", "b_b_rp", "b_b_tc"],
        });
      }
      const result = await table.items.transact(writes, options);
      if (calls === 2 || calls === 3) throw lost();
      return result;
    };
    const client = table.client(0, { transact });
    await client.refund(config, { a: 4000, b: 4000 });
    await client.store.close();
    expect(calls).toBe(4);
    expect(table.item).toMatchObject({ b_a_tc: 0, b_a_tk: 10_000 });
    expect(table.warnings).toStrictEqual([]);
  });

  test("a bucket that is gone stays gone", async () => {
    const table = new Table();
    const client = table.client();
    const config = configOf(["a:10/day"]);
    await client.take(config, { a: 4000 });
    await table.items.delete(KEY);
    await client.refund(config, { a: 4000 });
    await client.adjust(config, { a: 4000 });
    expect(table.item).toBeUndefined();
  });
});

describe("views", () => {
  test("a refusal is repeated without a call for a second, and no longer", async () => {
    const table = new Table();
    const [one, other] = [table.client(), table.client()];
    const config = configOf(["a:1/day"]);
    await one.take(config, { a: 1000 });
    const before = table.calls.length;
    expect(await one.take(config, { a: 1000 })).toMatchObject({ outcome: "refused", local: true });
    await other.refund(config, { a: 1000 });
    const after = table.calls.length;
    expect(after - before).toBe(2);
    table.nowMs += 999;
    expect(await one.take(config, { a: 1000 })).toMatchObject({ outcome: "refused", local: true });
    table.nowMs += 1;
    expect(await one.take(config, { a: 1000 })).toMatchObject({ outcome: "granted" });
  });

  test("an answer from before an own give-back refuses nothing after it", async () => {
    const table = new Table();
    const config = configOf(["a:1/day"]);
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const get: ItemStore["get"] = async (key) => {
      const item = await table.items.get(key);
      if (key.PK === KEY.PK) await released;
      return item;
    };
    const client = table.client(0, { get });
    await table.items.put({ ...namespaceIdKey("ns"), status: "active" });
    await client.store.linkOf(TARGET.entityId, TARGET.resource);
    await client.take(config, { a: 1000 });
    table.nowMs += 1000;
    const late = client.take(config, { a: 1000 });
    await client.refund(config, { a: 1000 });
    release();
    expect(await late).toMatchObject({ outcome: "refused", local: false });
    const before = table.calls.length;
    expect(await client.take(config, { a: 1000 })).toMatchObject({ outcome: "granted" });
    expect(table.calls.slice(before)).toStrictEqual(["update"]);
  });

  test("a stub that was left behind is replaced", async () => {
    const table = new Table();
    await table.items.put({ ...KEY, b_a_tk: -5000, b_a_tc: 5000 });
    const config = configOf(["a:10/day"]);
    expect(await table.client().take(config, { a: 1000 })).toMatchObject({ outcome: "granted" });
    expect(table.item).toMatchObject({ b_a_tk: 9000, b_a_cp: 10_000, entity_id: TARGET.entityId });
  });

  test("a refusal stays one when the other legs cannot be read", async () => {
    const table = new Table();
    const getMany: ItemStore["getMany"] = async () => {
      throw lost();
    };
    const client = table.client(0, { getMany });
    const config = configOf(["a:1/day"]);
    await client.take(config, { a: 1000 });
    const own = client.leg(config, [1000]);
    const result = await client.store.consume([own, { ...own, entityId: "parent" }]);
    expect(result).toMatchObject({ outcome: "refused", balancesMilli: [[0], [1000]] });
  });
});
