/** The Lambda that counts usage and archives the audit log, and everything it needs. */

import {
  attribute,
  type CfnResource,
  type CfnValue,
  choose,
  named,
  onlyIf,
  ref,
  STACK_NAME,
  sub,
} from "./cfn.ts";
import { allow, keyUse, lambdaRole, roleNameOf, TABLE_ARN, tableKeyUse, writeLogs } from "./iam.ts";
import { functionName, lambdaResource, logGroupResource } from "./lambda.ts";
import { APPLICATION_TAG, KEEP_DATA, TABLE } from "./table.ts";

const STREAM_ARN = attribute(TABLE, "StreamArn");
const FOURTEEN_DAYS_S = 1_209_600;
/**
 * Usage is counted exactly once (ADR 011), so a change that could not be counted is delivered again
 * for as long as that makes sense, however often: a throttled table, a key that was disabled or a
 * permission that was taken away are repaired, and the alarms for delay and errors say so within
 * minutes. What can never be counted is given up by the function itself and does not come again. A
 * stream keeps its records for a day. Two hours before that Lambda gives up, because only then does
 * a message about it get to the dead-letter queue, and the records can still be read.
 */
const RECORD_AGE_S_MAX = 22 * 3600;
const WITHOUT_END = -1;

/**
 * Changes of the table for which the Lambda is invoked: consumption from buckets, and audit events
 * that expire. The sort key distinguishes them; it has no namespace before it.
 */
export const BUCKET_FILTER = {
  eventName: ["INSERT", "MODIFY"],
  dynamodb: { Keys: { SK: { S: ["#STATE"] } } },
} as const;

export const AUDIT_FILTER = {
  eventName: ["REMOVE"],
  dynamodb: { Keys: { SK: { S: [{ prefix: "#AUDIT#" }] } } },
} as const;

function pattern(filter: object): CfnValue {
  return { Pattern: JSON.stringify(filter) };
}

const AggregatorRole: CfnResource = {
  Type: "AWS::IAM::Role",
  Condition: "CreateAggregatorRole",
  Properties: {
    RoleName: roleNameOf("aggr"),
    ...lambdaRole("aggregator", [
      writeLogs("AggregatorLogGroup"),
      allow({
        sid: "UseTable",
        actions: ["GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem"],
        resource: TABLE_ARN,
      }),
      allow({
        sid: "ReadStream",
        actions: ["GetRecords", "GetShardIterator", "DescribeStream"],
        resource: STREAM_ARN,
      }),
      allow({
        sid: "FindStream",
        actions: ["ListStreams"],
        resource: sub(`\${${TABLE}.Arn}/stream/*`),
      }),
      allow({
        sid: "SetAsideFailures",
        actions: ["sqs:SendMessage"],
        resource: attribute("AggregatorDLQ", "Arn"),
      }),
      onlyIf(
        "DeployAuditArchive",
        allow({
          sid: "WriteArchive",
          actions: ["s3:PutObject"],
          resource: sub(`\${AuditArchiveBucket.Arn}/audit/*`),
        }),
      ),
      onlyIf(
        "TraceAggregator",
        allow({
          sid: "Trace",
          actions: ["xray:PutTraceSegments", "xray:PutTelemetryRecords"],
          resource: "*",
        }),
      ),
      tableKeyUse("write"),
      keyUse("s3", "GenerateDataKey"),
    ]),
    Tags: [APPLICATION_TAG],
  },
};

const AggregatorFunction = lambdaResource({
  condition: "DeployAggregator",
  name: functionName("aggregator"),
  role: choose("HasAggregatorRole", ref("AggregatorRoleArn"), attribute("AggregatorRole", "Arn")),
  logGroup: "AggregatorLogGroup",
  memory: ref("LambdaMemorySize"),
  timeout: ref("LambdaTimeout"),
  codeCondition: "HasAggregatorCode",
  codeKey: "AggregatorCodeKey",
  tracing: choose("TraceAggregator", "Active", "PassThrough"),
  variables: {
    TABLE_NAME: STACK_NAME,
    SNAPSHOT_WINDOWS: ref("SnapshotWindows"),
    // A text, as all variables are.
    SNAPSHOT_TTL_DAYS: sub(`\${SnapshotRetentionDays}`),
    ZAE_LIMITER_SCHEMA_VERSION: ref("SchemaVersion"),
    ENABLE_ARCHIVAL: choose("DeployAuditArchive", "true", "false"),
    ARCHIVE_BUCKET_NAME: choose("DeployAuditArchive", ref("AuditArchiveBucket"), ""),
  },
});

const AggregatorEventSourceMapping: CfnResource = {
  Type: "AWS::Lambda::EventSourceMapping",
  Condition: "DeployAggregator",
  Properties: {
    EventSourceArn: STREAM_ARN,
    FunctionName: ref("AggregatorFunction"),
    // Nothing that happens before the mapping is live gets lost.
    StartingPosition: "TRIM_HORIZON",
    BatchSize: 100,
    MaximumBatchingWindowInSeconds: 5,
    MaximumRetryAttempts: WITHOUT_END,
    MaximumRecordAgeInSeconds: RECORD_AGE_S_MAX,
    BisectBatchOnFunctionError: true,
    FunctionResponseTypes: ["ReportBatchItemFailures"],
    DestinationConfig: { OnFailure: { Destination: attribute("AggregatorDLQ", "Arn") } },
    FilterCriteria: {
      Filters: [pattern(BUCKET_FILTER), onlyIf("DeployAuditArchive", pattern(AUDIT_FILTER))],
    },
  },
};

const AggregatorDLQ: CfnResource = {
  Type: "AWS::SQS::Queue",
  Condition: "DeployAggregator",
  DeletionPolicy: "Delete",
  UpdateReplacePolicy: "Delete",
  Properties: {
    QueueName: named("aggregator-dlq"),
    MessageRetentionPeriod: FOURTEEN_DAYS_S,
    VisibilityTimeout: 300,
    SqsManagedSseEnabled: true,
  },
};

const AuditArchiveBucket: CfnResource = {
  Type: "AWS::S3::Bucket",
  Condition: "DeployAuditArchive",
  ...KEEP_DATA,
  Properties: {
    BucketEncryption: {
      ServerSideEncryptionConfiguration: [
        {
          BucketKeyEnabled: choose("HasKMSKey", true, false),
          ServerSideEncryptionByDefault: choose(
            "HasKMSKey",
            { SSEAlgorithm: "aws:kms", KMSMasterKeyID: ref("KMSKeyArn") },
            { SSEAlgorithm: "AES256" },
          ),
        },
      ],
    },
    VersioningConfiguration: { Status: "Enabled" },
    ObjectLockEnabled: onlyIf("LockAuditArchive", true),
    ObjectLockConfiguration: onlyIf("LockAuditArchive", {
      ObjectLockEnabled: "Enabled",
      Rule: { DefaultRetention: { Mode: "GOVERNANCE", Days: ref("AuditArchiveLockDays") } },
    }),
    PublicAccessBlockConfiguration: {
      BlockPublicAcls: true,
      BlockPublicPolicy: true,
      IgnorePublicAcls: true,
      RestrictPublicBuckets: true,
    },
    LifecycleConfiguration: {
      Rules: [
        {
          Id: "ToGlacier",
          Status: "Enabled",
          Transitions: [
            {
              StorageClass: "GLACIER_IR",
              TransitionInDays: ref("AuditArchiveGlacierTransitionDays"),
            },
          ],
        },
      ],
    },
    Tags: [APPLICATION_TAG],
  },
};

export const AGGREGATOR_RESOURCES: Readonly<Record<string, CfnResource>> = {
  AuditArchiveBucket,
  AggregatorDLQ,
  AggregatorLogGroup: logGroupResource("DeployAggregator", "aggregator"),
  AggregatorRole,
  AggregatorFunction,
  AggregatorEventSourceMapping,
};
