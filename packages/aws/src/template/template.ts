/** The template of a stack, and how it is printed. */

import { ROLE_NAME_PARAMETERS } from "../options/stack-parameters.ts";
import { AGGREGATOR_RESOURCES } from "./aggregator.ts";
import { ALARM_RESOURCES } from "./alarms.ts";
import { attribute, type CfnResource, type CfnTemplate, ref, STACK_NAME, sub } from "./cfn.ts";
import { CONDITIONS } from "./conditions.ts";
import {
  allow,
  indexArn,
  lambdaRole,
  PERMISSIONS_BOUNDARY,
  roleNameOf,
  TABLE_ACTIONS,
  TABLE_ARN,
  tableKeyUse,
  trust,
  writeLogs,
} from "./iam.ts";
import { functionName, lambdaResource, logGroupResource } from "./lambda.ts";
import { OUTPUTS } from "./outputs.ts";
import { PARAMETERS } from "./parameters.ts";
import { POLICY_RESOURCES, policyId } from "./policies.ts";
import { APPLICATION_TAG, TABLE, type TableVariant, tableResource } from "./table.ts";
import { toYaml } from "./yaml.ts";

/**
 * Returns the template of every stack; options are its parameters.
 *
 * @example
 * ```ts
 * import { stackTemplate } from 'zae-limiter/infra';
 * const { Resources } = stackTemplate();
 * console.log(Resources.LimiterTable?.Type); // AWS::DynamoDB::Table
 * ```
 */
export function stackTemplate(variant?: TableVariant): CfnTemplate {
  return {
    AWSTemplateFormatVersion: "2010-09-09",
    Description: "zae-limiter: a table for rate limits, and what counts and archives its changes",
    Parameters: PARAMETERS,
    Conditions: CONDITIONS,
    Resources: {
      [TABLE]: tableResource(variant),
      ...AGGREGATOR_RESOURCES,
      ...PROVISIONER_RESOURCES,
      ...POLICY_RESOURCES,
      ...ROLE_RESOURCES,
      ...ALARM_RESOURCES,
      ...DASHBOARD_RESOURCES,
    },
    Outputs: OUTPUTS,
  };
}

/**
 * Returns the template as text.
 *
 * @example
 * ```ts
 * import { printTemplate, stackTemplate } from 'zae-limiter/infra';
 * const yaml = printTemplate(stackTemplate(), 'yaml');
 * console.log(yaml.split('\n')[0]); // AWSTemplateFormatVersion: "2010-09-09"
 * ```
 */
export function printTemplate(template: CfnTemplate, format: "yaml" | "json"): string {
  if (format === "json") return `${JSON.stringify(template, undefined, 2)}\n`;
  return toYaml(template);
}

/** Returns the template as short as it can be, to be sent. */
export function compactTemplate(template: object): string {
  return JSON.stringify(template);
}

/** Optional roles: every principal of the account that may assume roles may assume them. */
const ROLES = [
  { component: "app", policy: "acq", tag: "app" },
  { component: "admin", policy: "full", tag: "admin" },
  { component: "read", policy: "read", tag: "readonly" },
] as const;

/** The parameter `AppRoleName` names the role `AppRole`. */
const ROLE_RESOURCES: Readonly<Record<string, CfnResource>> = Object.fromEntries(
  ROLES.map(({ component, policy, tag }) => [
    ROLE_NAME_PARAMETERS[component].replace(/Name$/, ""),
    {
      Type: "AWS::IAM::Role",
      Condition: "DeployIAMRoles",
      Properties: {
        RoleName: roleNameOf(component),
        AssumeRolePolicyDocument: trust({
          AWS: sub(`arn:\${AWS::Partition}:iam::\${AWS::AccountId}:root`),
        }),
        ManagedPolicyArns: [ref(policyId(policy))],
        PermissionsBoundary: PERMISSIONS_BOUNDARY,
        Tags: [APPLICATION_TAG, { Key: "Role", Value: tag }],
      },
    },
  ]),
);

/** Seconds for a manifest with many entities. */
const TIMEOUT_S = 300;

const ProvisionerRole: CfnResource = {
  Type: "AWS::IAM::Role",
  Condition: "DeployProvisioner",
  Properties: {
    RoleName: roleNameOf("prov"),
    ...lambdaRole("provisioner", [
      writeLogs("ProvisionerLogGroup"),
      allow({
        sid: "UseTable",
        actions: TABLE_ACTIONS,
        resource: [TABLE_ARN, indexArn()],
      }),
      tableKeyUse("write"),
    ]),
    Tags: [APPLICATION_TAG],
  },
};

/** The Lambda behind `Custom::ZaeLimiterLimits`. */
const PROVISIONER_RESOURCES: Readonly<Record<string, CfnResource>> = {
  ProvisionerLogGroup: logGroupResource("DeployProvisioner", "provisioner"),
  ProvisionerRole,
  ProvisionerFunction: lambdaResource({
    condition: "DeployProvisioner",
    name: functionName("provisioner"),
    role: attribute("ProvisionerRole", "Arn"),
    logGroup: "ProvisionerLogGroup",
    memory: 256,
    timeout: TIMEOUT_S,
    codeCondition: "HasProvisionerCode",
    codeKey: "ProvisionerCodeKey",
    variables: { TABLE_NAME: STACK_NAME },
  }),
};

/**
 * A metric in the notation of CloudWatch: the namespace, the name, and dimensions by name and
 * value; a dot repeats the value of the previous metric.
 */
type Metric = readonly (string | { readonly stat: string })[];

interface Widget {
  readonly title: string;
  readonly stat: "Sum" | "Maximum" | "Average";
  readonly metrics: readonly Metric[];
}

// Names and not references: the aggregator need not be part of the stack.
const TABLE_NAME = ["TableName", `\${AWS::StackName}`];
const FUNCTION_NAME = ["FunctionName", `\${AWS::StackName}-\${AggregatorSuffix}`];
const QUEUE_NAME = ["QueueName", `\${AWS::StackName}-aggregator-dlq`];

/** A CloudWatch dashboard of the table, the aggregator and its queue of failures. */
const WIDGETS: readonly Widget[] = [
  {
    title: "Capacity units",
    stat: "Sum",
    metrics: [
      ["AWS/DynamoDB", "ConsumedWriteCapacityUnits", ...TABLE_NAME],
      [".", "ConsumedReadCapacityUnits", ".", "."],
    ],
  },
  {
    title: "Throttled",
    stat: "Sum",
    metrics: [
      ["AWS/DynamoDB", "WriteThrottleEvents", ...TABLE_NAME],
      [".", "ReadThrottleEvents", ".", "."],
    ],
  },
  {
    title: "Aggregator: delay and duration, ms",
    stat: "Maximum",
    metrics: [
      ["AWS/Lambda", "IteratorAge", ...FUNCTION_NAME],
      [".", "Duration", ".", "."],
    ],
  },
  {
    title: "Not counted",
    stat: "Sum",
    metrics: [
      ["AWS/Lambda", "Errors", ...FUNCTION_NAME],
      ["AWS/SQS", "ApproximateNumberOfMessagesVisible", ...QUEUE_NAME, { stat: "Maximum" }],
      ["zae-limiter", "skipped", "Table", `\${AWS::StackName}`],
    ],
  },
];

function body(): string {
  const widgets = WIDGETS.map((properties) => ({
    type: "metric",
    width: 12,
    properties: { ...properties, region: `\${AWS::Region}` },
  }));
  return JSON.stringify({ widgets });
}

const DASHBOARD_RESOURCES: Readonly<Record<string, CfnResource>> = {
  Dashboard: {
    Type: "AWS::CloudWatch::Dashboard",
    Condition: "DeployDashboard",
    Properties: { DashboardName: STACK_NAME, DashboardBody: sub(body()) },
  },
};
