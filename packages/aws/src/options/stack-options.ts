/** The options of a deployment, as users write them; `stack-option-table.ts` has their ranges. */

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
