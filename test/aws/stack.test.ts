/** A stack from its first day to its last, on moto, with the command as it is shipped. */

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeAws } from "./aws.ts";
import { type Built, build, collect, type Ran } from "./built.ts";

/** Nobody's credentials and nobody's region. */
const NOBODY = {
  PATH: process.env.PATH ?? "",
  AWS_CONFIG_FILE: "/nowhere",
  AWS_SHARED_CREDENTIALS_FILE: "/nowhere",
  AWS_EC2_METADATA_DISABLED: "true",
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
};
const MANIFEST = `
namespace: default
system:
  limits:
    rpm: { capacity: 100 }
`;

interface DeployJson {
  readonly outcome: string;
  readonly kind: string;
  readonly settings: readonly { name: string; before: string | null; after: string | null }[];
  readonly tags: readonly unknown[];
  readonly code: readonly { function: string; changed: boolean; size_bytes: number }[];
  readonly event_source_ready: boolean | null;
  readonly namespaces: readonly string[];
}

await describeAws("a stack on moto", ({ endpoint }) => {
  let built: Built;
  let folder = "";
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "zae-limiter-stack-"));
    built = await build();
  }, 120_000);
  afterAll(() => {
    built?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  function run(...args: string[]): Promise<Ran> {
    const child = spawn(process.execPath, [built.binary, ...args], { env: NOBODY, cwd: folder });
    child.stdin.end();
    return collect(child);
  }

  /** On moto; it must succeed. */
  async function on(...args: string[]): Promise<string> {
    const { code, out, err } = await run(...args, "--endpoint-url", endpoint);
    if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${err}`);
    return out;
  }

  async function json<T>(...args: string[]): Promise<T> {
    return JSON.parse(await on(...args, "--json")) as T;
  }

  async function aws<T>(path: string, target?: string, body?: object): Promise<T> {
    const response = await fetch(`${endpoint}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: {
        // moto finds the service by it.
        authorization: `AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/${
          target === undefined ? "lambda" : "dynamodb"
        }/aws4_request`,
        ...(target === undefined ? {} : { "x-amz-target": target }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return (await response.json()) as T;
  }

  test("deploy, acquire, limits apply, upgrade, delete: one script", {
    timeout: 120_000,
  }, async () => {
    const deployed = await run("deploy", "-n", "demo", "--yes", "--endpoint-url", endpoint);
    expect(deployed.code).toBe(0);
    expect(deployed.err).toMatch(/Stack demo will be created:[\s\S]*CREATE_COMPLETE/);
    expect(deployed.out).toMatch(
      /✓ Stack demo is deployed \(create complete\)[\s\S]*demo-aggregator: [\d.]+ KB[\s\S]*reads the stream[\s\S]*Namespaces: default/,
    );
    // op 1: what nobody asked for is the defaults, and the record names the schema.
    const version = await json<Record<string, string>>("version", "-n", "demo");
    expect(version).toMatchObject({
      status: "compatible",
      schema_version: "0.11.0",
      client_min_version: "0.0.0",
      lambda_version: version.client_version,
    });
    const lambda = await aws<{ Configuration: Record<string, unknown>; Tags: object }>(
      "/2015-03-31/functions/demo-aggregator",
    );
    expect(lambda.Configuration).toMatchObject({
      Runtime: "nodejs22.x",
      Timeout: 60,
      MemorySize: 256,
    });
    expect(lambda.Tags).toMatchObject({ "zae-limiter:lambda-version": version.client_version });

    writeFileSync(join(folder, "limits.yaml"), MANIFEST);
    await on("limits", "apply", "-n", "demo", "-f", "limits.yaml");
    const taken = await json<{ granted: boolean }>(
      ...["acquire", "key-1", "gpt-4", "-c", "rpm=60", "-n", "demo"],
    );
    expect(taken.granted).toBe(true);
    const again = ["acquire", "key-1", "gpt-4", "-c", "rpm=60", "-n", "demo"];
    expect((await run(...again, "--endpoint-url", endpoint)).code).toBe(3);

    expect(await on("upgrade", "-n", "demo", "--yes")).toContain("is up to date");
    expect(await on("upgrade", "-n", "demo", "--force", "--yes")).toMatch(
      /✓ Stack demo is upgraded[\s\S]*Code of the aggregator: uploaded[\s\S]*Tags: already present/,
    );
    expect(await on("check", "-n", "demo")).toContain("✓ Compatible");
    expect(await on("delete", "-n", "demo", "--with-data", "--yes")).toBe(
      "✓ Stack demo is deleted\n",
    );
    expect(await json("list")).toEqual({ region: "default", stacks: [] });
    expect((await run("status", "-n", "demo", "--endpoint-url", endpoint)).code).toBe(1);
  });

  test("deploy twice with one option changed: exactly that change", {
    timeout: 120_000,
  }, async () => {
    const place = ["deploy", "-n", "twice", "--yes"];
    const first = await json<DeployJson>(...place, "--no-alarms", "-t", "team=search");
    expect(first).toMatchObject({ outcome: "done", kind: "create", namespaces: ["default"] });
    expect(first.code.map((code) => [code.function, code.changed])).toEqual([
      ["twice-aggregator", true],
      ["twice-limits-provisioner", true],
    ]);
    const second = await json<DeployJson>(...place, "--lambda-memory", "512");
    expect(second).toMatchObject({
      outcome: "done",
      kind: "update",
      settings: [{ name: "LambdaMemorySize", before: "256", after: "512" }],
      tags: [],
    });
    const lambda = await aws<{ Configuration: { MemorySize: number } }>(
      "/2015-03-31/functions/twice-aggregator",
    );
    expect(lambda.Configuration.MemorySize).toBe(512);

    // op 15, and the flag is the aggregator, not the stream.
    const status = await json<Record<string, unknown>>("status", "-n", "twice");
    expect(status).toMatchObject({
      available: true,
      stack_status: "UPDATE_COMPLETE",
      table_status: "ACTIVE",
      aggregator_enabled: true,
      schema_version: "0.11.0",
      lambda_version: status.client_version,
    });
    const { stacks } = await json<{ stacks: object[] }>("list");
    expect(stacks).toMatchObject([{ name: "twice", status: "UPDATE_COMPLETE" }]);
    await on("delete", "-n", "twice", "--yes");
  });

  test("op 5, 6, 9, 10: options reach AWS", { timeout: 120_000 }, async () => {
    const place = ["deploy", "-n", "plain", "--yes", "--endpoint-url", endpoint];
    const plain = await run(
      ...place,
      ...["--no-iam", "--enable-deletion-protection", "--audit-retention-days", "30"],
    );
    expect(plain.code).toBe(0);
    expect(plain.err).toMatch(/The aggregator is left out: without IAM/);
    expect(plain.err).toMatch(/Aggregator +disabled/);
    expect(plain.err).toMatch(/Deletion protection +enabled/);
    const { Table } = await aws<{ Table: Record<string, unknown> }>(
      "/",
      "DynamoDB_20120810.DescribeTable",
      { TableName: "plain" },
    );
    expect(Table.DeletionProtectionEnabled).toBe(true);
    const version = await json<Record<string, unknown>>("version", "-n", "plain");
    expect(version.lambda_version).toBeNull();
    // W18: where there is no Lambda, there is none to bring up to date.
    expect(await on("upgrade", "-n", "plain", "--yes")).toContain("is up to date");
    // W19: how long audit events are kept is a fact, not a wish.
    await on("entity", "create", "key-1", "-n", "plain");
    const { Items } = await aws<{ Items: { ttl?: { N: string }; action?: object }[] }>(
      "/",
      "DynamoDB_20120810.Scan",
      { TableName: "plain" },
    );
    const event = Items.find(({ action }) => action !== undefined);
    const days = (Number(event?.ttl?.N) - Date.now() / 1000) / 86_400;
    expect(Math.round(days)).toBe(30);
    const kept = await run(
      "delete",
      "-n",
      "plain",
      "--with-data",
      "--yes",
      "--endpoint-url",
      endpoint,
    );
    expect(kept.err).toMatch(/protected against deletion\. Deploy with --no-deletion-protection/);
    expect((await json<Record<string, unknown>>("status", "-n", "plain")).stack_status).toBe(
      "CREATE_COMPLETE",
    );
  });

  describe("Repository.provision", () => {
    test("is the same: it deploys, registers, connects, and deploying again changes nothing", async () => {
      const { RateLimiter, Repository } = (await import(
        built.index
      )) as typeof import("../../src/index.ts");
      const options = { endpoint, namespaces: ["tenant-a"], stack: { lambdaMemory: 512 } };
      const repo = await Repository.provision("provisioned", options);
      await repo.limits.setSystem(["rpm:10"]);
      const limiter = new RateLimiter(repo);
      const lease = await limiter.acquire({ entityId: "a", resource: "r", consume: { rpm: 1 } });
      await lease.commit();
      expect((await repo.namespaces.list()).map(({ name }) => name)).toEqual([
        "default",
        "tenant-a",
      ]);
      expect((await repo.version())?.aggregatorVersion).toBeDefined();
      await repo.close();
      const again = await Repository.provision("provisioned", { endpoint, namespace: "tenant-a" });
      expect(again.namespaceName).toBe("tenant-a");
      await again.close();
      await on("delete", "-n", "provisioned", "--with-data", "--yes");
    });
  });

  describe("one line with what to do", () => {
    const line = ({ err }: Ran) => err.trimEnd().split("\n");

    test.each<[string, string[], RegExp]>([
      ["a typo in an option", ["deploy", "--lamda-memory", "1"], /--lambda-memory\?/],
      ["a typo in a value", ["deploy", "--lambda-timeout", "901"], /whole number from 1 to 900/],
      ["no region", ["deploy", "-n", "demo", "--yes"], /no AWS region\. Pass --region/],
      [
        "no credentials",
        ["deploy", "-n", "demo", "--yes", "--region", "us-east-1"],
        /no AWS credentials\. Sign in/,
      ],
    ])("%s", async (_, args, expected) => {
      const ran = await run(...args);
      expect(ran.code).not.toBe(0);
      expect(line(ran)).toHaveLength(1);
      expect(line(ran)[0]).toMatch(expected);
    });
  });

  test("op 18, 19: the template and the code as files", async () => {
    expect((await run("cfn-template")).out).toContain("AWS::DynamoDB::Table");
    expect((await run("cfn-template", "-o", "template.yaml")).code).toBe(0);
    expect(readFileSync(join(folder, "template.yaml"), "utf8")).toContain("AWS::DynamoDB::Table");
    expect((await run("lambda-export", "-o", "deep/down/lambda.zip")).code).toBe(0);
    const path = join(folder, "deep", "down", "lambda.zip");
    const zip = readFileSync(path);
    expect(zip.subarray(0, 2).toString()).toBe("PK");
    writeFileSync(path, "mine");
    const refused = await run("lambda-export", "-o", "deep/down/lambda.zip");
    expect(refused.code).toBe(1);
    expect(refused.err).toContain("--force");
    expect(readFileSync(path, "utf8")).toBe("mine");
    expect((await run("lambda-export", "-o", "deep/down/lambda.zip", "-f")).code).toBe(0);
    expect(readFileSync(path)).toEqual(zip);
    expect((await run("lambda-export", "--info")).out).toMatch(/Handler +index\.handler/);
  });
});
