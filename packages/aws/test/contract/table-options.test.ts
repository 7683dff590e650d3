/** Options with which a table that is shared with the Python library may be created. */

import { DescribeTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { openRecords, writeRecords } from "@zae-limiter/aws/stack/table-records.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { bucketKey, versionKey } from "@zae-limiter/limiter/records/keys.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";

const CALL = { entityId: "user-1", resource: "gpt-4", consume: { rpm: 1 } };

async function projectionOf(table: string, endpoint: string): Promise<string | undefined> {
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const client = new DynamoDBClient({ endpoint, region: "us-east-1", credentials });
  const { Table } = await client.send(new DescribeTableCommand({ TableName: table }));
  client.destroy();
  const index = Table?.GlobalSecondaryIndexes?.find(({ IndexName }) => IndexName === "GSI2");
  return index?.Projection?.ProjectionType;
}

describeEngines("a table for both libraries", ({ endpoint }) => {
  it("a table for both libraries projects all attributes into GSI2 and splits no further than it may", async () => {
    const table = newName();
    const options = { endpoint, timeoutMs: 20_000 };
    const shape = { gsi2Projection: "ALL", maxShards: 2 } as const;
    const repo = await Repository.createTable(table, { ...options, ...shape });
    expect(await repo.version()).toMatchObject({ maxShards: 2 });
    await repo.limits.setSystem(["rpm:100000"]);
    await new RateLimiter(repo).acquire(CALL);
    const items = new DynamoItemStore({ table, endpoint, timeoutMs: 20_000 });
    const stored = await items.get(versionKey(), { consistent: true });
    expect(stored).toMatchObject({ max_shards: 2 });
    expect(await projectionOf(table, endpoint)).toBe("ALL");
    const key = bucketKey(repo.namespaceId, CALL.entityId, CALL.resource, 0);
    const nowMs = Date.now();
    for (let round = 0; round < 3; round += 1) {
      await items.update(key, { set: { wm: nowMs + 1500, rf: nowMs - 20_000 } });
      const fresh = await Repository.connect(table, { ...options, clock: () => nowMs });
      await new RateLimiter(fresh).acquire(CALL);
      await fresh.close();
    }
    expect(await items.get(key, { consistent: true })).toMatchObject({ shard_count: 2 });
    await Promise.all([repo.close(), items.close()]);
    await deleteTable({ table, endpoint });
  });

  it("a table for both libraries claims a Lambda of Python only where the options say so", async () => {
    const options = { endpoint, timeoutMs: 20_000 };
    for (const pythonLambdaVersion of ["0.17.0", undefined]) {
      const table = newName();
      const claim = pythonLambdaVersion === undefined ? {} : { pythonLambdaVersion };
      const repo = await Repository.createTable(table, { ...options, ...claim });
      expect((await repo.version())?.lambdaVersion).toBe(pythonLambdaVersion);
      const items = new DynamoItemStore({ table, endpoint, timeoutMs: 20_000 });
      const stored = await items.get(versionKey(), { consistent: true });
      expect(stored).toMatchObject({ lambda_version: pythonLambdaVersion ?? null });
      await Promise.all([repo.close(), items.close()]);
      await deleteTable({ table, endpoint });
    }
    const wrong = { endpoint, pythonLambdaVersion: "latest" };
    expect(await failureOf(Repository.createTable("never", wrong))).toMatchObject({
      field: "pythonLambdaVersion",
    });
  });

  it("deploy writes the most shards, and keeps them where a later one says nothing", async () => {
    const table = newName();
    const place = { endpoint, region: "us-east-1" };
    await (await Repository.createTable(table, place)).close();
    const records = await openRecords(table, place);
    const wanted = {
      aggregatorVersion: null,
      namespaces: [],
      auditRetentionDays: undefined,
      updatedBy: "test",
    };
    const first = await writeRecords(records, {
      ...wanted,
      maxShards: 32,
      pythonLambdaVersion: "0.17.0",
    });
    expect(first.version).toMatchObject({ maxShards: 32, lambdaVersion: "0.17.0" });
    const { version } = await writeRecords(records, wanted);
    expect(version.maxShards).toBe(32);
    // The claim is for one deploy: a stack whose Lambda is ours says so again by itself.
    expect(version.lambdaVersion).toBeUndefined();
    await records.close();
    await deleteTable({ table, endpoint });
  });

  it("a wrong number of shards and an unknown projection of a table are refused", async () => {
    for (const wrong of [0, 3, 65, 128, 1.5, "8"]) {
      const maxShards = wrong as number;
      const error = await failureOf(Repository.createTable("never", { endpoint, maxShards }));
      expect(error).toBeInstanceOf(ValidationError);
    }
    const gsi2Projection = "INCLUDE" as "ALL";
    const error = await failureOf(Repository.createTable("never", { endpoint, gsi2Projection }));
    expect(error).toMatchObject({ field: "gsi2Projection" });
  });
});
