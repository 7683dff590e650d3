/** Processes that share buckets on PostgreSQL, and processes that are killed. */

import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { newSchema, type TestSchema } from "@zae-limiter/test-support/postgres-schema.ts";
import { afterAll, beforeAll } from "vitest";
import { busyBucketTests } from "../remote/busy-buckets.ts";
import { processTests } from "../remote/processes.ts";

const SOON = { timeoutMs: 20_000 };

describePostgres("processes", (url) => {
  let schema: TestSchema;
  beforeAll(async () => {
    schema = await newSchema(url);
  });
  afterAll(() => schema.drop());

  async function deadlocks(): Promise<number> {
    const text = "SELECT sum(deadlocks)::text AS n FROM pg_stat_database";
    const [row] = await schema.connection.query(text, [], SOON);
    return Number(row?.["n"]);
  }

  processTests(() => {
    const address = `${url}${url.includes("?") ? "&" : "?"}schema=${schema.schema}`;
    return { address, readsClock: true, deadlocks };
  });

  busyBucketTests(() => `${url}${url.includes("?") ? "&" : "?"}schema=${schema.schema}`);
});
