/** A stack as CloudFormation describes it. */

import { type Aws, pagesOf } from "../client/aws.ts";
import type { Output } from "../client/aws-actions.ts";
import { AwsRefusal } from "../client/aws-failure.ts";

export interface Stack {
  /** Its ARN, by which it can still be found when it is deleted. */
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly statusReason: string | undefined;
  readonly createdAt: Date | undefined;
  readonly updatedAt: Date | undefined;
  readonly parameters: Readonly<Record<string, string>>;
  readonly tags: Readonly<Record<string, string>>;
  readonly outputs: Readonly<Record<string, string>>;
}

type Described = NonNullable<Output<"cloudformation:DescribeStacks">["Stacks"]>[number];

/** Finds a stack by its name or ARN; `undefined` where there is none. */
export async function findStack(aws: Aws, name: string): Promise<Stack | undefined> {
  try {
    const { Stacks = [] } = await aws.send("cloudformation:DescribeStacks", { StackName: name });
    const [found] = Stacks;
    return found === undefined ? undefined : toStack(found);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Yields all stacks of the region. */
export async function* everyStack(aws: Aws): AsyncGenerator<Stack> {
  for await (const { Stacks = [] } of pagesOf(aws, "cloudformation:DescribeStacks", {})) {
    yield* Stacks.map(toStack);
  }
}

/** Returns whether a stack is missing: CloudFormation has no error of its own for that. */
export function isMissing(error: unknown): boolean {
  return (
    error instanceof AwsRefusal &&
    error.awsCode === "ValidationError" &&
    /does not exist/i.test(error.detail)
  );
}

/** Returns whether a stack is only the shell for a change set: nothing was ever created. */
export function isShell(stack: Stack): boolean {
  return stack.status === "REVIEW_IN_PROGRESS";
}

export function isBusy(status: string): boolean {
  return status.endsWith("_IN_PROGRESS") && status !== "REVIEW_IN_PROGRESS";
}

function toStack(stack: Described): Stack {
  return {
    id: stack.StackId ?? stack.StackName ?? "",
    name: stack.StackName ?? "",
    status: stack.StackStatus ?? "",
    statusReason: stack.StackStatusReason,
    createdAt: stack.CreationTime,
    updatedAt: stack.LastUpdatedTime,
    parameters: record(
      (stack.Parameters ?? []).map((parameter) => [
        parameter.ParameterKey,
        parameter.ParameterValue,
      ]),
    ),
    tags: record((stack.Tags ?? []).map(({ Key, Value }) => [Key, Value])),
    outputs: record((stack.Outputs ?? []).map((output) => [output.OutputKey, output.OutputValue])),
  };
}

function record(
  entries: readonly (readonly [string | undefined, string | undefined])[],
): Record<string, string> {
  return Object.fromEntries(entries.map(([name = "", value = ""]) => [name, value]));
}
