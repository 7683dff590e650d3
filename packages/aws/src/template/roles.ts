/** Optional roles: every principal of the account that may assume roles may assume them. */

import { ROLE_NAME_PARAMETERS } from "../options/stack-parameters.ts";
import { type CfnResource, ref, sub } from "./cfn.ts";
import { PERMISSIONS_BOUNDARY, roleNameOf, trust } from "./iam.ts";
import { policyId } from "./policies.ts";
import { APPLICATION_TAG } from "./table.ts";

const ROLES = [
  { component: "app", policy: "acq", tag: "app" },
  { component: "admin", policy: "full", tag: "admin" },
  { component: "read", policy: "read", tag: "readonly" },
] as const;

/** `AppRoleName` names `AppRole`. */
export const ROLE_RESOURCES: Readonly<Record<string, CfnResource>> = Object.fromEntries(
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
