/**
 * The parameters of the template. Their defaults are those of the options, so that a parameter
 * that is not sent means the same as an option that is not set.
 */

import { FUNCTION_SUFFIXES, type LambdaName } from "../../domain/function-names.ts";
import { LOG_RETENTION_DAYS } from "../../domain/stack-option-checks.ts";
import { STACK_DEFAULTS } from "../../domain/stack-options.ts";
import { POLICY_NAME_PARAMETERS, ROLE_NAME_PARAMETERS } from "../../domain/stack-parameters.ts";
import { SCHEMA_VERSION } from "../../domain/version.ts";
import type { CfnParameter } from "./cfn.ts";

const RETENTION_DAYS_MAX = 3650;
const DURATION_MS_MAX = 900_000;

function text(description: string, more: Partial<CfnParameter> = {}): CfnParameter {
  return { Type: "String", Description: description, Default: "", ...more };
}

function flag(description: string, value: boolean): CfnParameter {
  return text(description, { Default: String(value), AllowedValues: ["true", "false"] });
}

function whole(description: string, value: number, min: number, max: number): CfnParameter {
  return {
    Type: "Number",
    Description: description,
    Default: value,
    MinValue: min,
    MaxValue: max,
  };
}

/** Numbers that may also be absent, for which CloudFormation has only texts. */
export const OPTIONAL_NUMBERS: ReadonlySet<string> = new Set(["PITRRecoveryPeriodDays"]);

const WINDOW = "(hourly|daily|monthly)";
const { lambdaTimeout, lambdaDurationThresholdPct } = STACK_DEFAULTS;

const SETTINGS: Readonly<Record<string, CfnParameter>> = {
  SchemaVersion: text("Version of the layout of the table", { Default: SCHEMA_VERSION }),
  SnapshotWindows: text("Windows in which usage is counted: hourly, daily, monthly", {
    Default: STACK_DEFAULTS.snapshotWindows,
    AllowedPattern: `${WINDOW}(,${WINDOW})*`,
  }),
  SnapshotRetentionDays: whole(
    "Days that usage is kept",
    STACK_DEFAULTS.usageRetentionDays,
    1,
    RETENTION_DAYS_MAX,
  ),
  AuditRetentionDays: whole(
    "Days that audit events are kept in the table",
    STACK_DEFAULTS.auditRetentionDays,
    1,
    RETENTION_DAYS_MAX,
  ),
  GSI2Projection: text("ALL where the Python library must read by resource; doubles write costs", {
    Default: STACK_DEFAULTS.gsi2Projection,
    AllowedValues: ["KEYS_ONLY", "ALL"],
  }),
  PITRRecoveryPeriodDays: text("Days the table can be restored to, 1 to 35; empty means 35", {
    AllowedPattern: "([1-9]|[12][0-9]|3[0-5])?",
  }),
  EnableDeletionProtection: flag(
    "Whether the table refuses to be deleted",
    STACK_DEFAULTS.enableDeletionProtection,
  ),
  KMSKeyArn: text("Key for the table and the archive; empty means the keys of AWS", {
    AllowedPattern: "(arn:[^:]+:kms:[^:]+:[0-9]{12}:key/.+)?",
  }),
  EnableAggregator: flag("Whether usage is counted by a Lambda", STACK_DEFAULTS.enableAggregator),
  LambdaArchitecture: text("Processor of the Lambdas", {
    Default: STACK_DEFAULTS.lambdaArchitecture,
    AllowedValues: ["arm64", "x86_64"],
  }),
  LambdaMemorySize: whole("Megabytes", STACK_DEFAULTS.lambdaMemory, 128, 3008),
  LambdaTimeout: whole("Seconds", lambdaTimeout, 1, 900),
  LambdaDurationThreshold: whole(
    "Milliseconds an invocation may take on average before the alarm",
    lambdaTimeout * 10 * lambdaDurationThresholdPct,
    1,
    DURATION_MS_MAX,
  ),
  LambdaCodeBucket: text(
    "Bucket of the packages that lambda-export wrote; empty: code comes later",
  ),
  AggregatorCodeKey: text("Key of the aggregator's package in that bucket"),
  ProvisionerCodeKey: text("Key of the provisioner's package in that bucket"),
  AggregatorSuffix: suffix("aggregator"),
  ProvisionerSuffix: suffix("provisioner"),
  EnableTracing: flag("Whether X-Ray traces the aggregator", STACK_DEFAULTS.enableTracing),
  LogRetentionDays: {
    Type: "Number",
    Description: "Days that logs are kept",
    Default: STACK_DEFAULTS.logRetentionDays,
    AllowedValues: LOG_RETENTION_DAYS,
  },
  EnableAuditArchival: flag(
    "Whether audit events go to S3 when they expire",
    STACK_DEFAULTS.enableAuditArchival,
  ),
  AuditArchiveGlacierTransitionDays: whole(
    "Days until the archive moves to Glacier Instant Retrieval",
    STACK_DEFAULTS.auditArchiveGlacierDays,
    1,
    RETENTION_DAYS_MAX,
  ),
  AuditArchiveLockDays: whole(
    "Days that objects of the archive cannot be deleted (S3 Object Lock); 0: no lock",
    STACK_DEFAULTS.auditArchiveLockDays,
    0,
    RETENTION_DAYS_MAX,
  ),
  EnableProvisioner: flag(
    "Whether a Lambda provides Custom::ZaeLimiterLimits",
    STACK_DEFAULTS.enableProvisioner,
  ),
  EnableAlarms: flag("Whether there are alarms", STACK_DEFAULTS.enableAlarms),
  AlarmSNSTopicArn: text("Topic the alarms are sent to; empty: a new one", {
    AllowedPattern: "(arn:[^:]+:sns:.+)?",
  }),
  AlarmEmail: text("Address that the new topic writes to", { AllowedPattern: "([^@ ]+@[^@ ]+)?" }),
  EnableDashboard: flag("Whether there is a dashboard", STACK_DEFAULTS.enableDashboard),
  EnableIAM: flag("Whether the stack contains roles and policies", STACK_DEFAULTS.createIam),
  EnableIAMRoles: flag(
    "Whether there are roles for applications, administrators and readers",
    STACK_DEFAULTS.createIamRoles,
  ),
  AggregatorRoleArn: text("Role for the aggregator that exists already", {
    AllowedPattern: "(arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:role/.+)?",
  }),
  PermissionBoundary: text("Name or ARN of the boundary of every role"),
  RoleNameFormat: text("How roles are named; kept for other stacks"),
  PolicyNameFormat: text("How policies are named; kept for other stacks"),
};

/** In the order in which they are printed. */
export const PARAMETERS: Readonly<Record<string, CfnParameter>> = {
  ...SETTINGS,
  ...nameParameters(ROLE_NAME_PARAMETERS),
  ...nameParameters(POLICY_NAME_PARAMETERS),
};

/** Function names have at most 64 characters: a stack with a long name needs the short one. */
function suffix(lambda: LambdaName): CfnParameter {
  const { usual, short } = FUNCTION_SUFFIXES[lambda];
  return text(`End of the name of the ${lambda}`, {
    Default: usual,
    AllowedValues: [usual, short],
  });
}

function nameParameters(names: Readonly<Record<string, string>>): Record<string, CfnParameter> {
  return Object.fromEntries(
    Object.entries(names).map(([component, name]) => [
      name,
      text(`Instead of <stack>-${component}`),
    ]),
  );
}
