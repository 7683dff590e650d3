/**
 * Whether a stack belongs to this library. The name alone proves nothing: a stack of other software
 * may have a chosen or mistyped name, and is neither changed nor deleted. Our stacks are tagged;
 * those of the Python library may not be, but have our table and only resources that belong to it.
 */

import { isPlainObject } from "@zae-limiter/limiter/domain/check.ts";
import { StackOperationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Aws } from "../client/aws.ts";
import { isLimiterTable, type LiveTable } from "../stack/live-table.ts";
import { isShell, type Stack } from "../stack/stack.ts";
import { isMarked, MANAGED_TAG } from "../stack/stack-tags.ts";
import { stackTemplate } from "../template/template.ts";
import { type DeployedResource, deployedTemplate } from "./deployed-template.ts";

const TABLE_TYPE = "AWS::DynamoDB::Table";
/** Types that templates of the Python library, or later ones of ours, may have as well. */
const RELATED_TYPES: readonly string[] = [
  "AWS::IAM::Policy",
  "AWS::Lambda::Permission",
  "AWS::S3::BucketPolicy",
];

/** Throws when a stack does not belong to this library. Call it before any change. */
export async function refuseForeign(aws: Aws, stack: Stack): Promise<void> {
  const sign = await foreignSign(aws, stack);
  if (sign === undefined) return;
  throw new StackOperationError(
    stack.name,
    `there is a stack of that name, and it is not one of ours: ${sign}. Nothing was changed; ` +
      "choose another name",
  );
}

export async function isOurs(aws: Aws, stack: Stack): Promise<boolean> {
  return (await foreignSign(aws, stack)) === undefined;
}

/** Returns what shows that a stack is not ours; `undefined` for ours. */
async function foreignSign(aws: Aws, stack: Stack): Promise<string | undefined> {
  if (isMarked(stack.name, stack.tags) || isShell(stack)) return undefined;
  const resources = Object.values((await deployedTemplate(aws, stack.id)).resources);
  const mark = `${MANAGED_TAG.key}=${MANAGED_TAG.value}`;
  if (!resources.some(isOurTable)) return `it has neither the tag ${mark} nor our table`;
  const ours = new Set<unknown>(RELATED_TYPES);
  for (const { Type } of Object.values(stackTemplate().Resources)) ours.add(Type);
  // An application may hold our table among other things.
  const other = resources.find(({ Type }) => !ours.has(Type));
  return other && `it has no tag ${mark}, and more in it than ours have (${String(other.Type)})`;
}

function isOurTable({ Type, Properties }: DeployedResource): boolean {
  if (Type !== TABLE_TYPE || !isPlainObject(Properties)) return false;
  const { KeySchema, GlobalSecondaryIndexes } = Properties;
  return (
    Array.isArray(KeySchema) &&
    Array.isArray(GlobalSecondaryIndexes) &&
    isLimiterTable({ KeySchema, GlobalSecondaryIndexes } as LiveTable)
  );
}
