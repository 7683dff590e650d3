/** The custom resource on real tables. */

import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { createLimitsHandler } from "@zae-limiter/aws/limits-resource/lambda.ts";
import { systemTimer } from "@zae-limiter/limiter/base/time.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { openAsItIs } from "@zae-limiter/limiter/repository/store-as-it-is.ts";
import { tableAt } from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import { deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { unpackLambda } from "@zae-limiter/test-support/lambda.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CloudFormation, LOCAL_PLACE } from "../unit/limits-resource/requests.ts";

const TIMEOUT_MS = 20_000;
const run = promisify(execFile);
/** As Lambda calls it, in a process that has nothing but the bundle. */
const DRIVER = `
import { handler } from "./provisioner.mjs";
await handler(JSON.parse(process.argv[2]), { getRemainingTimeInMillis: () => 300_000 });
`;

/** The code as it is uploaded, for all engines. */
const folder = temporaryFolder();
beforeAll(async () => {
  await run(process.execPath, ["scripts/bundle-lambda.mjs", folder]);
  unpackLambda(folder, "provisioner");
  writeFileSync(join(folder, "driver.mjs"), DRIVER);
});

describeEngines("Custom::ZaeLimiterLimits", ({ endpoint }) => {
  const table = newName();
  let repo: Repository;
  let cloudFormation: CloudFormation;
  beforeAll(async () => {
    repo = await Repository.createTable(table, { endpoint, timeoutMs: TIMEOUT_MS });
    cloudFormation = await CloudFormation.start();
  });
  afterAll(async () => {
    await cloudFormation.stop();
    await repo.close();
    await deleteTable({ table, endpoint });
  });

  it("Custom::ZaeLimiterLimits creates, updates and deletes limits that all clients then see (op 49)", async () => {
    const handler = createLimitsHandler({
      place: LOCAL_PLACE,
      table,
      open: () => openAsItIs(tableAt(table, { endpoint }), { timeoutMs: TIMEOUT_MS }),
      timer: systemTimer,
      log: () => undefined,
    });
    const one = { "gpt-4": { Limits: { rpm: { Capacity: "500" } } } };
    const created = await cloudFormation.send(handler, {
      type: "Create",
      properties: { TableName: table, Resources: one },
    });
    expect(created).toMatchObject({ Status: "SUCCESS", Data: { Created: 1 } });
    const physicalId = created.PhysicalResourceId;
    const updated = await cloudFormation.send(handler, {
      type: "Update",
      properties: {
        TableName: table,
        Resources: { "gpt-4": { Limits: { rpm: { Capacity: "600" } } } },
        System: { Limits: { rpm: { Capacity: "1000" } } },
      },
      physicalId,
    });
    expect(updated).toMatchObject({ Status: "SUCCESS", Data: { Created: 1, Updated: 1 } });
    repo.limits.invalidateCache();
    const resolved = await repo.limits.resolve("key-1", "gpt-4");
    expect(resolved?.limits.map(String)).toEqual(["rpm:600/min"]);
    const deleted = await cloudFormation.send(handler, { type: "Delete", physicalId });
    expect(deleted).toMatchObject({ Status: "SUCCESS", Data: { Deleted: 2 } });
    expect(await repo.limits.listResources()).toEqual([]);
  });

  it("Custom::ZaeLimiterLimits runs as a bundle without any other package", async () => {
    const event = cloudFormation.event({
      type: "Create",
      properties: { TableName: table, System: { Limits: { rpm: { Capacity: "7" } } } },
    });
    const env = {
      TABLE_NAME: table,
      AWS_ENDPOINT_URL_DYNAMODB: endpoint,
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
    };
    const driver = join(folder, "driver.mjs");
    const { stdout } = await run(process.execPath, [driver, JSON.stringify(event)], {
      cwd: folder,
      env,
    });
    expect(JSON.parse(stdout)).toMatchObject({ level: "info", Created: 1 });
    expect(cloudFormation.replies.at(-1)).toMatchObject({ Status: "SUCCESS" });
    expect((await repo.limits.getSystem()).limits.map(String)).toEqual(["rpm:7/min"]);
  });
});
