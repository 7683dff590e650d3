/** Tables that are there before the deployment: kept ones, and those of the Python library. */

import { executePlan, preparePlan } from "@zae-limiter/aws/deploy/change-set-plan.ts";
import type { DeployContext } from "@zae-limiter/aws/deploy/deploy-context.ts";
import type { StackOptions } from "@zae-limiter/aws/options/stack-options.ts";
import { printTemplate, stackTemplate } from "@zae-limiter/aws/template/template.ts";
import { INDEXES } from "@zae-limiter/limiter/storage/table.ts";
import { FakeAws } from "@zae-limiter/test-support/aws/fake-aws.ts";
import { instantTimer } from "@zae-limiter/test-support/aws/instant-timer.ts";
import { describe, expect, test } from "vitest";

/** Without Lambdas, whose code a checkout may not have built. */
const PLAIN: StackOptions = { enableAggregator: false, enableProvisioner: false };
const PARAMETERS = { EnableAggregator: "false", EnableProvisioner: "false" };

function contextOf(aws: FakeAws): DeployContext {
  return { aws, timer: instantTimer(), clock: () => 1_800_000_000_000, random: () => 0.5 };
}

/** The template of the last change set. */
function sentTemplate(aws: FakeAws) {
  const sent = aws.sent("cloudformation:CreateChangeSet").at(-1);
  return JSON.parse(String(sent?.TemplateBody));
}

function sentParameters(aws: FakeAws): Record<string, string | undefined> {
  const sent = aws.sent("cloudformation:CreateChangeSet").at(-1);
  const parameters = (sent?.Parameters ?? []) as {
    ParameterKey: string;
    ParameterValue?: string;
  }[];
  return Object.fromEntries(parameters.map((one) => [one.ParameterKey, one.ParameterValue]));
}

/** As DynamoDB describes it. */
function live(changes: object = {}, indexes = INDEXES.map(({ name }) => name as string)) {
  return {
    Table: {
      KeySchema: [
        { AttributeName: "PK", KeyType: "HASH" as const },
        { AttributeName: "SK", KeyType: "RANGE" as const },
      ],
      GlobalSecondaryIndexes: indexes.map((IndexName) => ({
        IndexName,
        Projection: { ProjectionType: "KEYS_ONLY" as const },
      })),
      StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" as const },
      ...changes,
    },
  };
}

describe("a table without a stack", () => {
  test("a table without a stack becomes part of the new one, and is kept whatever comes of that", async () => {
    const aws = new FakeAws();
    aws.answers["dynamodb:DescribeTable"] = () => live();
    const { plan } = await preparePlan(contextOf(aws), "demo", PLAIN, false);
    expect(plan.adoptsTable).toBe(true);
    const [sent] = aws.sent("cloudformation:CreateChangeSet");
    expect(sent?.ImportExistingResources).toBe(true);
    // `RetainExceptOnCreate` might take it along when the creation fails.
    expect(sentTemplate(aws).Resources.LimiterTable.DeletionPolicy).toBe("Retain");
    expect(sentTemplate(aws).Resources.AuditArchiveBucket.DeletionPolicy).toBe(
      "RetainExceptOnCreate",
    );
  });

  test("a table without a stack stays so in later deployments: there is nothing to change about it", async () => {
    const aws = new FakeAws();
    aws.add({ name: "demo", status: "CREATE_COMPLETE", parameters: PARAMETERS });
    aws.template = JSON.stringify(stackTemplate({ isKept: true }));
    await preparePlan(contextOf(aws), "demo", {}, false);
    expect(sentTemplate(aws)).toEqual(JSON.parse(aws.template));
  });

  test("a table without a stack decides what GSI2 copies", async () => {
    const aws = new FakeAws();
    const described = live();
    const [, gsi2] = described.Table.GlobalSecondaryIndexes;
    Object.assign(gsi2 as object, { Projection: { ProjectionType: "ALL" } });
    aws.answers["dynamodb:DescribeTable"] = () => described;
    await preparePlan(contextOf(aws), "demo", PLAIN, false);
    expect(sentParameters(aws).GSI2Projection).toBe("ALL");
    const other = preparePlan(
      contextOf(aws),
      "demo",
      { ...PLAIN, gsi2Projection: "KEYS_ONLY" },
      false,
    );
    await expect(other).rejects.toThrow(/the table has ALL.*another name/);
  });

  test.each<[string, object, RegExp]>([
    ["other keys", { KeySchema: [{ AttributeName: "id" }] }, /keyed by id .* not one of ours/],
    ["no GSI4", live({}, ["GSI1", "GSI2", "GSI3"]).Table, /lacks the index GSI4; add it first/],
    ["no stream", { StreamSpecification: undefined }, /a stream of nothing instead of NEW_AND_OLD/],
  ])(
    "a table without a stack that is none of ours is refused: %s",
    async (_, changes, expected) => {
      const aws = new FakeAws();
      aws.answers["dynamodb:DescribeTable"] = () => live(changes);
      await expect(preparePlan(contextOf(aws), "demo", PLAIN, false)).rejects.toThrow(expected);
      expect(aws.writes).toEqual([]);
    },
  );
});

describe("a table of the Python library", () => {
  const THEIRS = (...indexes: string[]) =>
    [
      "Parameters: {EnableAggregator: {Type: String}}",
      "Conditions: {Protect: !Equals [!Ref EnableAggregator, 'true']}",
      "Resources:",
      "  TheirTable:",
      "    Type: AWS::DynamoDB::Table",
      "    Properties:",
      "      TableName: !Ref AWS::StackName",
      "      AttributeDefinitions: [{AttributeName: PK, AttributeType: S}]",
      "      KeySchema: [{AttributeName: PK, KeyType: HASH}, {AttributeName: SK, KeyType: RANGE}]",
      "      GlobalSecondaryIndexes:",
      ...indexes.map((n) => `        - {IndexName: ${n}, Projection: {ProjectionType: ALL}}`),
      "      LocalSecondaryIndexes: [{IndexName: LSI1}]",
      "      DeletionProtectionEnabled: !If [Protect, true, false]",
      "Outputs:",
      "  Arn: {Value: !GetAtt TheirTable.Arn}",
      `  Name: {Value: !Sub '\${TheirTable}-x'}`,
    ].join("\n");

  function theirs(...indexes: string[]): FakeAws {
    const aws = new FakeAws();
    const tags = { team: "search" };
    aws.add({ name: "demo", status: "CREATE_COMPLETE", parameters: PARAMETERS, tags });
    aws.template = THEIRS(...indexes);
    aws.answers["dynamodb:DescribeTable"] = () => live({}, indexes);
    return aws;
  }

  test("a table of the Python library keeps its logical id and its indexes", async () => {
    const aws = theirs("GSI1", "GSI2", "GSI3", "GSI4");
    const { plan } = await preparePlan(contextOf(aws), "demo", {}, false);
    expect(plan.addsIndex).toBeUndefined();
    const template = sentTemplate(aws);
    expect(template.Resources.LimiterTable).toBeUndefined();
    expect(template.Resources.TheirTable.Properties).toMatchObject({
      AttributeDefinitions: [{ AttributeName: "PK", AttributeType: "S" }],
      LocalSecondaryIndexes: [{ IndexName: "LSI1" }],
      DeletionProtectionEnabled: { "Fn::If": ["ProtectTable", true, false] },
    });
    expect(template.Resources.TheirTable.Properties.GlobalSecondaryIndexes).toHaveLength(4);
    expect(JSON.stringify(template)).not.toContain("LimiterTable");
  });

  test("a change of the projection of GSI2 is refused before anything is sent", async () => {
    const aws = theirs("GSI1", "GSI2", "GSI3", "GSI4");
    const change = preparePlan(contextOf(aws), "demo", { gsi2Projection: "KEYS_ONLY" }, false);
    await expect(change).rejects.toThrow(/the table has ALL.*another name/);
    expect(aws.writes).toEqual([]);
  });

  test("properties of named resources that AWS cannot change stay as they are deployed", async () => {
    const aws = theirs("GSI1", "GSI2", "GSI3", "GSI4");
    const [head = "", outputs = ""] = aws.template.split("Outputs:");
    aws.template = [
      head.trimEnd(),
      "  AcquireOnlyPolicy:",
      "    Type: AWS::IAM::ManagedPolicy",
      `    Properties: {Description: !Sub 'For \${AWS::StackName}', ManagedPolicyName: x}`,
      "  FullAccessPolicy: {Type: AWS::IAM::ManagedPolicy, Properties: {ManagedPolicyName: y}}",
      "  ReadOnlyPolicy:",
      "    Type: AWS::IAM::ManagedPolicy",
      "    Properties: {Description: !Ref EnableAggregator}",
      "  AggregatorEventSourceMapping:",
      "    Type: AWS::Lambda::EventSourceMapping",
      "    Properties: {StartingPosition: LATEST, BatchSize: 7}",
      `Outputs:${outputs}`,
    ].join("\n");
    await preparePlan(contextOf(aws), "demo", {}, false);
    const { Resources } = sentTemplate(aws);
    // A new description would be a new policy, whose name is taken.
    expect(Resources.AcquireOnlyPolicy.Properties).toMatchObject({
      Description: { "Fn::Sub": `For \${AWS::StackName}` },
      ManagedPolicyName: { "Fn::If": expect.anything() },
    });
    expect(Resources.FullAccessPolicy.Properties).not.toHaveProperty("Description");
    // What belongs to another template cannot be taken over; that of ours is as good as any.
    expect(Resources.ReadOnlyPolicy.Properties.Description).toEqual(
      JSON.parse(JSON.stringify(stackTemplate().Resources.ReadOnlyPolicy?.Properties.Description)),
    );
    expect(Resources.AggregatorEventSourceMapping.Properties).toMatchObject({
      StartingPosition: "LATEST",
      BatchSize: 100,
    });
  });

  test("a table of the Python library without GSI4 gets it, and nothing else changes", async () => {
    const aws = theirs("GSI1", "GSI2", "GSI3");
    // CloudFormation is not sure whether new attributes mean a new table; they do not.
    const target = { Name: "AttributeDefinitions", RequiresRecreation: "Conditionally" };
    const index = { Name: "GlobalSecondaryIndexes", RequiresRecreation: "Never" };
    const change = {
      Action: "Modify",
      LogicalResourceId: "TheirTable",
      ResourceType: "AWS::DynamoDB::Table",
      Replacement: "Conditional",
      Details: [{ Target: target }, { Target: index }],
    };
    aws.changes = [change];
    const context = contextOf(aws);
    const prepared = await preparePlan(context, "demo", { lambdaMemory: 512 }, false);
    expect(prepared.plan).toMatchObject({
      kind: "update",
      addsIndex: "GSI4",
      settings: [],
      tags: [],
      code: [],
    });
    const { Resources, Conditions, Outputs } = sentTemplate(aws);
    expect(Object.keys(Resources)).toEqual(["TheirTable"]);
    expect(Resources.TheirTable.Properties.AttributeDefinitions).toEqual([
      { AttributeName: "PK", AttributeType: "S" },
      { AttributeName: "GSI4PK", AttributeType: "S" },
      { AttributeName: "GSI4SK", AttributeType: "S" },
    ]);
    expect(Resources.TheirTable.Properties.GlobalSecondaryIndexes.at(-1)).toEqual({
      IndexName: "GSI4",
      KeySchema: [
        { AttributeName: "GSI4PK", KeyType: "HASH" },
        { AttributeName: "GSI4SK", KeyType: "RANGE" },
      ],
      Projection: { ProjectionType: "KEYS_ONLY" },
    });
    expect(Resources.TheirTable.Properties.TableName).toEqual({ Ref: "AWS::StackName" });
    expect(Conditions.Protect).toEqual({ "Fn::Equals": [{ Ref: "EnableAggregator" }, "true"] });
    expect(Outputs.Arn.Value).toEqual({ "Fn::GetAtt": ["TheirTable", "Arn"] });
    const [sent] = aws.sent("cloudformation:CreateChangeSet");
    expect(sent?.Parameters).toEqual(
      Object.keys(PARAMETERS).map((name) => ({ ParameterKey: name, UsePreviousValue: true })),
    );
    const stack = await executePlan(context, prepared);
    expect(stack.tags).toEqual({ team: "search" });

    // The same doubt about anything else, or a certainty, is refused as ever.
    for (const worse of [
      { ...change, Replacement: "True" },
      { ...change, Details: [{ Target: { ...target, Name: "KeySchema" } }, { Target: target }] },
      { ...change, Action: "Remove" },
    ]) {
      aws.changes = [worse];
      const refused = preparePlan(context, "demo", {}, false);
      await expect(refused).rejects.toThrow(/would replace the table/);
    }
  });

  test("tags of AWS itself are not sent back", async () => {
    const aws = theirs("GSI1", "GSI2", "GSI3");
    const [stack] = aws.stacks;
    if (stack !== undefined) stack.tags["aws:servicecatalog:product"] = "x";
    const { plan } = await preparePlan(contextOf(aws), "demo", {}, false);
    const [sent] = aws.sent("cloudformation:CreateChangeSet");
    expect(sent?.Tags).toEqual([{ Key: "team", Value: "search" }]);
    expect(plan.tags).toEqual([]);
  });

  test("one index is added at a time, because CloudFormation takes no more", async () => {
    const aws = theirs("GSI1", "GSI2");
    const { plan } = await preparePlan(contextOf(aws), "demo", {}, false);
    expect(plan.addsIndex).toBe("GSI3");
    expect(sentTemplate(aws).Resources.TheirTable.Properties.GlobalSecondaryIndexes).toHaveLength(
      3,
    );
  });

  test("an index that was added by hand is not added again", async () => {
    const aws = theirs("GSI1", "GSI2", "GSI3");
    aws.answers["dynamodb:DescribeTable"] = () => live();
    const { plan } = await preparePlan(contextOf(aws), "demo", {}, false);
    expect(plan.addsIndex).toBeUndefined();
    expect(sentTemplate(aws).Resources.TheirTable.Properties.GlobalSecondaryIndexes).toHaveLength(
      3,
    );
  });

  test("an index is left to the owner of a template with functions that we do not know", async () => {
    const aws = theirs("GSI1", "GSI2", "GSI3");
    aws.template = aws.template.replace("!GetAtt TheirTable.Arn", "!Unheard of");
    await expect(preparePlan(contextOf(aws), "demo", {}, false)).rejects.toThrow(
      /lacks the index GSI4.*Add the index \(GSI4PK, GSI4SK, KEYS_ONLY\) in your template/,
    );
    expect(aws.writes).toEqual([]);
  });
});

describe("our own template", () => {
  test("our own template, printed as YAML, is recognised as ours", async () => {
    const aws = new FakeAws();
    aws.add({ name: "demo", status: "CREATE_COMPLETE", parameters: PARAMETERS });
    aws.template = printTemplate(stackTemplate(), "yaml");
    await preparePlan(contextOf(aws), "demo", {}, false);
    expect(sentTemplate(aws)).toEqual(JSON.parse(JSON.stringify(stackTemplate())));
  });

  test("--reset keeps the projection of GSI2, unless it is given", async () => {
    const aws = new FakeAws();
    const parameters = { ...PARAMETERS, GSI2Projection: "ALL", LambdaMemorySize: "512" };
    aws.add({ name: "demo", status: "CREATE_COMPLETE", parameters });
    const { plan } = await preparePlan(contextOf(aws), "demo", PLAIN, true);
    expect(sentParameters(aws)).toMatchObject({ GSI2Projection: "ALL", LambdaMemorySize: "256" });
    expect(plan.settings.map(({ name }) => name)).toEqual(["LambdaMemorySize"]);
    const options = { ...PLAIN, gsi2Projection: "KEYS_ONLY" } as const;
    const change = preparePlan(contextOf(aws), "demo", options, true);
    await expect(change).rejects.toThrow(/the table has ALL/);
  });

  test("what GSI2 copies cannot be changed", async () => {
    const aws = new FakeAws();
    const parameters = { ...PARAMETERS, GSI2Projection: "KEYS_ONLY" };
    aws.add({ name: "demo", status: "CREATE_COMPLETE", parameters });
    const change = preparePlan(contextOf(aws), "demo", { gsi2Projection: "ALL" }, false);
    await expect(change).rejects.toThrow(/the table has KEYS_ONLY.*another name/);
    expect(aws.writes).toEqual([]);
  });
});
