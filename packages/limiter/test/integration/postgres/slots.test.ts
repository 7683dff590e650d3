/** Slots on a real server: exact over lost and late answers, and over processes that end. */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import type { PostgresConnection } from "@zae-limiter/limiter/storage/postgres/connection.ts";
import { PostgresItemTable } from "@zae-limiter/limiter/storage/postgres/item-table.ts";
import { describePostgres } from "@zae-limiter/test-engines/postgres.ts";
import { forSuite } from "@zae-limiter/test-support/for-suite.ts";
import { newSchema } from "@zae-limiter/test-support/postgres-schema.ts";
import { expect, it } from "vitest";
import { slotFaultTests } from "../remote/slot-faults.ts";
import { slotMoveTests } from "../remote/slot-moves.ts";
import { slotProcessTests } from "../remote/slot-processes.ts";

const CALL = { entityId: "key", resource: "api", consume: { parallel: 1, rpd: 1 } };

/** The parameter that says whether a statement waits for the disk, by the function it calls. */
const WAITS: Readonly<Record<string, (values: readonly unknown[]) => unknown>> = {
  commit_1: (values) => values[4],
  // In the array of a call: the time to wait for locks follows it.
  consume_1: ([call]) => /\\?"(true|false)\\?",\\?"\d+\\?"[,}]/.exec(String(call))?.[1],
  adjust_1: (values) => values[8],
};

/** Notes whether writes wait for the disk. */
class Watched implements PostgresConnection {
  readonly place = "postgres://test";
  readonly schema: string;
  readonly #connection: PostgresConnection;
  waits: string[] = [];

  constructor(connection: PostgresConnection) {
    this.schema = connection.schema;
    this.#connection = connection;
  }

  query(...call: Parameters<PostgresConnection["query"]>) {
    const [text, values] = call;
    const name = /\.(\w+_1)\(/.exec(text)?.[1];
    if (name !== undefined) this.waits.push(`${name} ${WAITS[name]?.(values)}`);
    return this.#connection.query(...call);
  }

  async close(): Promise<void> {}
}

describePostgres("slots", (url) => {
  const schema = forSuite(() => newSchema(url));

  it("slots are taken and given back on the disk of the server, and tokens are not", async () => {
    const connection = new Watched(schema().connection);
    const options = { namespace: "disk", timeoutMs: 20_000, configCacheTtlSeconds: 1e6 };
    const repo = await Repository.over(new PostgresItemTable(connection), options);
    await repo.limits.setSystem(["parallel:2 concurrent", "rpd:100/day"]);
    const limiter = new RateLimiter(repo);
    await (await limiter.acquire(CALL)).commit();
    connection.waits = [];
    const lease = await limiter.acquire(CALL);
    lease.adjust({ rpd: 1 });
    await lease.commit();
    expect(connection.waits).toEqual(["consume_1 true", "adjust_1 true"]);
    connection.waits = [];
    const plain = await limiter.acquire({ ...CALL, consume: { rpd: 1 } });
    plain.adjust({ rpd: 1 });
    await plain.commit();
    expect(connection.waits).toEqual(["consume_1 false", "adjust_1 false"]);
    // Calls of one turn go together, but for those that wait for the disk.
    connection.waits = [];
    const calls = ["a", "b", "c", "d"].map((entityId, at) => {
      const consume = at % 2 === 0 ? CALL.consume : { rpd: 1 };
      return { ...CALL, entityId, consume };
    });
    await Promise.all(calls.map((call) => limiter.acquire(call)));
    connection.waits = [];
    await Promise.all(calls.map((call) => limiter.acquire(call)));
    expect(new Set(connection.waits)).toEqual(new Set(["consume_1 true", "consume_1 false"]));
    const states = await Promise.all(calls.map(({ entityId }) => repo.buckets.list(entityId)));
    const free = states.map((of) => of.find(({ limitName }) => limitName === "parallel")?.tokens);
    expect(free).toEqual([0, 2, 0, 2]);
    await repo.close();
  });

  slotMoveTests(() => new PostgresItemTable(schema().connection));
  slotFaultTests(() => new PostgresItemTable(schema().connection));
  slotProcessTests(() => schema().url);
});
