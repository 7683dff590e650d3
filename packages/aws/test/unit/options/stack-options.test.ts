import { checkStackOptions } from "@zae-limiter/aws/options/check-stack-options.ts";
import { STACK_DEFAULTS } from "@zae-limiter/aws/options/stack-option-table.ts";
import type { StackOptions } from "@zae-limiter/aws/options/stack-options.ts";
import {
  policyName,
  roleName,
  stackParameters,
} from "@zae-limiter/aws/options/stack-parameters.ts";
import { LimiterInfo } from "@zae-limiter/aws/stack/limiter-info.ts";
import { refusal } from "@zae-limiter/test-support/refusal.ts";
import { describe, expect, test } from "vitest";

const ROLE_ARN = "arn:aws:iam::123456789012:role/aggregator";

function numbered(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`tag-${index}`, "x"]));
}

describe("checkStackOptions", () => {
  test("no options at all are the defaults", () => {
    expect(checkStackOptions()).toEqual(STACK_DEFAULTS);
    expect(checkStackOptions({})).toEqual(STACK_DEFAULTS);
    expect(checkStackOptions({ tags: { team: "search" } }).tags).toEqual({ team: "search" });
    expect(Object.isFrozen(checkStackOptions())).toBe(true);
  });

  test.each<[string, StackOptions[]]>([
    ["lambda_timeout", [{ lambdaTimeout: 0 }, { lambdaTimeout: 1000 }, { lambdaTimeout: 901 }]],
    ["lambda_memory", [{ lambdaMemory: 100 }, { lambdaMemory: 4000 }, { lambdaMemory: 128.5 }]],
    [
      "lambda_duration_threshold_pct",
      [{ lambdaDurationThresholdPct: 0 }, { lambdaDurationThresholdPct: 101 }],
    ],
    ["pitr_recovery_days", [{ pitrRecoveryDays: 40 }, { pitrRecoveryDays: 0 }]],
    ["log_retention_days", [{ logRetentionDays: 15 }, { logRetentionDays: 0 }]],
    [
      "role_name_format",
      [
        { roleNameFormat: `{}${"x".repeat(54)}` },
        { roleNameFormat: "none" },
        { roleNameFormat: "{}-{}" },
        { roleNameFormat: "" },
      ],
    ],
    [
      "policy_name_format",
      [{ policyNameFormat: `{}${"x".repeat(119)}` }, { policyNameFormat: "{}{}" }],
    ],
    ["usage_retention_days", [{ usageRetentionDays: 0 }, { usageRetentionDays: -1 }]],
    ["audit_retention_days", [{ auditRetentionDays: 0 }]],
    [
      "audit_archive_glacier_days",
      [{ auditArchiveGlacierDays: 0 }, { auditArchiveGlacierDays: 3651 }],
    ],
    [
      "audit_archive_lock_days",
      [{ auditArchiveLockDays: -1 }, { auditArchiveLockDays: 3651 }, { auditArchiveLockDays: 0.5 }],
    ],
    [
      "aggregator_role_arn",
      [
        { aggregatorRoleArn: "aggregator" },
        { aggregatorRoleArn: "arn:aws:iam::12345678901:role/x" },
        { aggregatorRoleArn: "arn:aws:iam::123456789012:role/" },
        { aggregatorRoleArn: "arn:aws:iam::123456789012:user/x" },
        { aggregatorRoleArn: `${ROLE_ARN}\n` },
      ],
    ],
    ["create_iam_roles", [{ createIam: false, createIamRoles: true }]],
    ["snapshot_windows", [{ snapshotWindows: "weekly" }, { snapshotWindows: "daily,daily" }]],
    ["alarm_sns_topic", [{ alarmSnsTopic: "" }]],
    [
      "tags",
      [
        { tags: numbered(45) },
        { tags: { "": "x" } },
        { tags: { ["k".repeat(129)]: "x" } },
        { tags: { "aws:team": "x" } },
        { tags: { team: "v".repeat(257) } },
      ],
    ],
  ])("%s out of range is refused by its name (A040)", (field, cases) => {
    for (const options of cases) {
      const error = refusal(() => checkStackOptions(options));
      expect([field, error.field]).toEqual([field, field]);
      expect(error.message).toContain(
        field.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
      );
    }
  });

  test("the borders themselves are fine", () => {
    const accepted: StackOptions[] = [
      { lambdaTimeout: 1, lambdaMemory: 128, lambdaDurationThresholdPct: 1, pitrRecoveryDays: 1 },
      { lambdaTimeout: 900, lambdaMemory: 3008, lambdaDurationThresholdPct: 100 },
      { pitrRecoveryDays: 35, logRetentionDays: 3653, auditArchiveGlacierDays: 3650 },
      { roleNameFormat: `{}${"x".repeat(53)}`, policyNameFormat: `{}${"x".repeat(118)}` },
      { aggregatorRoleArn: ROLE_ARN },
      { aggregatorRoleArn: "arn:aws-us-gov:iam::123456789012:role/path/to/x" },
      { createIam: false, snapshotWindows: "hourly,daily,monthly" },
      { tags: { ...numbered(43), ["k".repeat(128)]: "v".repeat(256) } },
    ];
    for (const options of accepted) expect(checkStackOptions(options)).toMatchObject(options);
  });

  test("45 tags of a user and our six would be more than AWS takes", () => {
    expect(checkStackOptions({ tags: numbered(44) }).tags).toEqual(numbered(44));
    expect(() => checkStackOptions({ tags: numbered(45) })).toThrow(/at most 44/);
  });

  test("wrong kinds and unknown options are refused, not ignored", () => {
    const wrong: readonly [unknown, string][] = [
      [{ enableAlarms: "false" }, "enable_alarms"],
      [{ lambdaTimeout: "60" }, "lambda_timeout"],
      [{ lambdaTimeout: null }, "lambda_timeout"],
      [{ snapshotWindows: ["daily"] }, "snapshot_windows"],
      [{ tags: ["a"] }, "tags"],
      [{ tags: { a: 1 } }, "tags"],
      [{ lambda_timeout: 60 }, "stack"],
      [{ constructor: 1 }, "stack"],
      [5, "stack"],
      [null, "stack"],
    ];
    for (const [options, field] of wrong) {
      expect(refusal(() => checkStackOptions(options as StackOptions)).field).toBe(field);
    }
    const flag = { enableAlarms: 1 } as unknown as StackOptions;
    expect(refusal(() => checkStackOptions(flag)).reason).toBe("expected true or false, got 1");
    const unset = { lambdaTimeout: undefined } as unknown as StackOptions;
    expect(checkStackOptions(unset).lambdaTimeout).toBe(60);
  });
});

describe("names", () => {
  const options = { roleNameFormat: "pb-{}-PowerUser", policyNameFormat: "$&-{}" };

  test("a format takes the stack and the component (A040)", () => {
    expect(roleName(options, "mytable", "aggr")).toBe("pb-mytable-aggr-PowerUser");
    expect(policyName(options, "mytable", "ns-acq")).toBe("$&-mytable-ns-acq");
    expect(roleName({}, "mytable", "aggr")).toBeUndefined();
    expect(policyName({}, "mytable", "read")).toBeUndefined();
  });

  test("a name that is too long says by how much, and how long the stack's name may be", () => {
    const format = `{}${"x".repeat(50)}`;
    expect(roleName({ roleNameFormat: format }, "a".repeat(9), "aggr")).toHaveLength(64);
    const error = refusal(() => roleName({ roleNameFormat: format }, "a".repeat(12), "aggr"));
    expect(error.field).toBe("role_name");
    expect(error.reason).toContain("3 characters longer than the 64");
    expect(error.reason).toContain("at most 9");
    const policy = { policyNameFormat: `{}${"x".repeat(118)}` };
    expect(refusal(() => policyName(policy, "a".repeat(9), "full")).field).toBe("policy_name");
  });
});

describe("stackParameters", () => {
  test("everything is text, and 80 % of 60 seconds are 48000 milliseconds (A040)", () => {
    expect(stackParameters({})).toEqual({
      SnapshotWindows: "hourly,daily,monthly",
      SnapshotRetentionDays: "90",
      AuditRetentionDays: "90",
      GSI2Projection: "KEYS_ONLY",
      LambdaMemorySize: "256",
      LambdaArchitecture: "arm64",
      LambdaTimeout: "60",
      EnableAggregator: "true",
      EnableProvisioner: "true",
      EnableAlarms: "true",
      EnableDashboard: "false",
      LogRetentionDays: "30",
      LambdaDurationThreshold: "48000",
      EnableAuditArchival: "true",
      AuditArchiveGlacierTransitionDays: "90",
      AuditArchiveLockDays: "0",
      EnableTracing: "false",
      EnableIAMRoles: "false",
      EnableIAM: "true",
      EnableDeletionProtection: "false",
    });
  });

  test.each([
    [120, 80, "96000"],
    [1, 1, "10"],
    [900, 100, "900000"],
    [7, 33, "2310"],
  ])("%d s and %d %% give %s", (lambdaTimeout, lambdaDurationThresholdPct, expected) => {
    const parameters = stackParameters({ lambdaTimeout, lambdaDurationThresholdPct });
    expect(parameters.LambdaDurationThreshold).toBe(expected);
  });

  test("options that are set are sent as parameters", () => {
    const set = stackParameters({
      pitrRecoveryDays: 35,
      alarmSnsTopic: "arn:aws:sns:us-east-1:123456789012:alarms",
      permissionBoundary: "boundary",
      aggregatorRoleArn: ROLE_ARN,
    });
    expect(set).toMatchObject({
      PITRRecoveryPeriodDays: "35",
      AlarmSNSTopicArn: "arn:aws:sns:us-east-1:123456789012:alarms",
      PermissionBoundary: "boundary",
      AggregatorRoleArn: ROLE_ARN,
    });
  });

  test("stackParameters names of roles and policies need a format and the name of the stack", () => {
    const formats = { roleNameFormat: "r-{}", policyNameFormat: "p-{}" };
    const names = (parameters: Readonly<Record<string, string>>) =>
      Object.entries(parameters).filter(([name]) => /(Role|Policy)Name$/.test(name));
    expect(names(stackParameters(formats))).toEqual([]);
    expect(names(stackParameters({}, "app"))).toEqual([]);
    expect(Object.fromEntries(names(stackParameters(formats, "app")))).toEqual({
      AggregatorRoleName: "r-app-aggr",
      AppRoleName: "r-app-app",
      AdminRoleName: "r-app-admin",
      ReadOnlyRoleName: "r-app-read",
      ProvisionerRoleName: "r-app-prov",
      AcquireOnlyPolicyName: "p-app-acq",
      FullAccessPolicyName: "p-app-full",
      ReadOnlyPolicyName: "p-app-read",
      NamespaceAcquirePolicyName: "p-app-ns-acq",
      NamespaceFullAccessPolicyName: "p-app-ns-full",
      NamespaceReadOnlyPolicyName: "p-app-ns-read",
    });
    expect(stackParameters(formats, "app").RoleNameFormat).toBe("r-{}");
  });

  test("options are checked on the way", () => {
    expect(refusal(() => stackParameters({ lambdaTimeout: 0 })).field).toBe("lambda_timeout");
    expect(refusal(() => stackParameters({}, "my_app")).field).toBe("name");
  });
});

describe("LimiterInfo", () => {
  const info = (stackStatus: string) =>
    new LimiterInfo({
      stackName: "ZAEL-app",
      userName: "app",
      region: "us-east-1",
      stackStatus,
      creationTime: "2025-01-01T00:00:00Z",
    });

  test.each([
    ["CREATE_COMPLETE", true, false, false],
    ["UPDATE_COMPLETE", true, false, false],
    ["CREATE_IN_PROGRESS", false, true, false],
    ["UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", false, true, false],
    ["ROLLBACK_IN_PROGRESS", false, true, true],
    ["UPDATE_ROLLBACK_COMPLETE", false, false, true],
    ["DELETE_FAILED", false, false, true],
    ["DELETE_COMPLETE", false, false, false],
  ])(
    "a stack in the state %s is healthy, in progress or failed (A039)",
    (status, isHealthy, isInProgress, isFailed) => {
      expect(info(status)).toMatchObject({ isHealthy, isInProgress, isFailed });
    },
  );

  test("fields that discovery did not find are undefined, and the object is frozen", () => {
    expect(info("CREATE_COMPLETE")).toMatchObject({ version: undefined, stackType: undefined });
    expect(Object.isFrozen(info("CREATE_COMPLETE"))).toBe(true);
  });
});
