/** Outputs of a stack, with the names that tables of the reference have. */

import { POLICY_NAME_PARAMETERS, type PolicyComponent } from "../options/stack-parameters.ts";
import { ALARM_OUTPUTS, ALARM_RESOURCES } from "./alarms.ts";
import { attribute, type CfnOutput, type CfnValue, choose, named, ref } from "./cfn.ts";
import { hasName } from "./conditions.ts";
import { BOUNDARY_ARN } from "./iam.ts";
import { policyId } from "./policies.ts";
import { TABLE } from "./table.ts";

function output(
  description: string,
  value: CfnValue,
  exportName: string,
  condition?: string,
): CfnOutput {
  return {
    Description: description,
    ...(condition === undefined ? {} : { Condition: condition }),
    Value: value,
    Export: { Name: named(exportName) },
  };
}

const AGGREGATOR = "DeployAggregator";
const ARCHIVE = "DeployAuditArchive";
const bucket = ref("AuditArchiveBucket");

const alarmOutputs = ALARM_OUTPUTS.map(([id, exportName]) => [
  `${id}Name`,
  output("Name of the alarm", ref(id), exportName, ALARM_RESOURCES[id]?.Condition),
]);

const policyOutputs = (Object.keys(POLICY_NAME_PARAMETERS) as PolicyComponent[]).map(
  (component) => [
    `${policyId(component)}Arn`,
    output(
      `Policy ${component}`,
      ref(policyId(component)),
      `${policyId(component)}Arn`,
      "DeployIAM",
    ),
  ],
);

const roleOutputs = ["AppRole", "AdminRole", "ReadOnlyRole"].flatMap((id) => [
  [`${id}Arn`, output("ARN of the role", attribute(id, "Arn"), `${id}Arn`, "DeployIAMRoles")],
  [`${id}Name`, output("Name of the role", ref(id), `${id}Name`, "DeployIAMRoles")],
]);

/**
 * Returns an output; CloudFormation refuses to export an empty text, and the whole stack with it.
 */
function settingOutput(description: string, parameter: string): CfnOutput {
  return output(description, ref(parameter), parameter, hasName(parameter));
}

export const OUTPUTS: Readonly<Record<string, CfnOutput>> = {
  TableName: output("Name of the table", ref(TABLE), "TableName"),
  TableArn: output("ARN of the table", attribute(TABLE, "Arn"), "TableArn"),
  StreamArn: output("ARN of its stream", attribute(TABLE, "StreamArn"), "StreamArn"),
  AuditRetentionDays: output(
    "Days that audit events are kept",
    ref("AuditRetentionDays"),
    "AuditRetentionDays",
  ),
  PermissionBoundaryArn: output(
    "Boundary of the roles",
    BOUNDARY_ARN,
    "PermissionBoundaryArn",
    "HasPermissionBoundary",
  ),
  RoleNameFormat: settingOutput("How roles are named", "RoleNameFormat"),
  PolicyNameFormat: settingOutput("How policies are named", "PolicyNameFormat"),
  AggregatorFunctionArn: output(
    "ARN of the aggregator",
    attribute("AggregatorFunction", "Arn"),
    "AggregatorArn",
    AGGREGATOR,
  ),
  AggregatorFunctionName: output(
    "Name of the aggregator",
    ref("AggregatorFunction"),
    "AggregatorName",
    AGGREGATOR,
  ),
  AggregatorDLQUrl: output(
    "Where changes go that were given up",
    ref("AggregatorDLQ"),
    "DLQUrl",
    AGGREGATOR,
  ),
  AggregatorDLQArn: output("Its ARN", attribute("AggregatorDLQ", "Arn"), "DLQArn", AGGREGATOR),
  AlarmTopicArn: output(
    "Where alarms are sent",
    choose("HasSNSTopic", ref("AlarmSNSTopicArn"), ref("AlarmTopic")),
    "AlarmTopicArn",
    "DeployAlarms",
  ),
  ...Object.fromEntries(alarmOutputs),
  AuditArchiveBucketName: output(
    "Archive of the audit log",
    bucket,
    "AuditArchiveBucketName",
    ARCHIVE,
  ),
  AuditArchiveBucketArn: output(
    "Its ARN",
    attribute("AuditArchiveBucket", "Arn"),
    "AuditArchiveBucketArn",
    ARCHIVE,
  ),
  ...Object.fromEntries(policyOutputs),
  ...Object.fromEntries(roleOutputs),
  ProvisionerFunctionArn: output(
    "ServiceToken of Custom::ZaeLimiterLimits",
    attribute("ProvisionerFunction", "Arn"),
    "ProvisionerArn",
    "DeployProvisioner",
  ),
  ProvisionerFunctionName: output(
    "Name of the provisioner",
    ref("ProvisionerFunction"),
    "ProvisionerName",
    "DeployProvisioner",
  ),
};
