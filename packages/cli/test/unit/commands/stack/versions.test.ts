/** Tables and Lambdas of other versions, older and newer, as the commands meet them. */

import { stackTags } from "@zae-limiter/aws/stack/stack-tags.ts";
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
const LAMBDA = "/2015-03-31/functions/demo-aggregator";
const BEFORE_NAMESPACES = "SYSTEM#";
const TABLE = {
  body: JSON.stringify({
    Table: {
      TableStatus: "ACTIVE",
      KeySchema: [{ AttributeName: "PK" }, { AttributeName: "SK" }],
      GlobalSecondaryIndexes: [{ IndexName: "GSI1" }, { IndexName: "GSI2" }],
    },
  }),
};

let aws: AwsServer;
beforeAll(async () => {
  aws = await AwsServer.start();
});
afterAll(() => aws.stop());
beforeEach(() => aws.reset());

function run(...args: string[]) {
  return cli([...args, "-n", "demo", "--endpoint-url", aws.endpoint]);
}

/** A stack whose table says this about itself. */
function deployed(said: Readonly<Record<string, string>>, PK?: string): void {
  const tags = stackTags("demo", {});
  const parameters = { EnableAggregator: "false" };
  aws.answers = {
    DescribeStacks: describeStacks({ name: "demo", status: "CREATE_COMPLETE", tags, parameters }),
    DescribeTable: TABLE,
    ...versionAnswers("demo", said, PK),
  };
}

const writes = () => aws.asked.filter((name) => !/^(Describe|Get|List|BatchGet|\/)/.test(name));

describe("a table that is too new for this client", () => {
  const COMMANDS = [["deploy", ...PLAIN], ["upgrade"], ["upgrade", "--force"]];

  test.each(COMMANDS)(
    "a table that is too new for this client is refused by its oldest client: %s %s",
    async (...command) => {
      deployed({ schema_version: "0.11.0", client_min_version: "2.0.0" });
      const { code, err } = await run(...command, "--yes");
      expect([code, err.trimEnd().split("\n").at(-1)]).toEqual([
        1,
        "zae-limiter: Client 0.1.0 cannot use schema 0.11.0. The table asks for clients that keep " +
          "up with release 2.0.0 of the Python library; this version keeps up with 0.17.0. Nothing " +
          "was changed; install a newer zae-limiter",
      ]);
      expect(writes()).toEqual([]);
    },
  );

  test.each(COMMANDS)(
    "a table that is too new for this client is refused by its schema: %s %s",
    async (...command) => {
      deployed({ schema_version: "2.0.0" });
      const { code, err } = await run(...command, "--yes");
      expect([code, err]).toEqual([
        1,
        expect.stringMatching(/cannot use schema 2\.0\.0\. The newest that it knows is 0\.11\.0\./),
      ]);
      expect(writes()).toEqual([]);
    },
  );

  test.each([
    ["a table that can be used", "0.12.0"],
    ["one that has to be migrated", "0.10.0"],
  ])("a deployment and an upgrade are not refused for %s", async (_, schema_version) => {
    deployed({ schema_version });
    aws.answers.DescribeStacks = failure(400, "Unexpected", "stop here");
    expect((await run("deploy", ...PLAIN, "--yes")).err).toContain("stop here");
    expect((await run("upgrade", "--yes")).err).toContain("stop here");
  });

  test("a table of other software is not asked for a version", async () => {
    aws.answers.DescribeStacks = noStack("demo");
    aws.answers.DescribeTable = {
      body: JSON.stringify({ Table: { KeySchema: [{ AttributeName: "id" }] } }),
    };
    const { err } = await run("deploy", ...PLAIN, "--yes");
    expect(err).toMatch(/keyed by id/);
    expect(aws.asked).not.toContain("BatchGetItem");
  });
});

describe("a Lambda of the Python library", () => {
  test.each([[], ["--force"], ["--lambda-only"], ["--dry-run"]])(
    "a Lambda of the Python library is left alone: upgrade %s",
    async (...options) => {
      deployed({ schema_version: "0.10.0", lambda_version: "0.10.0" });
      const Handler = "zae_limiter_aggregator.handler.handler";
      aws.answers[LAMBDA] = {
        body: JSON.stringify({ Configuration: { Runtime: "python3.12", Handler } }),
      };
      const { code, err } = await run("upgrade", "--yes", ...options);
      expect([code, err]).toEqual([
        1,
        'zae-limiter: Stack "demo": its aggregator is that of the Python library (python3.12, ' +
          "zae_limiter_aggregator.handler.handler); nothing was changed. Upgrade it with the tools of " +
          "that library, or run zae-limiter stack deploy --name demo first, which replaces it\n",
      ]);
      expect(writes()).toEqual([]);
    },
  );
});

describe("a table whose layout is too old", () => {
  const PYTHON =
    "Upgrade the table first with release 0.17.0 of the Python library: " +
    'its command "zae-limiter upgrade --name TABLE"';
  const TABLES = [
    ["of 0.8.0", "0.8.0", undefined, "oldest layout that this client can use or migrate is 0.9.0"],
    ["without namespaces", "0.8.0", BEFORE_NAMESPACES, "from before there were namespaces"],
    // Versions were once counted from 1.0.0.
    ["of the first layout", "1.0.0", BEFORE_NAMESPACES, "from before there were namespaces"],
  ] as const;

  describe.each(TABLES)("a table %s", (_, schema, PK, reason) => {
    beforeEach(() => deployed({ schema_version: schema }, PK));

    test.each([
      ["upgrade"],
      ["upgrade", "--dry-run"],
      ["upgrade", "--force"],
      ["upgrade", "--lambda-only"],
      ["deploy", ...PLAIN],
    ])(
      "a table whose layout is too old is refused, and nothing is written: %s %s",
      async (...command) => {
        const { code, err } = await run(...command, "--yes");
        expect([code, err]).toEqual([
          1,
          expect.stringContaining(`zae-limiter: Client 0.1.0 cannot use schema ${schema}. `),
        ]);
        expect(err).toContain(reason);
        expect(err).toContain(PYTHON);
        expect(err).toContain("Nothing was changed");
        expect(err).not.toContain("install a newer");
        expect(writes()).toEqual([]);
      },
    );

    test.each(["version", "check"])("%s says which Python release upgrades it", async (command) => {
      const { code, out } = await run(command);
      expect([code, out]).toEqual([1, expect.stringContaining("✗ Incompatible: ")]);
      expect(out).toContain(reason);
      expect(out).toContain(PYTHON);
      const { out: json } = await run(command, "--json");
      expect(JSON.parse(json)).toMatchObject({
        status: "incompatible",
        schema_version: schema,
        message: expect.stringContaining(PYTHON) as string,
      });
    });

    test("status says the same, and does not call the stack ready", async () => {
      const { code, out } = await run("status");
      expect([code, out]).toEqual([1, expect.stringContaining(PYTHON)]);
      expect(out).toMatch(new RegExp(`Schema +${schema}\\n`));
      expect(out).not.toContain("Ready");
      expect(out).not.toContain("stack upgrade");
    });
  });
});

test("a client that may only read the registry sees its record", async () => {
  deployed({ schema_version: "0.11.0" });
  aws.answers.BatchGetItem = {
    status: 400,
    body: JSON.stringify({ __type: "AccessDeniedException", message: "not authorized" }),
  };
  expect(await run("check")).toMatchObject({ code: 0, out: "✓ Compatible\n" });
});

test.each([
  ["is ours", "AWS::SQS::Queue", true],
  ["is an application with our table in it", "AWS::EC2::VPC", false],
])("upgrade looks after the tags of a stack that %s", async (_, Type, expected) => {
  deployed({ schema_version: "0.11.0" });
  const Properties = {
    KeySchema: [{ AttributeName: "PK" }, { AttributeName: "SK" }],
    GlobalSecondaryIndexes: [{ IndexName: "GSI1" }, { IndexName: "GSI2" }],
  };
  const Resources = { T: { Type: "AWS::DynamoDB::Table", Properties }, Other: { Type } };
  aws.answers.DescribeStacks = describeStacks({ name: "demo", status: "CREATE_COMPLETE" });
  aws.answers.GetTemplate = {
    body:
      `<GetTemplateResponse><GetTemplateResult><TemplateBody>${JSON.stringify({ Resources })}` +
      "</TemplateBody></GetTemplateResult></GetTemplateResponse>",
  };
  const { out } = await run("upgrade", "--dry-run", "--force");
  expect(/tags of the stack/.test(out)).toBe(expected);
});
