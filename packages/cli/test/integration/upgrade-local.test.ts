/** Upgrades a table of the Python library behind an endpoint that has only DynamoDB. */

import { upgradeStack } from "@zae-limiter/aws/deploy/upgrade.ts";
import { SCHEMA_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { versionKey } from "@zae-limiter/limiter/records/keys.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { expect, it } from "vitest";

describeEngines("upgrade on a local endpoint", ({ endpoint }) => {
  it("upgrade on a local endpoint migrates the table, and says that there is no stack", async () => {
    const table = newName();
    const connection = { endpoint, timeoutMs: 20_000 };
    const repo = await Repository.createTable(table, connection);
    await repo.close();
    const items = new DynamoItemStore({ table, endpoint, timeoutMs: 20_000 });
    const written = {
      schema_version: "0.10.0",
      of_the_future: "kept",
      client_min_version: "0.17.0",
    };
    await items.update(versionKey(), { set: written });
    const planned = await cli([
      "upgrade",
      "--name",
      table,
      "--endpoint-url",
      endpoint,
      "--dry-run",
    ]);
    expect([planned.code, planned.err]).toEqual([0, expect.stringContaining("no stack")]);
    const done = await upgradeStack({ stackName: table, connection });
    expect(done.outcome).toBe("done");
    expect(await items.get(versionKey(), { consistent: true })).toMatchObject({
      schema_version: SCHEMA_VERSION,
      of_the_future: "kept",
      client_min_version: "0.17.0",
    });
    const again = await cli(["upgrade", "--name", table, "--endpoint-url", endpoint, "--yes"]);
    expect([again.code, again.out]).toEqual([0, expect.stringContaining(`Table ${table} is up`)]);
    const status = await cli(["status", "--name", table, "--endpoint-url", endpoint]);
    expect(status.code).toBe(0);
    expect(status.out).toContain("Ready");
    await items.close();
    await deleteTable({ table, endpoint });
  });
});
