/** Decisions of Redis against an ideal bucket, forgotten scripts, and the memory of a bucket. */

import { RedisItemTable } from "@zae-limiter/limiter/storage/redis/item-table.ts";
import { describeRedis } from "@zae-limiter/test-engines/redis.ts";
import { newPrefix, type TestPrefix } from "@zae-limiter/test-support/redis-prefix.ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { consume, decisionTests, NOW_MS, rowWith, SOON, writeRow } from "../remote/decisions.ts";

const HOUR_MS = 3_600_000;

describeRedis("decisions", (url) => {
  async function open() {
    const prefix = await newPrefix(url);
    const connect = async () => new RedisItemTable(await prefix.connect());
    return { table: new RedisItemTable(prefix.connection), connect, drop: prefix.drop };
  }

  decisionTests({ open, atOnce: 8, handsBack: true, inOrder: true });

  let prefix: TestPrefix;
  let table: RedisItemTable;
  beforeAll(async () => {
    prefix = await newPrefix(url);
    table = new RedisItemTable(prefix.connection);
  });
  afterAll(() => prefix.drop());

  it("scripts that the server has forgotten are sent again on the same connection", async () => {
    const key = { PK: "exact/flushed", SK: "bucket" };
    await writeRow(table, key, rowWith(1000));
    for (let time = 1; time <= 3; time += 1) {
      await prefix.connection.command(["SCRIPT", "FLUSH"], SOON);
      expect(await consume(table, key, NOW_MS)).toMatchObject({ balancesMilli: [[1000 - time]] });
    }
  });

  it("the row of a bucket with two limits takes at most 250 bytes of the server's memory", async () => {
    const key = { PK: "0123456789a/ROW#key-1", SK: "#ROW#gpt-4" };
    const two = <Value>(value: Value) => [value, value];
    const row = {
      ...{ build: "rpm 600000 600000 60000,tpm 10000000 10000000 60000", parent: null },
      ...{ cascades: false, until: NOW_MS + HOUR_MS, events: 1234, period: two(60_000) },
      ...{ cap: two(10_000_000), refill: two(10_000_000), at: two(NOW_MS) },
      ...{ tok: two(9_876_543), rem: two(54_321), used: two(123_456_789), held: "" },
    };
    await writeRow(table, key, row);
    const name = `${prefix.prefix}{0123456789a}w:/ROW#key-1\u0000#ROW#gpt-4`;
    const bytes = await prefix.connection.command(["MEMORY", "USAGE", name], SOON);
    // The prefix of a test is longer than `zael:`.
    expect(Number(bytes) - prefix.prefix.length + "zael:".length).toBeLessThanOrEqual(250);
  });
});
