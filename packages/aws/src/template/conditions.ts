/** The conditions that parameters decide. */

import { POLICY_NAME_PARAMETERS, ROLE_NAME_PARAMETERS } from "../options/stack-parameters.ts";
import { all, type CfnValue, condition, either, equals, not, ref } from "./cfn.ts";

function isTrue(parameter: string): CfnValue {
  return equals(ref(parameter), "true");
}

export function isSet(parameter: string): CfnValue {
  return not(equals(ref(parameter), ""));
}

/** The boundary of roles is given as an ARN, and not as a name. */
export const BOUNDARY_IS_ARN = equals(
  { "Fn::Select": [0, { "Fn::Split": [":", ref("PermissionBoundary")] }] },
  "arn",
);

/** Returns the condition that a name, or a format of names, was given for roles or policies. */
export function hasName(parameter: string): string {
  return `Has${parameter}`;
}

const NAMES = [
  "RoleNameFormat",
  "PolicyNameFormat",
  ...Object.values(ROLE_NAME_PARAMETERS),
  ...Object.values(POLICY_NAME_PARAMETERS),
];

export const CONDITIONS: Readonly<Record<string, CfnValue>> = {
  DeployIAM: isTrue("EnableIAM"),
  DeployIAMRoles: all(isTrue("EnableIAMRoles"), condition("DeployIAM")),
  DeployAlarms: isTrue("EnableAlarms"),
  DeployDashboard: isTrue("EnableDashboard"),
  ProtectTable: isTrue("EnableDeletionProtection"),
  HasPITRRecoveryPeriod: isSet("PITRRecoveryPeriodDays"),
  HasKMSKey: isSet("KMSKeyArn"),
  HasSNSTopic: isSet("AlarmSNSTopicArn"),
  HasPermissionBoundary: isSet("PermissionBoundary"),
  PermissionBoundaryIsArn: BOUNDARY_IS_ARN,
  HasAggregatorRole: isSet("AggregatorRoleArn"),
  HasAggregatorCode: all(isSet("LambdaCodeBucket"), isSet("AggregatorCodeKey")),
  HasProvisionerCode: all(isSet("LambdaCodeBucket"), isSet("ProvisionerCodeKey")),
  // Without IAM in the stack, a Lambda needs a role from elsewhere.
  DeployAggregator: all(
    isTrue("EnableAggregator"),
    either(condition("DeployIAM"), condition("HasAggregatorRole")),
  ),
  CreateAggregatorRole: all(
    isTrue("EnableAggregator"),
    condition("DeployIAM"),
    not(condition("HasAggregatorRole")),
  ),
  DeployAuditArchive: all(condition("DeployAggregator"), isTrue("EnableAuditArchival")),
  LockAuditArchive: all(
    condition("DeployAuditArchive"),
    not(equals(ref("AuditArchiveLockDays"), "0")),
  ),
  TraceAggregator: all(condition("DeployAggregator"), isTrue("EnableTracing")),
  DeployProvisioner: all(isTrue("EnableProvisioner"), condition("DeployIAM")),
  DeployAggregatorAlarms: all(condition("DeployAggregator"), condition("DeployAlarms")),
  DeployProvisionerAlarms: all(condition("DeployProvisioner"), condition("DeployAlarms")),
  CreateAlarmTopic: all(condition("DeployAlarms"), not(condition("HasSNSTopic"))),
  SubscribeEmail: all(condition("CreateAlarmTopic"), isSet("AlarmEmail")),
  ...Object.fromEntries(NAMES.map((parameter) => [hasName(parameter), isSet(parameter)])),
};
