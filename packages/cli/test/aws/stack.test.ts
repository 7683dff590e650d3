/** A stack from its first day to its last, on moto, with the command as it is shipped. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Ran } from "@zae-limiter/test-support/binary.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeAws } from "./aws.ts";
import { Command } from "./command.ts";

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
  readonly resources: readonly object[];
  readonly code: readonly { function: string; changed: boolean; size_bytes: number }[];
  readonly event_source_ready: boolean | null;
  readonly namespaces: readonly string[];
}

await describeAws("a stack on moto", (aws) => {
  let command: Command;
  beforeAll(() => {
    command = new Command(aws, "us-east-1");
  });
  afterAll(() => command.remove());

  test("deploy, acquire, limits apply, upgrade, delete: one script", {
    timeout: 120_000,
  }, async () => {
    const deployed = await command.spawned("deploy", "-n", "demo", "--yes");
    expect(deployed.code).toBe(0);
    expect(deployed.err).toMatch(/Stack demo will be created:[\s\S]*CREATE_COMPLETE/);
    expect(deployed.out).toMatch(
      /✓ Stack demo is deployed \(create complete\)[\s\S]*demo-aggregator: [\d.]+ KB[\s\S]*reads the stream[\s\S]*Namespaces: default/,
    );
    // op 1: options that are not given have their defaults, and the record names the schema.
    const version = await command.json<Record<string, string>>("version", "-n", "demo");
    expect(version).toMatchObject({
      status: "compatible",
      schema_version: "0.11.0",
      client_min_version: "0.0.0",
      lambda_version: version.client_version,
    });
    const lambda = await command.lambda<{
      Configuration: Record<string, unknown>;
      Tags: object;
    }>("demo-aggregator");
    expect(lambda.Configuration).toMatchObject({
      Runtime: "nodejs22.x",
      Timeout: 60,
      MemorySize: 256,
    });
    expect(lambda.Tags).toMatchObject({ "zae-limiter:lambda-version": version.client_version });

    writeFileSync(join(command.folder, "limits.yaml"), MANIFEST);
    const applied = await command.spawned("limits", "apply", "-n", "demo", "-f", "limits.yaml");
    expect(applied.code).toBe(0);
    const taken = await command.json<{ granted: boolean }>(
      ...["acquire", "key-1", "gpt-4", "-c", "rpm=60", "-n", "demo"],
    );
    expect(taken.granted).toBe(true);
    const again = ["acquire", "key-1", "gpt-4", "-c", "rpm=60", "-n", "demo"];
    expect((await command.spawned(...again)).code).toBe(3);

    expect(await command.on("upgrade", "-n", "demo", "--yes")).toContain("is up to date");
    expect(await command.on("upgrade", "-n", "demo", "--force", "--yes")).toMatch(
      /✓ Stack demo is upgraded[\s\S]*Code of the aggregator: uploaded[\s\S]*Tags: already present/,
    );
    expect(await command.on("check", "-n", "demo")).toContain("✓ Compatible");
    const deleted = await command.spawned("delete", "-n", "demo", "--with-data", "--yes");
    expect([deleted.code, deleted.out]).toEqual([
      0,
      "✓ Stack demo is deleted\n  Deleted: table demo with everything in it\n",
    ]);
    expect(await command.json("list")).toEqual({ region: "us-east-1", stacks: [] });
    const gone = await command.tries("status", "-n", "demo");
    expect([gone.code, gone.out]).toEqual([1, expect.stringMatching(/✗ Not deployed here/)]);
  });

  test("deploying again with one option changed makes exactly that change", {
    timeout: 120_000,
  }, async () => {
    const place = ["deploy", "-n", "twice", "--yes"];
    const first = await command.json<DeployJson>(...place, "--no-alarms", "-t", "team=search");
    expect(first).toMatchObject({ outcome: "done", kind: "create", namespaces: ["default"] });
    // W20: whatever runs in the stack has its code.
    expect(first.code.map((code) => [code.function, code.changed])).toEqual([
      ["twice-aggregator", true],
      ["twice-limits-provisioner", true],
    ]);
    const second = await command.json<DeployJson>(...place, "--lambda-memory", "512");
    expect(second).toMatchObject({
      outcome: "done",
      kind: "update",
      settings: [{ name: "LambdaMemorySize", before: "256", after: "512" }],
      tags: [],
      resources: [
        { action: "Modify", resource: "AggregatorFunction", type: "AWS::Lambda::Function" },
      ],
    });
    expect(second.resources).toHaveLength(1);
    const third = await command.json<DeployJson>(...place, "--lambda-memory", "512");
    expect(third).toMatchObject({ outcome: "done", kind: "nothing", settings: [], resources: [] });
    const lambda = await command.lambda<{ Configuration: { MemorySize: number } }>(
      "twice-aggregator",
    );
    expect(lambda.Configuration.MemorySize).toBe(512);

    // op 15, and the flag is the aggregator, not the stream.
    const status = await command.json<Record<string, unknown>>("status", "-n", "twice");
    expect(status).toMatchObject({
      available: true,
      stack_status: "UPDATE_COMPLETE",
      table_status: "ACTIVE",
      aggregator_enabled: true,
      schema_version: "0.11.0",
      lambda_version: status.client_version,
    });
    const { stacks } = await command.json<{ stacks: object[] }>("list");
    expect(stacks).toMatchObject([{ name: "twice", status: "UPDATE_COMPLETE" }]);
    await command.on("delete", "-n", "twice", "--yes");
  });

  describe("Repository.provision", () => {
    test("Repository.provision deploys, registers and connects, and again it changes nothing", async () => {
      const { RateLimiter, Repository } = (await import(
        command.index
      )) as typeof import("../../../../src/index.ts");
      const { endpoint } = aws;
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
      const place = { endpoint, namespace: "tenant-a" };
      const again = await Repository.provision("provisioned", place);
      expect(again.namespaceName).toBe("tenant-a");
      expect((await again.limits.getSystem()).onUnavailable).toBeUndefined();
      await again.limits.setSystem(["rpm:10"]);
      await again.close();
      await (
        await Repository.provision("provisioned", { ...place, onUnavailable: "allow" })
      ).close();
      const other = await Repository.connect("provisioned", place);
      expect(await other.limits.getSystem()).toMatchObject({
        limits: [{ name: "rpm", capacity: 10 }],
        onUnavailable: "allow",
      });
      await other.close();
      await command.on("delete", "-n", "provisioned", "--with-data", "--yes");
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
        /No AWS credentials found\. Sign in/,
      ],
    ])("a mistake is one line with what to do: %s", async (_, args, expected) => {
      const ran = await command.run(...args);
      expect(ran.code).not.toBe(0);
      expect(line(ran)).toHaveLength(1);
      expect(line(ran)[0]).toMatch(expected);
    });
  });

  test("the template and the code are written as files (op 18, 19)", async () => {
    expect((await command.run("cfn-template")).out).toContain("AWS::DynamoDB::Table");
    expect((await command.run("cfn-template", "-o", "template.yaml")).code).toBe(0);
    expect(readFileSync(join(command.folder, "template.yaml"), "utf8")).toContain(
      "AWS::DynamoDB::Table",
    );
    expect((await command.run("lambda-export", "-o", "deep/down/lambda.zip")).code).toBe(0);
    const path = join(command.folder, "deep", "down", "lambda.zip");
    const zip = readFileSync(path);
    expect(zip.subarray(0, 2).toString()).toBe("PK");
    writeFileSync(path, "mine");
    const refused = await command.run("lambda-export", "-o", "deep/down/lambda.zip");
    expect(refused.code).toBe(1);
    expect(refused.err).toContain("--force");
    expect(readFileSync(path, "utf8")).toBe("mine");
    expect((await command.run("lambda-export", "-o", "deep/down/lambda.zip", "-f")).code).toBe(0);
    expect(readFileSync(path)).toEqual(zip);
    expect((await command.run("lambda-export", "--info")).out).toMatch(/Handler +index\.handler/);
  });
});
