/**
 * Tests of migrations on real tables: missing indexes, and a scan that another process continues.
 */

import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DynamoDBClient,
} from "@aws-sdk/client-dynamodb";
import {
  openTable,
  planMigrations,
  runMigrations,
} from "@zae-limiter/aws/migrations/migrations.ts";
import { createTable, deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import {
  DEFAULT_ID,
  HOUR,
  NOW,
  namespace,
  unfinishedTable,
  usage,
  version,
} from "@zae-limiter/test-support/old-tables.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { contents, fill } from "./tables.ts";

const clock = () => NOW;

describeEngines("migrations", ({ endpoint }) => {
  const place = { table: newName(), endpoint };
  const url = `dynamodb://${place.table}?endpoint=${endpoint}`;
  beforeAll(() => createTable(place));
  afterAll(() => deleteTable(place));

  it("migrations go on where they were stopped, over a connection of their own", async () => {
    const first = await openTable(url);
    const rows = Array.from({ length: 20 }, (_, index) =>
      usage(DEFAULT_ID, `key-${index}`, "hourly", HOUR, { rpm: index, total_events: 1 }),
    );
    await fill(first.store, [version("0.10.0"), ...namespace("default", DEFAULT_ID), ...rows]);
    const stop = new AbortController();
    const { signal } = stop;
    const onProgress = () => stop.abort();
    const stopped = await runMigrations(first.store, { clock, signal, onProgress });
    expect(stopped).toMatchObject({ completed: false, migrations: [{ changed: 16 }] });
    await first.close();

    const second = await openTable(url);
    expect((await planMigrations(second.store)).interrupted).toMatchObject({ changed: 16 });
    const rest = await runMigrations(second.store, { clock });
    expect(rest).toMatchObject({ completed: true, migrations: [{ changed: 20 }] });
    const keys = (await contents(second.store)).map(({ SK }) => SK);
    const moved = keys.filter((key) => key === `#USAGE#gpt-4#hourly#${HOUR}`);
    expect(moved).toHaveLength(20);
    expect(keys.filter((key) => key.startsWith("#USAGE#"))).toHaveLength(20);
    await second.close();
  });

  it("migrations refuse a table that lacks an index, before anything is written", async () => {
    const old = { table: newName(), endpoint };
    const credentials = { accessKeyId: "test", secretAccessKey: "test" };
    const client = new DynamoDBClient({ endpoint, region: "us-east-1", credentials });
    await client.send(new CreateTableCommand(withoutGsi4(old.table)));
    client.destroy();
    const { store, close } = await openTable(`dynamodb://${old.table}?endpoint=${endpoint}`);
    await fill(store, unfinishedTable("0.10.0"));
    const before = await contents(store);
    await expect(runMigrations(store, { clock })).rejects.toMatchObject({
      code: "ZAEL_MIGRATION",
      message: expect.stringContaining("GSI4") as string,
    });
    expect(await contents(store)).toEqual(before);
    await close();
    await deleteTable(old);
  });
});

/** A table whose stack is older than namespaces: it has three indexes. */
function withoutGsi4(table: string): CreateTableCommandInput {
  const keys = (prefix: string): [string, string] => [`${prefix}PK`, `${prefix}SK`];
  const schema = ([hash, range]: [string, string]) => [
    { AttributeName: hash, KeyType: "HASH" as const },
    { AttributeName: range, KeyType: "RANGE" as const },
  ];
  const indexes = ["GSI1", "GSI2", "GSI3"];
  return {
    TableName: table,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: ["", ...indexes]
      .flatMap(keys)
      .map((name) => ({ AttributeName: name, AttributeType: "S" as const })),
    KeySchema: schema(keys("")),
    GlobalSecondaryIndexes: indexes.map((name) => ({
      IndexName: name,
      KeySchema: schema(keys(name)),
      Projection: { ProjectionType: "ALL" as const },
    })),
  };
}
