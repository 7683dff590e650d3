/** The options of a deployment: one table, from which all else about them is derived. */

import {
  EMAIL,
  FLAG,
  KEY_ARN,
  LOG_RETENTION,
  nameFormat,
  type OptionKind,
  oneOf,
  RECOVERY_DAYS,
  ROLE_ARN,
  TAGS,
  TEXT,
  TOPIC_ARN,
  WINDOWS,
  whole,
} from "./option-kinds.ts";
import type { StackOptions } from "./stack-options.ts";

/** One option of a deployment. */
export interface StackOption extends OptionKind {
  /** The value without a setting; absent: the option is not set. */
  readonly default?: string | number | boolean;
  /** The parameter of the template with the same meaning. */
  readonly parameter?: string;
  /** The meaning, for the command line and the template. */
  readonly help: string;
  /** On the command line: the word for a value, or the name of a flag that is not `enable-…`. */
  readonly word?: string;
  /** The row in which `deploy` shows the value before it asks; a row may have several values. */
  readonly row?: string;
  /** The row is there only with the aggregator. */
  readonly ofAggregator?: true;
  readonly shown?: (value: never) => string;
}

const DAYS_MAX = 3650;
const DAYS = { ...whole(1, DAYS_MAX), word: "days" } as const;
const days = (value: number) => `${value} days`;

/** In the order in which the template lists its parameters. */
export const STACK_OPTIONS = {
  snapshotWindows: {
    ...WINDOWS,
    default: "hourly,daily,monthly",
    parameter: "SnapshotWindows",
    help: "windows in which usage is counted: some of hourly,daily,monthly",
    word: "windows",
    row: "Usage windows",
  },
  usageRetentionDays: {
    ...DAYS,
    default: 90,
    parameter: "SnapshotRetentionDays",
    help: "how long usage is kept",
    row: "Usage kept",
    shown: days,
  },
  auditRetentionDays: {
    ...DAYS,
    default: 90,
    parameter: "AuditRetentionDays",
    help: "how long audit events stay in the table",
    row: "Audit kept",
    shown: days,
  },
  gsi2Projection: {
    ...oneOf("KEYS_ONLY", "ALL"),
    default: "KEYS_ONLY",
    parameter: "GSI2Projection",
    help: "ALL where the Python library reads by resource; doubles write costs",
    word: "projection",
  },
  pitrRecoveryDays: {
    ...RECOVERY_DAYS,
    parameter: "PITRRecoveryPeriodDays",
    help: "how many days back the table can be restored, 1 to 35; not set: 35",
    word: "days",
  },
  enableDeletionProtection: {
    ...FLAG,
    default: false,
    parameter: "EnableDeletionProtection",
    help: "a table that refuses to be deleted",
    row: "Deletion protection",
  },
  kmsKeyArn: {
    ...KEY_ARN,
    parameter: "KMSKeyArn",
    help: "key of your own for table and archive; not set: keys of AWS",
    word: "arn",
  },
  enableAggregator: {
    ...FLAG,
    default: true,
    parameter: "EnableAggregator",
    help: "a Lambda that counts usage and archives the audit log",
    row: "Aggregator",
  },
  lambdaArchitecture: {
    ...oneOf("arm64", "x86_64"),
    default: "arm64",
    parameter: "LambdaArchitecture",
    help: "processor of the Lambdas",
    word: "processor",
  },
  lambdaMemory: {
    ...whole(128, 3008),
    default: 256,
    parameter: "LambdaMemorySize",
    help: "memory of the aggregator, in megabytes",
    word: "megabytes",
    row: "Lambda",
    ofAggregator: true,
    shown: (value: number) => `${value} MB`,
  },
  lambdaTimeout: {
    ...whole(1, 900),
    default: 60,
    parameter: "LambdaTimeout",
    help: "how long an invocation may take, in seconds",
    word: "seconds",
    row: "Lambda",
    ofAggregator: true,
    shown: (value: number) => `${value} s`,
  },
  lambdaDurationThresholdPct: {
    ...whole(1, 100),
    default: 80,
    help: "alarm when the aggregator takes this much of its timeout, in percent",
    word: "percent",
  },
  enableTracing: {
    ...FLAG,
    default: false,
    parameter: "EnableTracing",
    help: "X-Ray for the aggregator",
    row: "Tracing",
    ofAggregator: true,
  },
  logRetentionDays: {
    ...LOG_RETENTION,
    default: 30,
    parameter: "LogRetentionDays",
    help: "how many days logs are kept",
    word: "days",
  },
  enableAuditArchival: {
    ...FLAG,
    default: true,
    parameter: "EnableAuditArchival",
    help: "an archive in S3 for audit events that expire",
    row: "Audit archive",
    ofAggregator: true,
  },
  auditArchiveGlacierDays: {
    ...DAYS,
    default: 90,
    parameter: "AuditArchiveGlacierTransitionDays",
    help: "days until the archive moves to Glacier Instant Retrieval",
    row: "Audit archive",
    ofAggregator: true,
    shown: (value: number) => `to Glacier after ${value} days`,
  },
  auditArchiveLockDays: {
    ...whole(0, DAYS_MAX),
    default: 0,
    parameter: "AuditArchiveLockDays",
    help: "days that archived events cannot be deleted (S3 Object Lock); 0: no lock",
    word: "days",
    row: "Audit archive",
    ofAggregator: true,
    shown: (value: number) => (value === 0 ? "" : `locked for ${value} days`),
  },
  enableProvisioner: {
    ...FLAG,
    default: true,
    parameter: "EnableProvisioner",
    help: "a Lambda behind Custom::ZaeLimiterLimits",
  },
  enableAlarms: {
    ...FLAG,
    default: true,
    parameter: "EnableAlarms",
    help: "alarms, sent to a topic",
    row: "Alarms",
  },
  alarmSnsTopic: {
    ...TOPIC_ARN,
    parameter: "AlarmSNSTopicArn",
    help: "topic for the alarms; not set: a new one",
    word: "arn",
    row: "Alarm topic",
  },
  alarmEmail: {
    ...EMAIL,
    parameter: "AlarmEmail",
    help: "address for alarms of the new topic",
    word: "address",
  },
  enableDashboard: {
    ...FLAG,
    default: false,
    parameter: "EnableDashboard",
    help: "a dashboard in CloudWatch",
    word: "dashboard",
    row: "Dashboard",
  },
  createIam: {
    ...FLAG,
    default: true,
    parameter: "EnableIAM",
    help: "roles and policies in the stack",
    word: "iam",
    row: "IAM",
  },
  createIamRoles: {
    ...FLAG,
    default: false,
    parameter: "EnableIAMRoles",
    help: "roles for applications, administrators and readers",
    word: "create-iam-roles",
    row: "Roles",
  },
  aggregatorRoleArn: {
    ...ROLE_ARN,
    parameter: "AggregatorRoleArn",
    help: "role for the aggregator that exists already",
    word: "arn",
    row: "Aggregator role",
    ofAggregator: true,
  },
  permissionBoundary: {
    ...TEXT,
    parameter: "PermissionBoundary",
    help: "name or ARN of the boundary of every role",
    word: "policy",
  },
  roleNameFormat: {
    ...nameFormat(55),
    parameter: "RoleNameFormat",
    help: "how roles are named, with one {}",
    word: "format",
  },
  policyNameFormat: {
    ...nameFormat(120),
    parameter: "PolicyNameFormat",
    help: "how policies are named, with one {}",
    word: "format",
  },
  tags: { ...TAGS, help: "tags of the stack" },
} as const satisfies { readonly [Name in keyof Required<StackOptions>]: StackOption };

type Table = typeof STACK_OPTIONS;
export type OptionName = keyof Table;

type DefaultedOption = {
  [Name in OptionName]: Table[Name] extends { readonly default: unknown } ? Name : never;
}[OptionName];

/** The table as a list. */
export const STACK_OPTION_ENTRIES = Object.entries(STACK_OPTIONS) as readonly [
  OptionName,
  StackOption,
][];

/** The options of a deployment without any settings. */
export const STACK_DEFAULTS = Object.freeze(
  Object.fromEntries(
    STACK_OPTION_ENTRIES.flatMap(([name, option]) =>
      option.default === undefined ? [] : [[name, option.default]],
    ),
  ),
) as Required<Pick<StackOptions, DefaultedOption>>;
