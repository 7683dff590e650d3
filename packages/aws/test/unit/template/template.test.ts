import { createHandler } from "@zae-limiter/aws/aggregator/lambda.ts";
import { jsonLog } from "@zae-limiter/aws/aggregator/log.ts";
import { functionNameOf } from "@zae-limiter/aws/lambda/function-names.ts";
import { STACK_DEFAULTS } from "@zae-limiter/aws/options/stack-option-table.ts";
import type { StackOptions } from "@zae-limiter/aws/options/stack-options.ts";
import {
  deployedOptions,
  givenParameters,
  stackParameters,
} from "@zae-limiter/aws/options/stack-parameters.ts";
import { AUDIT_FILTER, BUCKET_FILTER } from "@zae-limiter/aws/template/aggregator.ts";
import type { CfnResource } from "@zae-limiter/aws/template/cfn.ts";
import { PARAMETERS } from "@zae-limiter/aws/template/parameters.ts";
import { resolveTemplate } from "@zae-limiter/aws/template/resolve.ts";
import {
  compactTemplate,
  printTemplate,
  stackTemplate,
} from "@zae-limiter/aws/template/template.ts";
import {
  auditKey,
  bucketKey,
  entityKey,
  systemConfigKey,
} from "@zae-limiter/limiter/records/keys.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { INDEXES } from "@zae-limiter/limiter/storage/table.ts";
import { matchesFilter } from "@zae-limiter/test-support/aws/event-filter.ts";
import { describe, expect, test } from "vitest";

const INLINE_BYTES_MAX = 51_200;

function resourcesWith(options: StackOptions = {}): Readonly<Record<string, CfnResource>> {
  return resolveTemplate(stackTemplate(), stackParameters(options, "my-app")).Resources;
}

test("every function and its log group have a name that AWS allows, whatever the stack's name", () => {
  for (const length of [3, 45, 46, 53, 54, 55]) {
    const stackName = "a".repeat(length);
    const parameters = { ...stackParameters({}, stackName), "AWS::StackName": stackName };
    const { Resources } = resolveTemplate(stackTemplate(), parameters);
    for (const [lambda, id] of [
      ["aggregator", "Aggregator"],
      ["provisioner", "Provisioner"],
    ] as const) {
      const name = functionNameOf(stackName, lambda);
      expect(name.length).toBeLessThanOrEqual(64);
      expect(Resources[`${id}Function`]?.Properties.FunctionName).toEqual(name);
      expect(Resources[`${id}LogGroup`]?.Properties.LogGroupName).toEqual(`/aws/lambda/${name}`);
    }
  }
});

function ofType(resources: Readonly<Record<string, CfnResource>>, type: string): string[] {
  return Object.keys(resources).filter((id) => resources[id]?.Type === type);
}

describe("parameters", () => {
  test("no options are the schema version alone; three options are four parameters (op 51)", () => {
    expect(givenParameters({}, "my-app")).toEqual({ SchemaVersion: "0.11.0" });
    const three = { snapshotWindows: "daily", usageRetentionDays: 7, enableAggregator: false };
    expect(givenParameters(three, "my-app")).toEqual({
      SchemaVersion: "0.11.0",
      SnapshotWindows: "daily",
      SnapshotRetentionDays: "7",
      EnableAggregator: "false",
    });
  });

  test("the days of point-in-time recovery are text (op 52)", () => {
    for (const pitrRecoveryDays of [1, 35]) {
      expect(givenParameters({ pitrRecoveryDays }, "my-app").PITRRecoveryPeriodDays).toBe(
        String(pitrRecoveryDays),
      );
    }
  });

  test("80 % of 120 seconds are 96000 milliseconds, and follow either option (op 2)", () => {
    const both = { lambdaTimeout: 120, lambdaDurationThresholdPct: 80 };
    expect(givenParameters(both, "my-app").LambdaDurationThreshold).toBe("96000");
    expect(givenParameters({ lambdaTimeout: 120 }, "my-app").LambdaDurationThreshold).toBe("96000");
  });

  test("the template knows every parameter that is sent, and its defaults are those of the options", () => {
    const everything: StackOptions = {
      ...STACK_DEFAULTS,
      pitrRecoveryDays: 7,
      kmsKeyArn: "arn:aws:kms:us-east-1:123456789012:key/x",
      alarmEmail: "ops@example.com",
      permissionBoundary: "x",
      roleNameFormat: "r-{}",
      policyNameFormat: "p-{}",
      aggregatorRoleArn: "arn:aws:iam::123456789012:role/x",
    };
    const sent = Object.keys(givenParameters(everything, "my-app"));
    expect(sent.filter((name) => !Object.hasOwn(PARAMETERS, name))).toEqual([]);
    const defaults = Object.entries(stackParameters({}, "my-app"));
    const ours = defaults.map(([name]) => [name, String(PARAMETERS[name]?.Default)]);
    expect(Object.fromEntries(ours)).toEqual(Object.fromEntries(defaults));
  });

  test("what was deployed is read back as it was given", () => {
    const options: StackOptions = {
      lambdaTimeout: 120,
      lambdaDurationThresholdPct: 33,
      enableTracing: true,
      pitrRecoveryDays: 3,
      roleNameFormat: "pb-{}",
      snapshotWindows: "monthly",
    };
    const { tags: _, ...all } = { ...STACK_DEFAULTS, ...options } as StackOptions;
    expect(deployedOptions(stackParameters(options, "my-app"))).toEqual(all);
    expect(deployedOptions({ LambdaTimeout: "60", PermissionBoundary: "" })).toEqual({
      lambdaTimeout: 60,
    });
  });
});

describe("the template", () => {
  test("the template is short enough to be sent, also by hand", () => {
    expect(Buffer.byteLength(compactTemplate(stackTemplate()))).toBeLessThan(INLINE_BYTES_MAX);
    expect(Buffer.byteLength(printTemplate(stackTemplate(), "yaml"))).toBeLessThan(
      INLINE_BYTES_MAX,
    );
  });

  test.each<StackOptions>([
    {},
    { createIamRoles: true },
    { createIam: false },
    { createIam: false, aggregatorRoleArn: "arn:aws:iam::123456789012:role/x" },
    { enableAggregator: false, enableAlarms: false },
    { enableAuditArchival: false, alarmSnsTopic: "arn:aws:sns:us-east-1:123456789012:mine" },
    { roleNameFormat: "r-{}" },
    { policyNameFormat: "p-{}" },
    { permissionBoundary: "PowerUser" },
  ])(
    "the template exports nothing that is empty, which CloudFormation would refuse: %o",
    (options) => {
      const parameters = { ...stackParameters(options, "my-app"), "AWS::StackName": "my-app" };
      const outputs = Object.entries(resolveTemplate(stackTemplate(), parameters).Outputs);
      expect(outputs.length).toBeGreaterThan(3);
      const isEmpty = (value: unknown) => value === undefined || String(value).trim() === "";
      expect(outputs.filter(([, { Value }]) => isEmpty(Value))).toEqual([]);
      const names = outputs.map(([name]) => name);
      expect(names.includes("RoleNameFormat")).toBe(options.roleNameFormat !== undefined);
      expect(names.includes("PolicyNameFormat")).toBe(options.policyNameFormat !== undefined);
      expect(names.includes("PermissionBoundaryArn")).toBe(
        options.permissionBoundary !== undefined,
      );
    },
  );

  test("the template mentions only what it has", () => {
    const { Parameters, Conditions, Resources, Outputs } = stackTemplate();
    const known = new Set([...Object.keys(Parameters), ...Object.keys(Resources)]);
    const text = JSON.stringify({ Conditions, Resources, Outputs });
    const refs = [
      ...text.matchAll(/"Ref":"([^"]+)"/g),
      ...text.matchAll(/"Fn::GetAtt":\["(\w+)"/g),
    ];
    const subs = [...text.matchAll(/\$\{([A-Z]\w+)[.}]/g)];
    const names = [...refs, ...subs].map(([, name = ""]) => name);
    const unknown = names.filter((name) => !name.startsWith("AWS::") && name !== "AWS");
    expect(unknown.filter((name) => !known.has(name))).toEqual([]);
    expect(names.length).toBeGreaterThan(100);
  });

  test("the table is that of every store: KEYS_ONLY but for GSI1, no local indexes", () => {
    const table = resourcesWith().LimiterTable;
    const indexes = table?.Properties.GlobalSecondaryIndexes as unknown as {
      IndexName: string;
      Projection: { ProjectionType: string };
    }[];
    expect(
      indexes.map(({ IndexName, Projection }) => [IndexName, Projection.ProjectionType]),
    ).toEqual(INDEXES.map(({ name, projection }) => [name, projection]));
    expect(table?.Properties).not.toHaveProperty("LocalSecondaryIndexes");
    expect(table?.Properties).not.toHaveProperty("SSESpecification");
    const all = resourcesWith({ gsi2Projection: "ALL" }).LimiterTable;
    expect(JSON.stringify(all?.Properties.GlobalSecondaryIndexes)).toContain(
      '"IndexName":"GSI2","KeySchema":[{"AttributeName":"GSI2PK","KeyType":"HASH"},' +
        '{"AttributeName":"GSI2SK","KeyType":"RANGE"}],"Projection":{"ProjectionType":"ALL"}',
    );
  });

  test("data outlives the stack, unless the stack never came to be", () => {
    const { LimiterTable, AuditArchiveBucket } = resourcesWith();
    for (const resource of [LimiterTable, AuditArchiveBucket]) {
      expect(resource?.DeletionPolicy).toBe("RetainExceptOnCreate");
      expect(resource?.UpdateReplacePolicy).toBe("Retain");
    }
  });

  test("the archive keeps versions, and locks them where that was asked for", () => {
    const { AuditArchiveBucket: plain } = resourcesWith();
    expect(plain?.Properties.VersioningConfiguration).toEqual({ Status: "Enabled" });
    expect(plain?.Properties).not.toHaveProperty("ObjectLockConfiguration");
    const { AuditArchiveBucket: locked } = resourcesWith({ auditArchiveLockDays: 365 });
    expect(locked?.Properties).toMatchObject({
      ObjectLockEnabled: true,
      ObjectLockConfiguration: {
        ObjectLockEnabled: "Enabled",
        Rule: { DefaultRetention: { Mode: "GOVERNANCE" } },
      },
    });
  });

  test("a key of the user encrypts the table and the archive, and all roles may use it", () => {
    const kmsKeyArn = "arn:aws:kms:us-east-1:123456789012:key/x";
    const resources = resourcesWith({ kmsKeyArn, createIamRoles: true });
    expect(resources.LimiterTable?.Properties.SSESpecification).toMatchObject({
      KMSMasterKeyId: kmsKeyArn,
    });
    expect(JSON.stringify(resources.AuditArchiveBucket)).toContain('"SSEAlgorithm":"aws:kms"');
    const users = [
      ...ofType(resources, "AWS::IAM::ManagedPolicy"),
      "AggregatorRole",
      "ProvisionerRole",
    ];
    const without = (action: string) =>
      users.filter((id) => !JSON.stringify(resources[id]).includes(action));
    expect(without("kms:Decrypt")).toEqual([]);
    expect(without("kms:Encrypt")).toEqual(["ReadOnlyPolicy", "NamespaceReadOnlyPolicy"]);
    expect(JSON.stringify(resourcesWith())).not.toContain("kms");
  });

  test("the aggregator reads from the beginning, reports what failed, and runs on arm64", () => {
    const { AggregatorEventSourceMapping, AggregatorFunction } = resourcesWith();
    expect(AggregatorEventSourceMapping?.Properties).toMatchObject({
      StartingPosition: "TRIM_HORIZON",
      FunctionResponseTypes: ["ReportBatchItemFailures"],
      BisectBatchOnFunctionError: true,
      // Nothing is lost to an outage of hours; records that are given up go to the queue.
      MaximumRetryAttempts: -1,
      MaximumRecordAgeInSeconds: 79_200,
      DestinationConfig: { OnFailure: { Destination: { "Fn::GetAtt": ["AggregatorDLQ", "Arn"] } } },
    });
    expect(AggregatorFunction?.Properties).toMatchObject({
      Runtime: "nodejs22.x",
      Architectures: ["arm64"],
      Handler: "index.handler",
    });
  });

  test("every alarm is sent somewhere, that of the dead-letter queue, too", () => {
    for (const options of [{}, { alarmSnsTopic: "arn:aws:sns:us-east-1:123456789012:mine" }]) {
      const resources = resourcesWith(options);
      const alarms = ofType(resources, "AWS::CloudWatch::Alarm");
      expect(alarms).toContain("AggregatorDLQAlarm");
      expect(alarms).toContain("AggregatorSkippedAlarm");
      const topic = "alarmSnsTopic" in options ? options.alarmSnsTopic : { Ref: "AlarmTopic" };
      for (const id of alarms) expect(resources[id]?.Properties.AlarmActions).toEqual([topic]);
      expect(ofType(resources, "AWS::SNS::Topic")).toHaveLength("alarmSnsTopic" in options ? 0 : 1);
    }
    expect(ofType(resourcesWith({ enableAlarms: false }), "AWS::CloudWatch::Alarm")).toEqual([]);
  });

  test("a dashboard is there on demand, and shows what the alarms watch by the same names", () => {
    expect(ofType(resourcesWith(), "AWS::CloudWatch::Dashboard")).toEqual([]);
    const place = { "AWS::StackName": "my-app", "AWS::Region": "eu-west-1" };
    const parameters = { ...stackParameters({ enableDashboard: true }, "my-app"), ...place };
    const { Dashboard } = resolveTemplate(stackTemplate(), parameters).Resources;
    expect(Dashboard?.Properties.DashboardName).toBe("my-app");
    const { widgets } = JSON.parse(String(Dashboard?.Properties.DashboardBody)) as {
      widgets: { properties: { title: string; region: string; metrics: unknown[][] } }[];
    };
    expect(widgets.map(({ properties }) => properties.region)).toEqual(
      widgets.map(() => "eu-west-1"),
    );
    const metrics = widgets.flatMap(({ properties }) => properties.metrics);
    for (const shown of [
      ["AWS/DynamoDB", "WriteThrottleEvents", "TableName", "my-app"],
      ["AWS/Lambda", "IteratorAge", "FunctionName", functionNameOf("my-app", "aggregator")],
      ["zae-limiter", "skipped", "Table", "my-app"],
    ]) {
      expect(metrics).toContainEqual(shown);
    }
    const { AggregatorDLQ } = resolveTemplate(stackTemplate(), parameters).Resources;
    const queue = AggregatorDLQ?.Properties.QueueName;
    expect(metrics.filter(([from]) => from === "AWS/SQS")[0]?.[3]).toBe(queue);
  });

  test("the alarm for what was given up is about a metric that the aggregator writes", async () => {
    const lines: string[] = [];
    const clock = () => 0;
    const handler = createHandler({
      table: "my-app",
      store: new MemoryItemStore({ clock }),
      clock,
      log: jsonLog({ clock, write: (line) => lines.push(line) }),
    });
    await handler({ Records: [{ dynamodb: { SequenceNumber: "1" } }] });
    const last = JSON.parse(lines.at(-1) ?? "{}");
    const [written] = last._aws.CloudWatchMetrics;
    const { AggregatorSkippedAlarm } = resourcesWith();
    expect(AggregatorSkippedAlarm?.Properties).toMatchObject({
      Namespace: written.Namespace,
      MetricName: "skipped",
      Dimensions: [{ Name: written.Dimensions[0][0], Value: { Ref: "LimiterTable" } }],
    });
    expect(written.Metrics).toContainEqual({ Name: "skipped", Unit: "Count" });
    expect([last.skipped, last.Table]).toEqual([1, "my-app"]);
  });

  test.each<[string, StackOptions, { policies: number; roles: string[]; lambda: boolean }]>([
    ["default", {}, { policies: 6, roles: ["aggr", "prov"], lambda: true }],
    [
      "--create-iam-roles",
      { createIamRoles: true },
      { policies: 6, roles: ["admin", "aggr", "app", "prov", "read"], lambda: true },
    ],
    [
      "--aggregator-role-arn",
      { aggregatorRoleArn: "arn:aws:iam::123456789012:role/x" },
      { policies: 6, roles: ["prov"], lambda: true },
    ],
    ["--no-iam", { createIam: false }, { policies: 0, roles: [], lambda: false }],
    [
      "--no-iam --aggregator-role-arn",
      { createIam: false, aggregatorRoleArn: "arn:aws:iam::123456789012:role/x" },
      { policies: 0, roles: [], lambda: true },
    ],
  ])("the matrix of IAM holds: %s", (_, options, expected) => {
    const parameters = { ...stackParameters(options, "my-app"), "AWS::StackName": "my-app" };
    const { Resources } = resolveTemplate(stackTemplate(), parameters);
    const roles = ofType(Resources, "AWS::IAM::Role").map((id) =>
      String(Resources[id]?.Properties.RoleName).replace("my-app-", ""),
    );
    expect(ofType(Resources, "AWS::IAM::ManagedPolicy")).toHaveLength(expected.policies);
    expect(roles.sort()).toEqual(expected.roles);
    expect("AggregatorFunction" in Resources).toBe(expected.lambda);
    if (!expected.lambda) expect(Resources).not.toHaveProperty("AggregatorDLQ");
  });

  test("each role has the policy it is named after, and no other", () => {
    const resources = resourcesWith({ createIamRoles: true });
    const attached = ["AppRole", "AdminRole", "ReadOnlyRole"].map((id) => {
      const { ManagedPolicyArns, Policies } = resources[id]?.Properties ?? {};
      return [ManagedPolicyArns, Policies];
    });
    expect(attached).toEqual([
      [[{ Ref: "AcquireOnlyPolicy" }], undefined],
      [[{ Ref: "FullAccessPolicy" }], undefined],
      [[{ Ref: "ReadOnlyPolicy" }], undefined],
    ]);
  });

  test("names follow the formats, and roles carry the boundary (op 10)", () => {
    const resources = resourcesWith({
      roleNameFormat: "PowerUserPB-{}",
      policyNameFormat: "P-{}",
      permissionBoundary: "PowerUser",
    });
    expect(resources.AggregatorRole?.Properties).toMatchObject({
      RoleName: "PowerUserPB-my-app-aggr",
      PermissionsBoundary: {
        "Fn::Sub": `arn:\${AWS::Partition}:iam::\${AWS::AccountId}:policy/PowerUser`,
      },
    });
    expect(resources.NamespaceAcquirePolicy?.Properties.ManagedPolicyName).toBe("P-my-app-ns-acq");
    const arn = "arn:aws:iam::aws:policy/PowerUserAccess";
    const withArn = resourcesWith({ permissionBoundary: arn });
    expect(withArn.AggregatorRole?.Properties.PermissionsBoundary).toBe(arn);
  });
});

describe("the filters of the stream", () => {
  const record = (eventName: string, { PK, SK }: { PK: string; SK: string }) => ({
    eventName,
    dynamodb: { Keys: { PK: { S: PK }, SK: { S: SK } } },
  });

  test("the filters of the stream let through what is taken from buckets", () => {
    const key = bucketKey("aBcDeFgHiJk", "key-1", "openai/gpt-4", 0);
    expect(matchesFilter(BUCKET_FILTER, record("MODIFY", key))).toBe(true);
    expect(matchesFilter(BUCKET_FILTER, record("INSERT", key))).toBe(true);
    expect(matchesFilter(BUCKET_FILTER, record("REMOVE", key))).toBe(false);
  });

  test("the filters of the stream let through audit events that go, whatever their namespace (W3)", () => {
    const key = auditKey("aBcDeFgHiJk", "$RESOURCE:gpt-4", "01J0000000000000000000000A");
    expect(matchesFilter(AUDIT_FILTER, record("REMOVE", key))).toBe(true);
    expect(matchesFilter(AUDIT_FILTER, record("INSERT", key))).toBe(false);
  });

  test("the filters of the stream keep everything else away", () => {
    for (const key of [entityKey("ns", "key-1"), systemConfigKey("ns")]) {
      for (const event of ["INSERT", "MODIFY", "REMOVE"]) {
        expect(matchesFilter(BUCKET_FILTER, record(event, key))).toBe(false);
        expect(matchesFilter(AUDIT_FILTER, record(event, key))).toBe(false);
      }
    }
  });

  test("without an archive no Lambda is invoked for audit events", () => {
    const text = JSON.stringify(resourcesWith({ enableAuditArchival: false }));
    expect(text).not.toContain("#AUDIT#");
    expect(JSON.stringify(resourcesWith())).toContain("#AUDIT#");
  });
});
