/** The options of `deploy`, and the stack they describe. What is not given is not decided. */

import { LOG_RETENTION_DAYS } from "../../domain/stack-option-checks.ts";
import type { StackOptions } from "../../domain/stack-options.ts";
import { checkRelease } from "../../records/version-record.ts";
import { CommandFailure, type OptionSpec, UsageError } from "../command.ts";
import { wholeNumber } from "../numbers.ts";

export interface DeployOptions {
  readonly snapshotWindows?: string;
  readonly usageRetentionDays?: number;
  readonly auditRetentionDays?: number;
  readonly enableAggregator?: true;
  readonly aggregator?: boolean;
  readonly enableProvisioner?: true;
  readonly provisioner?: boolean;
  readonly gsi2Projection?: "KEYS_ONLY" | "ALL";
  readonly maxShards?: string;
  readonly pythonLambdaVersion?: string;
  readonly kmsKeyArn?: string;
  readonly pitrRecoveryDays?: number;
  readonly logRetentionDays?: number;
  readonly lambdaTimeout?: number;
  readonly lambdaMemory?: number;
  readonly lambdaArchitecture?: "arm64" | "x86_64";
  readonly enableAlarms?: true;
  readonly alarms?: boolean;
  readonly alarmSnsTopic?: string;
  readonly alarmEmail?: string;
  readonly lambdaDurationThresholdPct?: number;
  readonly dashboard?: boolean;
  readonly permissionBoundary?: string;
  readonly roleNameFormat?: string;
  readonly policyNameFormat?: string;
  readonly enableAuditArchival?: true;
  readonly auditArchival?: boolean;
  readonly auditArchiveGlacierDays?: number;
  readonly auditArchiveLockDays?: number;
  readonly enableTracing?: true;
  readonly tracing?: boolean;
  readonly createIamRoles?: boolean;
  readonly iam?: boolean;
  readonly aggregatorRoleArn?: string;
  readonly enableDeletionProtection?: true;
  readonly deletionProtection?: boolean;
  readonly tag: readonly string[];
}

const DAYS = wholeNumber(1, 3650);
const LOCK_DAYS = wholeNumber(0, 3650);

/** `--enable-x` and `--no-x`. */
function pair(name: string, text: string, preset: "on" | "off"): OptionSpec[] {
  return [
    { flags: `--enable-${name}`, text: `${text}${preset === "on" ? " (preset)" : ""}` },
    { flags: `--no-${name}`, text: `none${preset === "off" ? " (preset)" : ""}` },
  ];
}

export const DEPLOY_OPTIONS: readonly OptionSpec[] = [
  {
    flags: "--snapshot-windows <windows>",
    text: "windows of usage: some of hourly,daily,monthly (default: all)",
  },
  {
    flags: "--usage-retention-days <days>",
    text: "how long usage is kept (preset 90)",
    parse: DAYS,
  },
  {
    flags: "--audit-retention-days <days>",
    text: "how long audit events stay in the table (preset 90)",
    parse: DAYS,
  },
  ...pair("aggregator", "a Lambda that counts usage and archives the audit log", "on"),
  ...pair("provisioner", "a Lambda behind Custom::ZaeLimiterLimits", "on"),
  {
    flags: "--gsi2-projection <projection>",
    text: "ALL where the Python library reads by resource; doubles costs (preset KEYS_ONLY)",
    choices: ["KEYS_ONLY", "ALL"],
  },
  {
    flags: "--max-shards <count>",
    text: "how often a hot bucket is split at most; 32 on a table shared with Python (preset 64)",
    choices: ["1", "2", "4", "8", "16", "32", "64"],
  },
  {
    flags: "--python-lambda-version <release>",
    text:
      "claims a Lambda of the Python library, such as 0.17.0, so that its clients store what is " +
      "new; a newer client may then replace our Lambda. Say it with every deploy",
  },
  { flags: "--kms-key-arn <arn>", text: "key of your own for table and archive" },
  {
    flags: "--pitr-recovery-days <days>",
    text: "how far back the table can be restored (preset 35)",
    parse: wholeNumber(1, 35),
  },
  {
    flags: "--log-retention-days <days>",
    text: "how long logs are kept (preset 30)",
    choices: LOG_RETENTION_DAYS.map(String),
  },
  {
    flags: "--lambda-timeout <seconds>",
    text: "how long an invocation may take (preset 60)",
    parse: wholeNumber(1, 900),
  },
  {
    flags: "--lambda-memory <megabytes>",
    text: "memory of the aggregator (preset 256)",
    parse: wholeNumber(128, 3008),
  },
  {
    flags: "--lambda-architecture <processor>",
    text: "processor of the Lambdas (preset arm64)",
    choices: ["arm64", "x86_64"],
  },
  ...pair("alarms", "alarms, sent to a topic", "on"),
  { flags: "--alarm-sns-topic <arn>", text: "topic for the alarms (preset: a new one)" },
  { flags: "--alarm-email <address>", text: "address for alarms of the new topic" },
  {
    flags: "--lambda-duration-threshold-pct <percent>",
    text: "alarm when the aggregator takes this much of its timeout (preset 80)",
    parse: wholeNumber(1, 100),
  },
  { flags: "--dashboard", text: "a dashboard in CloudWatch" },
  { flags: "--no-dashboard", text: "none (default)" },
  { flags: "--permission-boundary <policy>", text: "name or ARN of the boundary of every role" },
  { flags: "--role-name-format <format>", text: "how roles are named, with one {}" },
  { flags: "--policy-name-format <format>", text: "how policies are named, with one {}" },
  ...pair("audit-archival", "an archive in S3 for audit events that expire", "on"),
  {
    flags: "--audit-archive-glacier-days <days>",
    text: "when the archive moves to Glacier (preset 90)",
    parse: DAYS,
  },
  {
    flags: "--audit-archive-lock-days <days>",
    text: "how long archived events cannot be deleted (default 0: no lock)",
    parse: LOCK_DAYS,
  },
  ...pair("tracing", "X-Ray for the aggregator", "off"),
  { flags: "--create-iam-roles", text: "roles for applications, administrators and readers" },
  { flags: "--no-create-iam-roles", text: "none (preset)" },
  { flags: "--iam", text: "roles and policies in the stack (preset)" },
  { flags: "--no-iam", text: "nothing of IAM" },
  { flags: "--aggregator-role-arn <arn>", text: "role for the aggregator that exists already" },
  ...pair("deletion-protection", "a table that refuses to be deleted", "off"),
  { flags: "-t, --tag <key=value>", text: "tag of the stack", repeat: true },
];

/** The options of the stack, as far as they were given. */
export function stackOptionsOf(options: DeployOptions): StackOptions {
  if (options.iam === false && options.createIamRoles === true) {
    throw new CommandFailure(
      "--no-iam and --create-iam-roles exclude each other: roles are part of IAM. Leave one out",
    );
  }
  const tags = tagsOf(options.tag);
  const { logRetentionDays } = options;
  const given: Record<string, unknown> = {
    snapshotWindows: options.snapshotWindows,
    usageRetentionDays: options.usageRetentionDays,
    auditRetentionDays: options.auditRetentionDays,
    enableAggregator: flagOf("aggregator", options.enableAggregator, options.aggregator),
    enableProvisioner: flagOf("provisioner", options.enableProvisioner, options.provisioner),
    gsi2Projection: options.gsi2Projection,
    kmsKeyArn: options.kmsKeyArn,
    pitrRecoveryDays: options.pitrRecoveryDays,
    logRetentionDays: logRetentionDays === undefined ? undefined : Number(logRetentionDays),
    lambdaTimeout: options.lambdaTimeout,
    lambdaMemory: options.lambdaMemory,
    lambdaArchitecture: options.lambdaArchitecture,
    enableAlarms: flagOf("alarms", options.enableAlarms, options.alarms),
    alarmSnsTopic: options.alarmSnsTopic,
    alarmEmail: options.alarmEmail,
    lambdaDurationThresholdPct: options.lambdaDurationThresholdPct,
    enableDashboard: options.dashboard,
    permissionBoundary: options.permissionBoundary,
    roleNameFormat: options.roleNameFormat,
    policyNameFormat: options.policyNameFormat,
    enableAuditArchival: flagOf(
      "audit-archival",
      options.enableAuditArchival,
      options.auditArchival,
    ),
    auditArchiveGlacierDays: options.auditArchiveGlacierDays,
    auditArchiveLockDays: options.auditArchiveLockDays,
    enableTracing: flagOf("tracing", options.enableTracing, options.tracing),
    createIamRoles: options.createIamRoles,
    createIam: options.iam,
    aggregatorRoleArn: options.aggregatorRoleArn,
    enableDeletionProtection: flagOf(
      "deletion-protection",
      options.enableDeletionProtection,
      options.deletionProtection,
    ),
    tags: options.tag.length === 0 ? undefined : tags,
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** Without either option nothing was said; the parser then hands out true for the second. */
function flagOf(
  name: string,
  enabled: true | undefined,
  notDisabled: boolean | undefined,
): boolean | undefined {
  if (enabled === true && notDisabled === false) {
    throw new UsageError(`--enable-${name} and --no-${name} exclude each other`);
  }
  if (enabled === true) return true;
  return notDisabled === false ? false : undefined;
}

function tagsOf(texts: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf("=");
      if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
      throw new CommandFailure(
        `--tag ${JSON.stringify(text)}: expected key=value, as in team=search`,
      );
    }),
  );
}

/** The release of the Python library's Lambda that the table is to claim. */
export function claimedLambda({ pythonLambdaVersion: release }: DeployOptions): {
  readonly pythonLambdaVersion?: string;
} {
  if (release === undefined) return {};
  return { pythonLambdaVersion: checkRelease("--python-lambda-version", release) };
}
