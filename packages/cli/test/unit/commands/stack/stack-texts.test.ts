/** The commands of a stack, up to where AWS answers. */

import type { Upgraded } from "@zae-limiter/aws/index.ts";
import { stackTags } from "@zae-limiter/aws/stack/stack-tags.ts";
import { countText, sizeText } from "@zae-limiter/cli/commands/stack/status.ts";
import { upgradeText, upgradeWarnings } from "@zae-limiter/cli/commands/stack/upgrade.ts";
import {
  AwsServer,
  describeStacks,
  failure,
  noStack,
} from "@zae-limiter/test-support/aws/aws-server.ts";
import { versionAnswers } from "@zae-limiter/test-support/aws/version-answers.ts";
import { cli } from "@zae-limiter/test-support/captured.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

const PLAIN = ["--no-aggregator", "--no-provisioner"];
const ACTIVE = {
  body: JSON.stringify({ Table: { TableStatus: "ACTIVE", ItemCount: 1234, TableSizeBytes: 2048 } }),
};

let aws: AwsServer;
beforeAll(async () => {
  aws = await AwsServer.start();
});
afterAll(() => aws.stop());
beforeEach(() => aws.reset());

function run(...args: string[]) {
  return cli([...args, "--endpoint-url", aws.endpoint]);
}

describe("deploy", () => {
  test.each([
    ["--lambda-timeout", "0"],
    ["--lambda-timeout", "901"],
    ["--lambda-memory", "64"],
    ["--lambda-memory", "3009"],
    ["--lambda-duration-threshold-pct", "0"],
    ["--lambda-duration-threshold-pct", "101"],
    ["--pitr-recovery-days", "36"],
    ["--log-retention-days", "15"],
    ["--gsi2-projection", "SOME"],
  ])("%s %s cannot be read (op 3)", async (option, value) => {
    expect((await run("deploy", option, value)).code).toBe(2);
    expect(aws.asked).toEqual([]);
  });

  test.each<[string, string[], RegExp]>([
    [
      "two ways with IAM (op 4)",
      ["--no-iam", "--create-iam-roles"],
      /--no-iam and --create-iam-roles exclude each/,
    ],
    [
      "a role that is none (op 7)",
      ["--aggregator-role-arn", "invalid-arn"],
      /aggregatorRoleArn.*arn:aws:iam/,
    ],
    ["a tag without a value (op 8)", ["--tag", "invalid-tag"], /key=value/],
    ["two ways at once", ["--enable-alarms", "--no-alarms"], /exclude each other/],
    ["a namespace that is none", ["-N", "fine", "-N", "_"], /Invalid namespace: "_" is reserved/],
    ["an address that is none", ["--alarm-email", "ops"], /ops@example\.com/],
    ["a topic that is none", ["--alarm-sns-topic", "alarms"], /arn:aws:sns/],
  ])("the command line is refused before AWS is asked: %s", async (_, args, expected) => {
    const { code, err } = await run("deploy", "-n", "demo", ...args);
    expect(code).toBeGreaterThan(0);
    expect(err).toMatch(expected);
    expect(err.trimEnd().split("\n")).toHaveLength(1);
    expect(aws.asked).toEqual([]);
  });

  test("everything after the first = of a tag is the value (op 8)", async () => {
    aws.answers.DescribeStacks = noStack("demo");
    aws.answers.CreateChangeSet = failure(400, "Unexpected", "stop here");
    const { err } = await run("deploy", "-n", "demo", ...PLAIN, "--tag", "a=b=c");
    expect(err).toContain("stop here");
  });

  test("a missing permission is one line that names it", async () => {
    aws.answers.DescribeStacks = failure(403, "AccessDenied", "User: x is not authorized");
    const { code, err } = await run("deploy", "-n", "demo", ...PLAIN, "--yes");
    expect(code).toBe(1);
    expect(err.trimEnd().split("\n")).toEqual([
      expect.stringMatching(
        /^zae-limiter: These AWS credentials may not do cloudformation:DescribeStacks\. Ask for/,
      ),
    ]);
  });
});

describe("a name that AWS would not take (op 11)", () => {
  const NAMES = ["rate_limits", "my.app", "my app", "123app"];
  const COMMANDS = [
    ["deploy"],
    ["delete", "--yes"],
    ["status"],
    ["version"],
    ["check"],
    ["upgrade"],
    ["audit", "list", "--entity-id", "key-1"],
    ["usage", "list", "--entity-id", "key-1"],
  ];
  test.each(COMMANDS)("the command %s refuses names that AWS would refuse", async (...command) => {
    for (const name of NAMES) {
      const { code, err } = await run(...command, "-n", name);
      expect([name, code]).toEqual([name, 1]);
      expect(err).toMatch(/Invalid name: must (not contain|start with)/);
    }
    expect(aws.asked).toEqual([]);
  });
});

describe("delete", () => {
  test("a declined delete deletes nothing (op 12)", async () => {
    const args = ["delete", "-n", "demo", "--endpoint-url", aws.endpoint];
    const { code, err, questions } = await cli(args, { answers: [false] });
    expect(code).toBe(1);
    expect(err).toMatch(/Aborted/);
    expect(questions).toEqual(["Delete the stack demo?"]);
    expect(aws.asked).toEqual([]);
  });

  test("--no-wait only begins it (op 12)", async () => {
    const tags = stackTags("demo", {});
    aws.answers.DescribeStacks = describeStacks({ name: "demo", status: "CREATE_COMPLETE", tags });
    aws.answers.DeleteStack = { body: "<DeleteStackResponse/>" };
    const { code, out } = await run("delete", "-n", "demo", "--yes", "--no-wait");
    expect([code, out]).toEqual([0, expect.stringMatching(/has started/)]);
    expect(aws.asked).toEqual(["DescribeStacks", "DeleteStack"]);
    expect((await run("delete", "-n", "demo", "--yes", "--no-wait", "--with-data")).code).toBe(1);
  });

  test("a stack that is not there is no error (op 55)", async () => {
    aws.answers.DescribeStacks = noStack("demo");
    const { code, out } = await run("delete", "-n", "demo", "--yes");
    expect([code, out]).toEqual([0, "There is no stack demo\n"]);
  });

  test("delete without a stack says that it did not search for the archive", async () => {
    aws.answers.DescribeStacks = noStack("Demo");
    const { code, out } = await run("delete", "-n", "Demo", "--yes", "--with-data");
    expect([code, out]).toEqual([
      0,
      "There is no stack Demo\n  Not searched for: the archive of an earlier stack, which is a " +
        "bucket whose name begins with demo-auditarchivebucket-\n",
    ]);
  });
});

describe("status", () => {
  test("a stack that is complete and active is ready (op 13)", async () => {
    aws.answers.DescribeStacks = describeStacks({
      name: "demo",
      status: "CREATE_COMPLETE",
      parameters: { EnableAggregator: "false" },
    });
    aws.answers.DescribeTable = ACTIVE;
    aws.answers = { ...aws.answers, ...versionAnswers("demo", { schema_version: "0.11.0" }) };
    const { code, out } = await run("status", "-n", "demo");
    expect(code).toBe(0);
    expect(out).toMatch(/Available +yes/);
    expect(out).toMatch(/Schema +0\.11\.0/);
    expect(out).toMatch(/Lambda +N\/A/);
    expect(out).toMatch(/Items +~1\.2K/);
    expect(out).toMatch(/Size +~2\.0 KB/);
    expect(out).toContain("✓ Ready");
    // Looking changes nothing.
    expect(aws.asked.filter((name) => !/^(Describe|Get|List|BatchGet)/.test(name))).toEqual([]);
  });

  test.each<[string, number, RegExp]>([
    ["CREATE_IN_PROGRESS", 0, /⏳/],
    ["CREATE_FAILED", 1, /✗ The last operation failed/],
    ["UPDATE_ROLLBACK_COMPLETE", 1, /✗/],
  ])(
    "a stack in the state %s is shown with its verdict (op 14)",
    async (status, expected, line) => {
      const parameters = { EnableAggregator: "false" };
      aws.answers.DescribeStacks = describeStacks({ name: "demo", status, parameters });
      const { code, out } = await run("status", "-n", "demo");
      expect(code).toBe(expected);
      expect(out).toMatch(line);
      expect(out).toMatch(/Table +Not found/);
    },
  );

  test("no table is an error (op 14)", async () => {
    aws.answers.DescribeStacks = noStack("demo");
    const { code, out } = await run("status", "-n", "demo");
    expect(code).toBe(1);
    expect(out).toMatch(/Stack +Not found[\s\S]*Table +Not found/);
  });

  test("numbers of a status are round", () => {
    expect([undefined, 7, 1200, 3_400_000].map(countText)).toEqual(["N/A", "~7", "~1.2K", "~3.4M"]);
    expect([undefined, 7, 1536, 5 * 1024 ** 2, 3 * 1024 ** 4].map(sizeText)).toEqual([
      "N/A",
      "~7 B",
      "~1.5 KB",
      "~5.0 MB",
      "~3072.0 GB",
    ]);
  });
});

describe("an endpoint that has only DynamoDB", () => {
  const NOT_MINE = { status: 404, body: "<UnknownOperationException/>" };
  beforeEach(() => {
    aws.answers.DescribeStacks = NOT_MINE;
    aws.answers.GetResources = NOT_MINE;
  });

  test("status shows the table, and says that there is no stack", async () => {
    aws.answers.DescribeTable = ACTIVE;
    aws.answers = { ...aws.answers, ...versionAnswers("demo", { schema_version: "0.11.0" }) };
    const { code, out } = await run("status", "-n", "demo");
    expect([code, out]).toEqual([0, expect.stringContaining("✓ Ready")]);
    expect(out).toMatch(/Stack +None: this endpoint has DynamoDB only/);
    const { out: json } = await run("status", "-n", "demo", "--json");
    expect(JSON.parse(json)).toMatchObject({ has_stacks: false, stack_status: null });
  });

  test.each([
    ["deploy", "-n", "demo", ...PLAIN, "--yes"],
    ["list"],
    ["delete", "-n", "demo", "--yes"],
  ])("%s says what it cannot do there", async (...command) => {
    const { code, err } = await run(...command);
    expect(code).toBe(1);
    expect(err.trimEnd().split("\n").at(-1)).toMatch(
      /^zae-limiter: http:\S+ has DynamoDB only and cannot answer cloudformation:\w+: there are no stacks to deploy, list/,
    );
  });
});

describe("a table without a version record (op 16)", () => {
  test.each<[string, number, RegExp]>([
    ["version", 0, /Not initialised/],
    ["check", 1, /Not initialised/],
    ["upgrade", 1, /has no version record/],
  ])("the command %s tells of the missing version record", async (command, expected, line) => {
    aws.answers.GetItem = { body: "{}" };
    aws.answers.BatchGetItem = { body: '{"Responses":{"demo":[]},"UnprocessedKeys":{}}' };
    aws.answers.DescribeStacks = noStack("demo");
    const { code, out, err } = await run(command, "-n", "demo");
    expect(code).toBe(expected);
    expect(out + err).toMatch(line);
  });
});

describe("the tags of an upgrade (op 17)", () => {
  const migrations = { schemaVersion: "0.11.0", targetVersion: "0.11.0", pending: [] };
  const done: Upgraded = {
    outcome: "done",
    plan: {
      version: undefined,
      hasStacks: true,
      code: ["aggregator"],
      tags: true,
      migrations,
      migrationsLeft: [],
      record: true,
      notes: [],
    },
    tagsAdded: true,
    tagsError: undefined,
    migrations: undefined,
    version: undefined,
  };

  test("upgrade reports whether tags were added, already present, or failed", () => {
    expect(upgradeText(done, { name: "demo" })).toMatch(
      /✓ Stack demo is upgraded[\s\S]*Tags: added/,
    );
    expect(upgradeText({ ...done, tagsAdded: false }, { name: "demo" })).toMatch(
      /Tags: already present/,
    );
    const failed = { ...done, tagsAdded: undefined, tagsError: new Error("not allowed") };
    expect(upgradeText(failed, { name: "demo" })).toMatch(
      /✓ Stack demo is upgraded[\s\S]*Tags: missing$/,
    );
    expect(upgradeWarnings(failed)).toEqual([expect.stringMatching(/Warning: .*not allowed/)]);
    expect(upgradeWarnings(done)).toEqual([]);
  });
});

describe("list", () => {
  test("list shows stacks by the names that other commands accept, with what is wrong (op 20)", async () => {
    aws.answers.DescribeStacks = describeStacks(
      { name: "zeta", status: "CREATE_COMPLETE", tags: stackTags("zeta", {}) },
      { name: "ZAEL-alpha", status: "UPDATE_FAILED" },
      { name: "mid", status: "CREATE_IN_PROGRESS", tags: stackTags("mid", {}) },
    );
    const { code, out } = await run("list");
    expect(code).toBe(0);
    const rows = out.split("\n").map((row) => row.split(/ {2,}/));
    expect(rows.slice(1, 4)).toEqual([
      ["ZAEL-alpha", "UPDATE_FAILED", "-", "2026-01-02"],
      ["mid", "CREATE_IN_PROGRESS", "0.1.0", "2026-01-02"],
      ["zeta", "CREATE_COMPLETE", "0.1.0", "2026-01-02"],
    ]);
    expect(out).toMatch(/3 in us-east-1, 1 failed, 1 in progress/);
    const { out: json } = await run("list", "--json");
    const { stacks } = JSON.parse(json) as { stacks: { name: string; stack_name: string }[] };
    expect(stacks.map(({ name }) => name)).toEqual(stacks.map(({ stack_name }) => stack_name));
  });

  test('list prints a hint without stacks, and "unknown" for a missing time (op 20)', async () => {
    aws.answers.DescribeStacks = describeStacks();
    expect(await run("list")).toMatchObject({
      code: 0,
      out: expect.stringMatching(/Deploy one with/),
    });
    const body = describeStacks({ name: "ZAEL-a", status: "CREATE_COMPLETE" }).body;
    aws.answers.DescribeStacks = { body: body.replace(/<CreationTime>.*?<\/CreationTime>/, "") };
    expect((await run("list")).out).toMatch(/a +CREATE_COMPLETE +- +unknown/);
  });
});

describe("cfn-template", () => {
  test("cfn-template prints YAML, or JSON (op 19)", async () => {
    const { code, out } = await cli(["cfn-template"]);
    expect(code).toBe(0);
    expect(out).toContain("Type: AWS::DynamoDB::Table");
    const json = await cli(["cfn-template", "--format", "json"]);
    expect(JSON.parse(json.out).Resources.LimiterTable.Type).toBe("AWS::DynamoDB::Table");
    const nowhere = await cli(["cfn-template", "-o", "/nowhere/at/all.yaml"]);
    expect([nowhere.code, nowhere.err]).toEqual([1, expect.stringMatching(/cannot be written/)]);
  });
});
