/** Gives a stack the tags by which it is found, and changes nothing else. */

import { StackOperationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { findStack, type Stack } from "../stack/stack.ts";
import { firstCause, latestEvent, watchStack } from "../stack/stack-events.ts";
import { hasDiscoveryTags, settableTags, stackTags } from "../stack/stack-tags.ts";
import {
  changeSetName,
  createChangeSet,
  executeChangeSet,
  type NewChangeSet,
  orDiscard,
} from "./change-set.ts";
import type { DeployContext } from "./deploy-context.ts";

/**
 * Returns true when tags were missing and have been added, false when they were there before.
 * Throws when they are missing and cannot be added. `lambdaVersion` is what the Lambdas run.
 */
export async function ensureTags(
  context: DeployContext,
  stack: Stack,
  lambdaVersion?: string,
): Promise<boolean> {
  if (hasDiscoveryTags(stack.name, stack.tags)) return false;
  const { aws, timer } = context;
  const wanted: NewChangeSet = {
    stackName: stack.name,
    name: changeSetName(context),
    type: "UPDATE",
    template: "previous",
    parameters: {},
    // What is not named would fall back to the template's default.
    kept: Object.keys(stack.parameters),
    tags: stackTags(stack.name, settableTags(stack.tags), lambdaVersion),
    adopt: false,
  };
  const changeSet = await createChangeSet(aws, wanted, timer);
  if (changeSet.changes === undefined) {
    const now = await findStack(aws, stack.id);
    // Another deployment may have set them in the meantime.
    if (now !== undefined && hasDiscoveryTags(stack.name, now.tags)) return false;
    throw new StackOperationError(
      stack.name,
      "the tags are missing, and CloudFormation reports nothing to change",
    );
  }
  const before = await orDiscard(aws, wanted, changeSet, async () => {
    const latest = await latestEvent(aws, stack.id);
    await executeChangeSet(aws, stack.name, changeSet);
    return latest;
  });
  const { stack: after, events } = await watchStack(aws, stack.id, before, context, "changed");
  if (after?.status === "UPDATE_COMPLETE") return true;
  const reason = firstCause(events)?.reason ?? after?.status ?? "the stack is gone";
  throw new StackOperationError(stack.name, `the tags could not be set: ${reason}`);
}
