/** The parts that roles and policies are made of. */

import {
  POLICY_NAME_PARAMETERS,
  type PolicyComponent,
  ROLE_NAME_PARAMETERS,
  type RoleComponent,
} from "../options/stack-parameters.ts";
import { attribute, type CfnValue, choose, named, onlyIf, ref, sub } from "./cfn.ts";
import { hasName } from "./conditions.ts";
import { TABLE } from "./table.ts";

/** The actions of a limiter on its table. */
export const TABLE_ACTIONS = [
  "GetItem",
  "BatchGetItem",
  "Query",
  "PutItem",
  "UpdateItem",
  "DeleteItem",
  "ConditionCheckItem",
] as const;
export const TABLE_ARN = attribute(TABLE, "Arn");

/** Returns the ARN of all indexes of the table, or of one. */
export function indexArn(name = "*"): CfnValue {
  return sub(`\${${TABLE}.Arn}/index/${name}`);
}

export interface Permission {
  readonly sid: string;
  /** In the table's service unless they name another. */
  readonly actions: readonly string[];
  readonly resource: CfnValue;
  readonly conditions?: CfnValue | undefined;
}

export function allow({ sid, actions, resource, conditions }: Permission): CfnValue {
  return {
    Sid: sid,
    Effect: "Allow",
    Action: actions.map((action) => (action.includes(":") ? action : `dynamodb:${action}`)),
    Resource: resource,
    Condition: conditions,
  };
}

export function policyDocument(statements: readonly CfnValue[]): CfnValue {
  return { Version: "2012-10-17", Statement: statements };
}

/**
 * Returns the condition that partition keys of a request match. `ForAllValues` alone also passes a
 * request that names none, such as a scan, so there must be one.
 */
export function leadingKeys(...patterns: readonly string[]): CfnValue {
  return {
    "ForAllValues:StringLike": { "dynamodb:LeadingKeys": patterns },
    Null: { "dynamodb:LeadingKeys": "false" },
  };
}

/** The uses of the key of a table by DynamoDB on behalf of a reader or writer. */
const KEY_READING = ["Decrypt", "DescribeKey"] as const;
const KEY_WRITING = [...KEY_READING, "Encrypt", "ReEncrypt*", "GenerateDataKey*"] as const;

/** Allows the use of a customer key, which reading or writing an encrypted table needs. */
export function tableKeyUse(purpose: "read" | "write"): CfnValue {
  return keyUse("dynamodb", ...(purpose === "read" ? KEY_READING : KEY_WRITING));
}

export function keyUse(service: "dynamodb" | "s3", ...actions: readonly string[]): CfnValue {
  return onlyIf(
    "HasKMSKey",
    allow({
      sid: service === "s3" ? "UseKeyForArchive" : "UseKeyForTable",
      actions: actions.map((action) => `kms:${action}`),
      resource: ref("KMSKeyArn"),
      conditions: {
        StringEquals: { "kms:ViaService": sub(`${service}.\${AWS::Region}.\${AWS::URLSuffix}`) },
      },
    }),
  );
}

export function roleNameOf(component: RoleComponent): CfnValue {
  const parameter = ROLE_NAME_PARAMETERS[component];
  return choose(hasName(parameter), ref(parameter), named(component));
}

export function policyNameOf(component: PolicyComponent): CfnValue {
  const parameter = POLICY_NAME_PARAMETERS[component];
  return choose(hasName(parameter), ref(parameter), named(component));
}

/** The boundary as an ARN, where there is one. */
export const BOUNDARY_ARN = choose(
  "PermissionBoundaryIsArn",
  ref("PermissionBoundary"),
  sub(`arn:\${AWS::Partition}:iam::\${AWS::AccountId}:policy/\${PermissionBoundary}`),
);

export const PERMISSIONS_BOUNDARY = onlyIf("HasPermissionBoundary", BOUNDARY_ARN);

/** Returns the trust of a role that only the given principal may assume. */
export function trust(principal: CfnValue): CfnValue {
  return policyDocument([{ Effect: "Allow", Principal: principal, Action: "sts:AssumeRole" }]);
}

/**
 * Returns the properties of the role of a Lambda: its permissions, under the name of its policy.
 */
export function lambdaRole(
  policyName: string,
  statements: readonly CfnValue[],
): Readonly<Record<string, CfnValue>> {
  return {
    AssumeRolePolicyDocument: trust({ Service: "lambda.amazonaws.com" }),
    PermissionsBoundary: PERMISSIONS_BOUNDARY,
    Policies: [{ PolicyName: policyName, PolicyDocument: policyDocument(statements) }],
  };
}

/** Allows writing to a log group that the stack has made. */
export function writeLogs(logGroup: string): CfnValue {
  return allow({
    sid: "WriteLogs",
    actions: ["logs:CreateLogStream", "logs:PutLogEvents"],
    resource: attribute(logGroup, "Arn"),
  });
}
