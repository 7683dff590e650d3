/** The Lambda function as it is deployed: one file, in a process that has nothing else. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LambdaRecord } from "@zae-limiter/aws/aggregator/lambda-event.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { describeEngines } from "@zae-limiter/test-engines/engines.ts";
import { unpackLambda } from "@zae-limiter/test-support/lambda.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../../../../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "zae-limiter-bundle-"));
const bundle = join(folder, "aggregator.mjs");
const caller = join(folder, "call.mjs");
/** Credentials that every local DynamoDB accepts. */
const CREDENTIALS = { AWS_ACCESS_KEY_ID: "local", AWS_SECRET_ACCESS_KEY: "local" };

beforeAll(() => {
  const script = join(ROOT, "scripts", "bundle-lambda.mjs");
  execFileSync(process.execPath, [script, folder]);
  unpackLambda(folder, "aggregator");
  writeFileSync(
    caller,
    `import { Socket } from "node:net";
     if (process.env.OFFLINE) {
       Socket.prototype.connect = () => { throw new Error("there is no network"); };
     }
     const { handler } = await import(${JSON.stringify(bundle)});
     const answer = await handler(JSON.parse(process.env.EVENT), { awsRequestId: "r" });
     console.error(JSON.stringify(answer));`,
  );
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Calls the handler in a process of its own; hands out the last line of its log. */
function call(event: object, env: Readonly<Record<string, string>>, flags: readonly string[] = []) {
  const out = execFileSync(process.execPath, [...flags, caller], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...CREDENTIALS, AWS_REGION: "us-east-1", EVENT: JSON.stringify(event), ...env },
  });
  return JSON.parse(out.trimEnd().split("\n").at(-1) as string) as Record<string, unknown>;
}

describe("the bundle", () => {
  test("the bundle is of a size that starts quickly", () => {
    expect(statSync(bundle).size).toBeLessThan(1_050_000);
  });

  test("the bundle starts and answers without network and without any other file", () => {
    // Node 22.13 and later have it under its final name, and Node 24 under no other.
    const hasFinalName = process.allowedNodeEnvironmentFlags.has("--permission");
    const permission = hasFinalName ? "--permission" : "--experimental-permission";
    const flags = [permission, ...[bundle, caller].map((f) => `--allow-fs-read=${f}`)];
    const line = call({ Records: [] }, { TABLE_NAME: "t", OFFLINE: "yes" }, flags);
    expect(line).toMatchObject({ message: "invocation finished", records: 0 });
  });
});

describeEngines("the bundle", ({ endpoint }) => {
  test("the bundle counts what an event says in the table that the environment names", async () => {
    const table = newName();
    const repo = await Repository.createTable(table, { endpoint, timeoutMs: 20_000 });
    try {
      const { namespaceId } = repo;
      const PK = { S: `${namespaceId}/BUCKET#key-1#gpt-4#0` };
      const SK = { S: "#STATE" };
      const record: LambdaRecord = {
        eventName: "INSERT",
        eventSourceARN: `arn:aws:dynamodb:us-east-1:1:table/${table}/stream/2026-01-01T00:00:00.000`,
        dynamodb: {
          ApproximateCreationDateTime: Math.floor(Date.now() / 1000),
          Keys: { PK, SK },
          NewImage: { PK, SK, entity_id: { S: "key-1" }, b_tpm_tc: { N: "5000" } },
          SequenceNumber: "000000000000000000414",
        },
      };
      const env = {
        TABLE_NAME: table,
        SNAPSHOT_WINDOWS: "daily",
        AWS_ENDPOINT_URL_DYNAMODB: endpoint,
      };
      for (let times = 0; times < 2; times += 1) {
        const line = call({ Records: [record] }, env);
        expect(line).toMatchObject({ records: 1, failures: 0, snapshots: 1 - times });
      }
      const { snapshots } = await repo.usage.snapshots({ entityId: "key-1" });
      expect(snapshots).toMatchObject([{ windowType: "daily", counters: { tpm: 5 } }]);
    } finally {
      await repo.close();
      await deleteTable({ table, endpoint });
    }
  });
});
