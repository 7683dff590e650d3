/** Tests of options on AWS, and of leftovers when AWS refuses: on moto, with the command. */

import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { describeAws } from "./aws.ts";
import { Command } from "./command.ts";

interface Lambda {
  readonly Configuration: { readonly Role: string; readonly Timeout: number };
}

interface AwsItem {
  readonly ttl?: { readonly N: string };
  readonly action?: object;
  readonly max_shards?: { readonly N: string };
}

/** Python programs are slow on a busy machine. */
vi.setConfig({ testTimeout: 180_000 });

await describeAws("options on moto", (aws) => {
  let command: Command;
  beforeAll(() => {
    command = new Command(aws, "eu-west-1");
  });
  afterAll(() => command.remove());

  const policies = (prefix: string) =>
    command
      .query("iam", { Action: "ListPolicies", Scope: "Local", Version: "2010-05-08" })
      .then((xml) => [...xml.matchAll(/<PolicyName>([^<]+)</g)].map(([, name = ""]) => name))
      .then((names) => names.filter((name) => name.startsWith(prefix)));

  const stacks = async () => (await command.json<{ stacks: { name: string }[] }>("list")).stacks;

  test("without IAM there is no aggregator, and a protected table stays (op 5, 9)", async () => {
    const options = [
      ...["--no-iam", "--enable-deletion-protection", "--audit-retention-days", "30"],
      ...["--max-shards", "32"],
    ];
    const plain = await command.tries("deploy", "-n", "plain", "--yes", ...options);
    expect(plain.code).toBe(0);
    expect(plain.err).toMatch(/The aggregator is left out: without IAM/);
    expect(plain.err).toMatch(/Region +eu-west-1\n +Account +123456789012/);
    expect(plain.err).toMatch(/Aggregator +disabled/);
    expect(plain.err).toMatch(/Deletion protection +enabled/);
    const { Table } = await command.dynamodb<{ Table: Record<string, unknown> }>("DescribeTable", {
      TableName: "plain",
    });
    expect(Table.DeletionProtectionEnabled).toBe(true);
    expect(await policies("plain-")).toEqual([]);
    const version = await command.json<Record<string, unknown>>("version", "-n", "plain");
    expect(version.lambda_version).toBeNull();
    // W18: where there is no Lambda, there is none to bring up to date.
    expect(await command.on("upgrade", "-n", "plain", "--yes")).toContain("is up to date");
    // W19: how long audit events are kept is a fact, not a wish.
    await command.on("entity", "create", "key-1", "-n", "plain");
    const { Items } = await command.dynamodb<{ Items: AwsItem[] }>("Scan", { TableName: "plain" });
    // A table that is shared with Python clients holds as many shards as they use.
    expect(Items.find(({ max_shards }) => max_shards !== undefined)?.max_shards).toEqual({
      N: "32",
    });
    const event = Items.find(({ action }) => action !== undefined);
    const days = (Number(event?.ttl?.N) - Date.now() / 1000) / 86_400;
    expect(Math.round(days)).toBe(30);
    const kept = await command.tries("delete", "-n", "plain", "--with-data", "--yes");
    expect(kept.err).toMatch(/protected against deletion\. Deploy with --no-deletion-protection/);
    const status = await command.json<Record<string, unknown>>("status", "-n", "plain");
    expect(status.stack_status).toBe("CREATE_COMPLETE");
  });

  test("without IAM, a role of the user's own lets the aggregator run, under the longest name (op 6)", async () => {
    const name = `own-role-${"x".repeat(46)}`;
    expect(name).toHaveLength(55);
    const role = "arn:aws:iam::123456789012:role/X";
    await command.query("iam", {
      Action: "CreateRole",
      Version: "2010-05-08",
      RoleName: "X",
      AssumeRolePolicyDocument: JSON.stringify({
        Statement: {
          Effect: "Allow",
          Principal: { Service: "lambda.amazonaws.com" },
          Action: "sts:AssumeRole",
        },
      }),
    });
    const options = ["--no-iam", "--aggregator-role-arn", role, "--lambda-timeout", "120"];
    const deployed = await command.tries("deploy", "-n", name, "--yes", ...options);
    expect(deployed.err).toMatch(/Aggregator +enabled/);
    expect(deployed.err).toMatch(/IAM +disabled/);
    expect(deployed.err).not.toMatch(/left out/);
    // op 2: the alarm follows the timeout.
    expect(deployed.err).toMatch(/LambdaTimeout: 120\n +LambdaDurationThreshold: 96000/);
    expect(deployed.out).toMatch(/own-role-x+-aggr: [\d.]+ KB[\s\S]*reads the stream/);
    const { Configuration } = await command.lambda<Lambda>(`${name}-aggr`);
    expect(Configuration).toMatchObject({ Role: role, Timeout: 120 });
    expect(await policies("own-role-")).toEqual([]);
    // The other Lambda would have no role.
    const missing = await command.lambda<Partial<Lambda>>(`${name}-prov`);
    expect(missing.Configuration).toBeUndefined();
    const status = await command.json<Record<string, unknown>>("status", "-n", name);
    expect(status).toMatchObject({ aggregator_enabled: true, lambda_version: "0.1.0" });
  });

  test("names follow the formats, and roles carry the boundary (op 10)", async () => {
    const boundary = "arn:aws:iam::aws:policy/PowerUserAccess";
    const options = [
      ...["--role-name-format", "PowerUserPB-{}", "--policy-name-format", "pb-{}"],
      ...["--permission-boundary", boundary, "--create-iam-roles"],
    ];
    await command.on("deploy", "-n", "named", "--yes", ...options);
    const { Configuration } = await command.lambda<Lambda>("named-aggregator");
    expect(Configuration.Role).toMatch(/:role\/PowerUserPB-named-aggr$/);
    expect(await policies("pb-named-")).toHaveLength(6);
    for (const component of ["aggr", "prov", "app", "admin", "read"]) {
      const role = await command.query("iam", {
        Action: "GetRole",
        Version: "2010-05-08",
        RoleName: `PowerUserPB-named-${component}`,
      });
      expect(role).toContain(`<PermissionsBoundaryArn>${boundary}</PermissionsBoundaryArn>`);
    }
    const status = await command.tries("status", "-n", "named");
    expect(status.out).toMatch(
      /Roles\n +App +arn:aws:iam::123456789012:role\/PowerUserPB-named-app/,
    );
  });

  test("a stack that cannot be created says why in one line, and leaves nothing", async () => {
    const taken = { Action: "CreateRole", Version: "2010-05-08", RoleName: "taken-aggr" };
    await command.query("iam", { ...taken, AssumeRolePolicyDocument: "{}" });
    const before = await stacks();
    const failed = await command.tries("deploy", "-n", "taken", "--yes");
    expect(failed.code).toBe(1);
    expect(failed.out).toBe("");
    expect(failed.err).toMatch(/CREATE_FAILED AWS::IAM::Role AggregatorRole: .*already exists/);
    expect(failed.err.trimEnd().split("\n").at(-1)).toMatch(
      /^zae-limiter: Stack "taken": it could not be created: AggregatorRole \(AWS::IAM::Role\): .*Role with name taken-aggr already exists/,
    );
    expect(await stacks()).toEqual(before);
    const gone = await command.dynamodb<{ __type?: string }>("DescribeTable", {
      TableName: "taken",
    });
    expect(gone.__type).toMatch(/ResourceNotFound/);
    // What was in the way is gone: the same command does it.
    await command.query("iam", {
      Action: "DeleteRole",
      Version: "2010-05-08",
      RoleName: "taken-aggr",
    });
    await command.on(
      "deploy",
      "-n",
      "taken",
      "--yes",
      "--no-alarms",
      "--policy-name-format",
      "t-{}",
    );
  });
});
