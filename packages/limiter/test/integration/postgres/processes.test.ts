/** Processes that share buckets on PostgreSQL, and processes that are killed. */

import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { forSuite } from "@zae-limiter/test-support/for-suite.ts";
import { newSchema } from "@zae-limiter/test-support/postgres-schema.ts";
import { busyBucketTests } from "../remote/busy-buckets.ts";
import { processTests } from "../remote/processes.ts";

const SOON = { timeoutMs: 20_000 };

describePostgres("processes", (url) => {
  const schema = forSuite(() => newSchema(url));

  async function deadlocks(): Promise<number> {
    const text = "SELECT sum(deadlocks)::text AS n FROM pg_stat_database";
    const [row] = await schema().connection.query(text, [], SOON);
    return Number(row?.["n"]);
  }

  processTests(() => {
    const address = schema().url;
    return { address, readsClock: true, deadlocks };
  });

  busyBucketTests(() => schema().url);
});
