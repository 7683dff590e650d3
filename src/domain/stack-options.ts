/** What a deployment can be told: the options, their defaults and their ranges. */

import { checkOptions, show } from "./check.ts";
import { ValidationError } from "./errors.ts";
import {
  between,
  checkEmail,
  checkFlag,
  checkKeyArn,
  checkLogRetention,
  checkRoleArn,
  checkTags,
  checkText,
  checkTopicArn,
  checkWindows,
  nameFormat,
  type OptionCheck,
  oneOf,
} from "./stack-option-checks.ts";

/**
 * How a stack is deployed. Everything has a default.
 *
 * @example
 * ```ts
 * import type { StackOptions } from 'zae-limiter';
 * const stack: StackOptions = { lambdaTimeout: 120, roleNameFormat: 'pb-{}-PowerUser' };
 * ```
 */
export interface StackOptions {
  /** The windows usage is counted by: `hourly`, `daily`, `monthly`, separated by commas. */
  readonly snapshotWindows?: string;
  /** Days that a usage snapshot is kept after its window. */
  readonly usageRetentionDays?: number;
  /** Days that an audit event stays in the table. */
  readonly auditRetentionDays?: number;
  /** Whether a Lambda function counts usage and archives audit events. */
  readonly enableAggregator?: boolean;
  /** Whether there is a Lambda behind `Custom::ZaeLimiterLimits`. */
  readonly enableProvisioner?: boolean;
  /** `ALL` where the Python library must read by resource; every acquire then costs double. */
  readonly gsi2Projection?: "KEYS_ONLY" | "ALL";
  /** A key of one's own for the table and the archive; AWS's when not given. */
  readonly kmsKeyArn?: string;
  /** How far back the table can be restored; as far as AWS allows when not given. */
  readonly pitrRecoveryDays?: number;
  /** One of the terms CloudWatch offers. */
  readonly logRetentionDays?: number;
  /** Seconds. */
  readonly lambdaTimeout?: number;
  /** Megabytes. */
  readonly lambdaMemory?: number;
  /** The processor of the Lambda functions. */
  readonly lambdaArchitecture?: "arm64" | "x86_64";
  /** Whether the stack has alarms. */
  readonly enableAlarms?: boolean;
  /** The ARN of the topic that alarms are sent to; a new one when not given. */
  readonly alarmSnsTopic?: string;
  /** The address that gets alarms by mail, when the stack creates the topic. */
  readonly alarmEmail?: string;
  /** The alarm on the Lambda's duration, in percent of its timeout. */
  readonly lambdaDurationThresholdPct?: number;
  /** A dashboard in CloudWatch, which costs a fee per month. */
  readonly enableDashboard?: boolean;
  /** The name or ARN of a policy. */
  readonly permissionBoundary?: string;
  /** A text with one `{}`, which becomes `<stack>-<component>`. */
  readonly roleNameFormat?: string;
  /** A text with one `{}`, which becomes `<stack>-<component>`. */
  readonly policyNameFormat?: string;
  /** Whether expired audit events are kept in an S3 bucket. */
  readonly enableAuditArchival?: boolean;
  /** Days after which archived events move to Glacier. */
  readonly auditArchiveGlacierDays?: number;
  /** Days that S3 Object Lock keeps archived events from being deleted; 0 is no lock. */
  readonly auditArchiveLockDays?: number;
  /** Whether X-Ray traces the aggregator. */
  readonly enableTracing?: boolean;
  /** Whether the stack has roles in addition to its policies. */
  readonly createIamRoles?: boolean;
  /** Whether the stack may contain anything of IAM at all. */
  readonly createIam?: boolean;
  /** A role made elsewhere, for the aggregator. */
  readonly aggregatorRoleArn?: string;
  /** Whether DynamoDB refuses to delete the table. */
  readonly enableDeletionProtection?: boolean;
  /** Tags for the stack and its resources, in addition to our own. */
  readonly tags?: Readonly<Record<string, string>>;
}

/** Options without a default. */
type UnsetOption =
  | "pitrRecoveryDays"
  | "kmsKeyArn"
  | "alarmSnsTopic"
  | "alarmEmail"
  | "permissionBoundary"
  | "roleNameFormat"
  | "policyNameFormat"
  | "aggregatorRoleArn"
  | "tags";

/** What is deployed when nothing else is said. */
export const STACK_DEFAULTS: Required<Omit<StackOptions, UnsetOption>> = Object.freeze({
  snapshotWindows: "hourly,daily,monthly",
  usageRetentionDays: 90,
  auditRetentionDays: 90,
  enableAggregator: true,
  enableProvisioner: true,
  gsi2Projection: "KEYS_ONLY",
  logRetentionDays: 30,
  lambdaTimeout: 60,
  lambdaMemory: 256,
  lambdaArchitecture: "arm64",
  enableAlarms: true,
  lambdaDurationThresholdPct: 80,
  enableDashboard: false,
  enableAuditArchival: true,
  auditArchiveGlacierDays: 90,
  auditArchiveLockDays: 0,
  enableTracing: false,
  createIamRoles: false,
  createIam: true,
  enableDeletionProtection: false,
});

/** Options within their ranges, with the defaults filled in. */
export type CheckedStackOptions = typeof STACK_DEFAULTS & Pick<StackOptions, UnsetOption>;

const RETENTION_DAYS_MAX = 3650;
const ROLE_FORMAT_LENGTH_MAX = 55;
const POLICY_FORMAT_LENGTH_MAX = 120;

const CHECKS: { readonly [Option in keyof Required<StackOptions>]: OptionCheck } = {
  snapshotWindows: checkWindows,
  usageRetentionDays: between(1, RETENTION_DAYS_MAX),
  auditRetentionDays: between(1, RETENTION_DAYS_MAX),
  enableAggregator: checkFlag,
  enableProvisioner: checkFlag,
  gsi2Projection: oneOf(["KEYS_ONLY", "ALL"]),
  kmsKeyArn: checkKeyArn,
  pitrRecoveryDays: between(1, 35),
  logRetentionDays: checkLogRetention,
  lambdaTimeout: between(1, 900),
  lambdaMemory: between(128, 3008),
  lambdaArchitecture: oneOf(["arm64", "x86_64"]),
  enableAlarms: checkFlag,
  alarmSnsTopic: checkTopicArn,
  alarmEmail: checkEmail,
  lambdaDurationThresholdPct: between(1, 100),
  enableDashboard: checkFlag,
  permissionBoundary: checkText,
  roleNameFormat: nameFormat(ROLE_FORMAT_LENGTH_MAX),
  policyNameFormat: nameFormat(POLICY_FORMAT_LENGTH_MAX),
  enableAuditArchival: checkFlag,
  auditArchiveGlacierDays: between(1, RETENTION_DAYS_MAX),
  auditArchiveLockDays: between(0, RETENTION_DAYS_MAX),
  enableTracing: checkFlag,
  createIamRoles: checkFlag,
  createIam: checkFlag,
  aggregatorRoleArn: checkRoleArn,
  enableDeletionProtection: checkFlag,
  tags: checkTags,
};

/** Checks options from a user before anything is deployed, and fills in the defaults. */
export function checkStackOptions(options: StackOptions = {}): CheckedStackOptions {
  checkOptions("stack", options, "an object like { lambdaTimeout: 60 }");
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  for (const [option, value] of given) {
    if (!isOption(option)) {
      throw new ValidationError("stack", option, `there is no option ${show(option)}`);
    }
    CHECKS[option](fieldOf(option), value);
  }
  const checked: CheckedStackOptions = { ...STACK_DEFAULTS, ...Object.fromEntries(given) };
  if (checked.createIamRoles && !checked.createIam) {
    throw new ValidationError("create_iam_roles", true, "roles cannot be created without IAM");
  }
  if (checked.alarmEmail !== undefined && checked.alarmSnsTopic !== undefined) {
    const reason = "is for the topic that the stack makes; subscribe to your own topic yourself";
    throw new ValidationError("alarm_email", checked.alarmEmail, reason);
  }
  return Object.freeze(checked);
}

function isOption(name: string): name is keyof StackOptions {
  return Object.hasOwn(CHECKS, name);
}

/** `lambdaTimeout` is reported as `lambda_timeout`, like every field in our errors. */
function fieldOf(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
