/** Upgrades a table of the Python library behind an endpoint that has only DynamoDB. */

import { expect, it } from "vitest";
import { SCHEMA_VERSION } from "../../src/domain/version.ts";
import { upgradeStack } from "../../src/infra/upgrade.ts";
import { versionKey } from "../../src/records/keys.ts";
import { Repository } from "../../src/repository/repository.ts";
import { deleteTable } from "../../src/storage/dynamodb/create-table.ts";
import { DynamoItemStore } from "../../src/storage/dynamodb/item-store.ts";
import { newName } from "../contract/stores.ts";
import { describeEngines } from "../engines/engines.ts";
import { cli } from "../unit/cli/captured.ts";

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
