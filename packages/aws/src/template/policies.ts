/**
 * The policies to attach to one's own roles: three for the whole table, and the same three for the
 * namespace that a principal is tagged with. Transactions need no permission of their own: AWS asks
 * for that of each write in them.
 */

import { POLICY_NAME_PARAMETERS, type PolicyComponent } from "../options/stack-parameters.ts";
import { type CfnResource, type CfnValue, sub } from "./cfn.ts";
import {
  allow,
  indexArn,
  leadingKeys,
  policyDocument,
  policyNameOf,
  TABLE_ARN,
  tableKeyUse,
} from "./iam.ts";

/** The tag of a principal whose value is the id of its namespace. */
const NAMESPACE_ID = `\${aws:PrincipalTag/zael_namespace_id}`;
/** The records of processes that hold slots, in all namespaces; their names cannot be guessed. */
const HOLDERS = "_/HOLDER#*";
/** The version record and the registry of namespaces. */
const REGISTRY = "_/SYSTEM#";
/**
 * Keys that an acquire reads: limits, entities, buckets and deletion marks, and for a gateway
 * notes; no usage, no audit log.
 */
const READ_BY_ACQUIRE = ["SYSTEM#", "RESOURCE#*", "ENTITY#*", "BUCKET#*", "DELETED#*", "NOTE#*"];
/** Keys that an acquire writes: buckets, for a gateway notes, and alerts of quotas. */
const WRITTEN_BY_ACQUIRE = ["BUCKET#*", "NOTE#*", "ALERT#*"];

const READ = ["GetItem", "BatchGetItem", "Query"];
const WRITE = ["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "ConditionCheckItem"];
const READ_KEYS = ["GetItem", "BatchGetItem"];
const WRITE_KEYS = ["PutItem", "UpdateItem"];
const WHOLE_TABLE: CfnValue = [TABLE_ARN, indexArn()];

/** Acquires and adjusts, with buckets, notes and alerts as it goes; in every namespace, or one. */
function acquire(namespaceId: string): CfnValue[] {
  return [
    allow({
      sid: "ReadLimitsAndBuckets",
      // The Python library checks the record of the owner when it creates a bucket.
      actions: [...READ_KEYS, "ConditionCheckItem"],
      resource: TABLE_ARN,
      conditions: leadingKeys(...READ_BY_ACQUIRE.map((keys) => `${namespaceId}/${keys}`), HOLDERS),
    }),
    allow({
      sid: "WriteBucketsNotesAlerts",
      actions: WRITE_KEYS,
      resource: TABLE_ARN,
      conditions: leadingKeys(
        ...WRITTEN_BY_ACQUIRE.map((keys) => `${namespaceId}/${keys}`),
        HOLDERS,
      ),
    }),
    // As the Python library finds the buckets of an entity or a resource.
    allow({
      sid: "FindBuckets",
      actions: ["Query"],
      resource: ["GSI2", "GSI3"].map(indexArn),
      conditions: leadingKeys(`${namespaceId}/RESOURCE#*`, `${namespaceId}/ENTITY#*`),
    }),
  ];
}

/** Looks up a namespace by its name and the version of the table; lists and changes nothing. */
function readRegistry(...more: readonly string[]): CfnValue {
  return allow({
    sid: "ReadRegistry",
    actions: [...READ_KEYS, ...more],
    resource: TABLE_ARN,
    conditions: leadingKeys(REGISTRY),
  });
}

/** Allows actions in the table and indexes of one namespace. GSI4 has its bare id as partition. */
function withinNamespace(actions: readonly string[], ...more: readonly string[]): CfnValue[] {
  return [
    allow({
      sid: "UseNamespace",
      actions,
      resource: [TABLE_ARN, ...["GSI1", "GSI2", "GSI3"].map(indexArn)],
      conditions: leadingKeys(`${NAMESPACE_ID}/*`, ...more),
    }),
    allow({
      sid: "ListNamespace",
      actions: ["Query"],
      resource: indexArn("GSI4"),
      conditions: leadingKeys(NAMESPACE_ID),
    }),
  ];
}

const STATEMENTS: Readonly<Record<PolicyComponent, readonly CfnValue[]>> = {
  acq: acquire("*"),
  full: [
    allow({
      sid: "UseTable",
      actions: [...READ, "Scan", "DescribeTable", ...WRITE],
      resource: WHOLE_TABLE,
    }),
  ],
  read: [
    allow({ sid: "ReadTable", actions: [...READ, "Scan", "DescribeTable"], resource: WHOLE_TABLE }),
  ],
  "ns-acq": [...acquire(NAMESPACE_ID), readRegistry()],
  // A change of limits checks in the same transaction that its namespace still exists.
  "ns-full": [...withinNamespace([...READ, ...WRITE], HOLDERS), readRegistry("ConditionCheckItem")],
  "ns-read": [...withinNamespace(READ), readRegistry()],
};

const DESCRIPTIONS: Readonly<Record<PolicyComponent, string>> = {
  acq: "Acquire and adjust",
  full: "Read and write everything",
  read: "Read everything",
  "ns-acq": "Acquire and adjust in the namespace of the tag zael_namespace_id",
  "ns-full": "Read and write in the namespace of the tag zael_namespace_id",
  "ns-read": "Read in the namespace of the tag zael_namespace_id",
};

/** Returns the id of a policy: `AcquireOnlyPolicyName` names `AcquireOnlyPolicy`. */
export function policyId(component: PolicyComponent): string {
  return POLICY_NAME_PARAMETERS[component].replace(/Name$/, "");
}

export const POLICY_RESOURCES: Readonly<Record<string, CfnResource>> = Object.fromEntries(
  (Object.keys(STATEMENTS) as PolicyComponent[]).map((component) => [
    policyId(component),
    {
      Type: "AWS::IAM::ManagedPolicy",
      Condition: "DeployIAM",
      Properties: {
        ManagedPolicyName: policyNameOf(component),
        Description: sub(`${DESCRIPTIONS[component]}: table \${AWS::StackName}`),
        PolicyDocument: policyDocument([
          ...STATEMENTS[component],
          tableKeyUse(component.endsWith("read") ? "read" : "write"),
        ]),
      },
    },
  ]),
);
