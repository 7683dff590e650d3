/** The Lambda behind `Custom::ZaeLimiterLimits`. */

import { attribute, type CfnResource, STACK_NAME } from "./cfn.ts";
import {
  allow,
  indexArn,
  lambdaRole,
  roleNameOf,
  TABLE_ACTIONS,
  TABLE_ARN,
  tableKeyUse,
  writeLogs,
} from "./iam.ts";
import { functionName, lambdaResource, logGroupResource } from "./lambda.ts";
import { APPLICATION_TAG } from "./table.ts";

/** Many entities in one manifest take their time. */
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

export const PROVISIONER_RESOURCES: Readonly<Record<string, CfnResource>> = {
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
