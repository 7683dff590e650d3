/** Decisions of PostgreSQL against an ideal bucket, and calls that share a statement. */

import { PostgresItemTable } from "@zae-limiter/limiter/storage/postgres/item-table.ts";
import { WARM_BUCKETS, type WarmAnswer } from "@zae-limiter/limiter/storage/warm-buckets.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { newSchema } from "@zae-limiter/test-support/postgres-schema.ts";
import { expect, it } from "vitest";
import { decisionTests, legOf, NOW_MS, rowWith, SOON, writeRow } from "../remote/decisions.ts";

describePostgres("decisions", (url) => {
  async function open() {
    const schema = await newSchema(url);
    const connect = async () => new PostgresItemTable(await schema.connect());
    return { table: new PostgresItemTable(schema.connection), connect, drop: schema.drop };
  }

  decisionTests({ open, atOnce: 4, handsBack: false, inOrder: false });

  it("calls that share a statement get their own answers, each by itself", async () => {
    let statements = 0;
    const { connection: own, drop } = await newSchema(url);
    const { place, schema } = own;
    const query: typeof own.query = (...call) => {
      statements += 1;
      return own.query(...call);
    };
    const table = new PostgresItemTable({ place, schema, query, close: never });
    const keys = Array.from({ length: 100 }, (_, at) => ({ PK: `many-${at}`, SK: "bucket" }));
    for (const [at, key] of keys.entries()) {
      if (at % 10 !== 9) await writeRow(table, key, rowWith(at));
    }
    statements = 0;
    const configKey = { PK: "config", SK: "none" };
    const call = { configKey, knownVersion: undefined, nowMs: NOW_MS };
    const asked = keys.map((key) => ({ legs: [legOf(key, 50)], ...call }));
    const malformed = { legs: [legOf({ PK: "many-60", SK: "bucket" }, 1e30)], ...call };
    const warm = table[WARM_BUCKETS];
    const [answers, error] = await Promise.all([
      Promise.all(asked.map((each) => warm.consume(each, SOON))),
      warm.consume(malformed, SOON).catch(String),
    ]);
    expect(error).toMatch(/out of range|invalid input syntax/);
    expect(statements).toBeLessThan(asked.length / 2);
    expect(answers).toEqual(keys.map((_, at) => answerOfBucket(at)));
    await drop();
  });
});

/** Returns what a bucket with `at` tokens says to a call of 50; there is not one for each. */
function answerOfBucket(at: number): WarmAnswer | undefined {
  if (at % 10 === 9) return undefined;
  const isRefused = at < 50;
  const left = isRefused ? at : at - 50;
  return {
    outcome: isRefused ? "refused" : "granted",
    balancesMilli: [[left]],
    configVersion: 0,
  };
}

const never = () => Promise.resolve();
