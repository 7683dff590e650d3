/** The parameters of the template, and the names of its roles and policies. */

import { floorDiv } from "../core/integers.ts";
import { show } from "./check.ts";
import { ValidationError } from "./errors.ts";
import { checkStackName } from "./names.ts";
import { checkStackOptions, type StackOptions } from "./stack-options.ts";

const ROLE_NAME_LENGTH_MAX = 64;
const POLICY_NAME_LENGTH_MAX = 128;

/** The roles of a stack, by the end of their names. */
export type RoleComponent = "aggr" | "app" | "admin" | "read" | "prov";

/** The policies of a stack, by the end of their names. */
export type PolicyComponent = "acq" | "full" | "read" | "ns-acq" | "ns-full" | "ns-read";

/** The name of a role, or `undefined` when there is no format and the template chooses it. */
export function roleName(
  options: StackOptions,
  stackName: string,
  component: RoleComponent,
): string | undefined {
  const format = options.roleNameFormat;
  if (format === undefined) return undefined;
  return fillName("role_name", format, stackName, component, ROLE_NAME_LENGTH_MAX);
}

/** The name of a policy, or `undefined` when there is no format and the template chooses it. */
export function policyName(
  options: StackOptions,
  stackName: string,
  component: PolicyComponent,
): string | undefined {
  const format = options.policyNameFormat;
  if (format === undefined) return undefined;
  return fillName("policy_name", format, stackName, component, POLICY_NAME_LENGTH_MAX);
}

/**
 * The parameters of the template. What is not set is left out, so that the template's own default
 * holds; the names of roles and policies need the name of the stack as well.
 */
export function stackParameters(
  options: StackOptions,
  stackName?: string,
): Readonly<Record<string, string>> {
  const checked = checkStackOptions(options);
  const { lambdaTimeout, lambdaDurationThresholdPct } = checked;
  const parameters: Record<string, string | number | boolean | undefined> = {
    SnapshotWindows: checked.snapshotWindows,
    SnapshotRetentionDays: checked.usageRetentionDays,
    LambdaMemorySize: checked.lambdaMemory,
    LambdaTimeout: lambdaTimeout,
    EnableAggregator: checked.enableAggregator,
    PITRRecoveryPeriodDays: checked.pitrRecoveryDays,
    EnableAlarms: checked.enableAlarms,
    AlarmSNSTopicArn: checked.alarmSnsTopic,
    LogRetentionDays: checked.logRetentionDays,
    // Milliseconds.
    LambdaDurationThreshold: floorDiv(lambdaTimeout * 1000 * lambdaDurationThresholdPct, 100),
    PermissionBoundary: checked.permissionBoundary,
    RoleNameFormat: checked.roleNameFormat,
    EnableAuditArchival: checked.enableAuditArchival,
    AuditArchiveGlacierTransitionDays: checked.auditArchiveGlacierDays,
    EnableTracing: checked.enableTracing,
    EnableIAMRoles: checked.createIamRoles,
    EnableIAM: checked.createIam,
    AggregatorRoleArn: checked.aggregatorRoleArn,
    EnableDeletionProtection: checked.enableDeletionProtection,
    ...(stackName === undefined ? {} : nameParameters(checked, checkStackName(stackName))),
  };
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set.map(([name, value]) => [name, String(value)]));
}

function nameParameters(
  options: StackOptions,
  stackName: string,
): Record<string, string | undefined> {
  return {
    AggregatorRoleName: roleName(options, stackName, "aggr"),
    AppRoleName: roleName(options, stackName, "app"),
    AdminRoleName: roleName(options, stackName, "admin"),
    ReadOnlyRoleName: roleName(options, stackName, "read"),
    ProvisionerRoleName: roleName(options, stackName, "prov"),
    AcquireOnlyPolicyName: policyName(options, stackName, "acq"),
    FullAccessPolicyName: policyName(options, stackName, "full"),
    ReadOnlyPolicyName: policyName(options, stackName, "read"),
    NamespaceAcquirePolicyName: policyName(options, stackName, "ns-acq"),
    NamespaceFullAccessPolicyName: policyName(options, stackName, "ns-full"),
    NamespaceReadOnlyPolicyName: policyName(options, stackName, "ns-read"),
  };
}

function fillName(
  field: string,
  format: string,
  stackName: string,
  component: string,
  lengthMax: number,
): string {
  // A function, because `$` means something in the text of a replacement.
  const name = format.replace("{}", () => `${stackName}-${component}`);
  const excess = name.length - lengthMax;
  if (excess <= 0) return name;
  throw new ValidationError(
    field,
    name,
    `${show(name)} is ${excess} characters longer than the ${lengthMax} that AWS allows: with this ` +
      `format the stack's name may have at most ${Math.max(0, stackName.length - excess)}`,
  );
}
