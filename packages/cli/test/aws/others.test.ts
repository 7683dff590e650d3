/** Stacks of the Python library, of a newer client and of other software. On moto. */

import { connectAws } from "@zae-limiter/aws/client/aws.ts";
import { LAMBDA_VERSION_TAG } from "@zae-limiter/aws/stack/stack-tags.ts";
import { DynamoItemStore } from "@zae-limiter/limiter/storage/dynamodb/item-store.ts";
import { version } from "@zae-limiter/test-support/old-tables.ts";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { describeAws } from "./aws.ts";
import { Command } from "./command.ts";

const REGION = "ap-south-1";
const INDEXES = ["GSI1", "GSI2", "GSI3", "GSI4"];

interface Lambda {
  readonly Configuration: {
    readonly Runtime: string;
    readonly CodeSha256: string;
    readonly FunctionArn: string;
  };
  readonly Tags: Readonly<Record<string, string>>;
}

const named = (names: readonly string[]) =>
  names.map((AttributeName) => ({ AttributeName, AttributeType: "S" }));
const keys = (prefix: string) => [
  { AttributeName: `${prefix}PK`, KeyType: "HASH" },
  { AttributeName: `${prefix}SK`, KeyType: "RANGE" },
];

/** As the Python library deploys it: its table, and its Lambda. */
const PYTHON_STACK = JSON.stringify({
  Parameters: {
    SchemaVersion: { Type: "String", Default: "0.10.0" },
    EnableAggregator: { Type: "String", Default: "true" },
  },
  Resources: {
    RateLimitsTable: {
      Type: "AWS::DynamoDB::Table",
      Properties: {
        TableName: { Ref: "AWS::StackName" },
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: named(["", ...INDEXES].flatMap((name) => [`${name}PK`, `${name}SK`])),
        KeySchema: keys(""),
        StreamSpecification: { StreamViewType: "NEW_AND_OLD_IMAGES" },
        GlobalSecondaryIndexes: INDEXES.map((IndexName) => ({
          IndexName,
          KeySchema: keys(IndexName),
          Projection: { ProjectionType: "ALL" },
        })),
      },
    },
    AggregatorRole: {
      Type: "AWS::IAM::Role",
      Properties: {
        RoleName: { "Fn::Sub": `\${AWS::StackName}-aggr` },
        AssumeRolePolicyDocument: {
          Version: "2012-10-17",
          Statement: [
            {
              Effect: "Allow",
              Principal: { Service: "lambda.amazonaws.com" },
              Action: "sts:AssumeRole",
            },
          ],
        },
      },
    },
    AggregatorFunction: {
      Type: "AWS::Lambda::Function",
      Properties: {
        FunctionName: { "Fn::Sub": `\${AWS::StackName}-aggregator` },
        Runtime: "python3.12",
        Handler: "zae_limiter_aggregator.handler.handler",
        Role: { "Fn::GetAtt": ["AggregatorRole", "Arn"] },
        Code: { ZipFile: "def handler(event, context):\n  pass\n" },
      },
    },
  },
});

/** Python programs are slow on a busy machine. */
vi.setConfig({ testTimeout: 180_000 });

await describeAws("what others have deployed", (moto) => {
  let command: Command;
  const aws = connectAws({ endpoint: moto.endpoint, region: REGION });
  beforeAll(() => {
    command = new Command(moto, REGION);
  });
  afterAll(() => {
    aws.close();
    command.remove();
  });

  const create = (StackName: string, TemplateBody: string) =>
    command.query("cloudformation", { Action: "CreateStack", StackName, TemplateBody });

  const runs = async (name: string) => {
    const { Configuration, Tags } = await command.lambda<Lambda>(name);
    const { Runtime, CodeSha256 } = Configuration;
    return { runtime: Runtime, sha256: CodeSha256, version: Tags[LAMBDA_VERSION_TAG] };
  };

  const tag = async (name: string, value: string) => {
    const { Configuration } = await command.lambda<Lambda>(name);
    const Tags = { [LAMBDA_VERSION_TAG]: value };
    await aws.send("lambda:TagResource", { Resource: Configuration.FunctionArn, Tags });
  };

  test("the Python library's Lambda is left alone by upgrade, and replaced by deploy", async () => {
    await create("python", PYTHON_STACK);
    const place = { table: "python", endpoint: moto.endpoint, region: REGION, timeoutMs: 20_000 };
    const store = new DynamoItemStore(place);
    await store.writeMany({ puts: [version("0.10.0", "_/SYSTEM#")] });
    await store.close();
    // Its versions are higher than ours, and mean something else.
    await tag("python-aggregator", "0.10.0");
    const before = await runs("python-aggregator");
    const refused = await command.tries("upgrade", "-n", "python", "--yes", "--force");
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringMatching(
        /that of the Python library \(python3\.12.*zae-limiter stack deploy --name/,
      ),
    ]);
    expect(await runs("python-aggregator")).toEqual(before);

    await command.on("deploy", "-n", "python", "--yes", "--no-alarms");
    const after = await runs("python-aggregator");
    expect(after.version).toBe("0.1.0");
    expect(after.sha256).not.toBe(before.sha256);
    expect(await command.on("upgrade", "-n", "python", "--yes")).toMatch(/is upgraded|up to date/);
  });

  test("newer code stays, and the record goes on naming it", async () => {
    const place = ["-n", "newer", "--yes"];
    await command.on("deploy", ...place, "--no-alarms");
    const FunctionName = "newer-aggregator";
    const ZipFile = Buffer.from("UEsFBgAAAAAAAAAAAAAAAAAAAAAAAA==", "base64");
    await aws.send("lambda:UpdateFunctionCode", { FunctionName, ZipFile });
    await tag(FunctionName, "2.0.0");
    const before = await runs(FunctionName);

    const upgraded = await command.tries("upgrade", ...place);
    expect(upgraded.code).toBe(0);
    expect(upgraded.err).toMatch(/code of the aggregator is that of version 2\.0\.0 and stays/);
    // A change of the Lambda itself would make moto, and only moto, restore the substitute.
    const deployed = await command.tries("deploy", ...place, "-t", "team=search");
    expect(deployed.code).toBe(0);
    expect(deployed.err).toMatch(/code of the aggregator is that of version 2\.0\.0 and stays/);
    expect(deployed.out).toMatch(/as it was: version 2\.0\.0, which is newer than this client/);
    expect(await runs(FunctionName)).toEqual(before);
    const named = await command.json<Record<string, string>>("version", "-n", "newer");
    expect(named.lambda_version).toBe("2.0.0");
    // The stack hands this tag on to its Lambdas.
    const { Stacks } = await aws.send("cloudformation:DescribeStacks", { StackName: "newer" });
    const tags = Stacks?.[0]?.Tags ?? [];
    expect(tags.find(({ Key }) => Key === LAMBDA_VERSION_TAG)?.Value).toBe("2.0.0");

    // --force installs the code of this client.
    await command.on("upgrade", ...place, "--force");
    expect(await runs(FunctionName)).toMatchObject({ version: "0.1.0" });
    const ours = await command.json<Record<string, string>>("version", "-n", "newer");
    expect(ours.lambda_version).toBe("0.1.0");
    await command.on("delete", ...place, "--with-data");
  });

  test("a stack of other software is neither changed nor deleted", async () => {
    const Site = { Type: "AWS::SQS::Queue", Properties: { QueueName: "website-queue" } };
    await create("website", JSON.stringify({ Resources: { Site } }));
    for (const args of [["deploy"], ["delete"], ["delete", "--with-data"]]) {
      const { code, err } = await command.tries(...args, "-n", "website", "--yes");
      expect([code, err]).toEqual([1, expect.stringMatching(/not one of ours.*another name\n$/)]);
    }
    const { Stacks } = await aws.send("cloudformation:DescribeStacks", { StackName: "website" });
    expect(Stacks?.[0]?.StackStatus).toBe("CREATE_COMPLETE");
  });
});
