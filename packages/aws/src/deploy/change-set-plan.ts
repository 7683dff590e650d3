/** Plans a change of a stack as a change set, shows what it does, and carries it out. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { StackOperationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Aws } from "../client/aws.ts";
import type { LambdaName } from "../lambda/function-names.ts";
import type { StackOptions } from "../options/stack-options.ts";
import { removeStack } from "../stack/remove-stack.ts";
import { findStack, isBusy, isShell, type Stack } from "../stack/stack.ts";
import {
  failureEvents,
  firstCause,
  latestEvent,
  neverStood,
  type StackEvent,
  watchStack,
} from "../stack/stack-events.ts";
import { compactTemplate } from "../template/template.ts";
import {
  type ChangeSet,
  changeSetName,
  createChangeSet,
  discardChangeSet,
  executeChangeSet,
  type NewChangeSet,
  orDiscard,
} from "./change-set.ts";
import type { DeployContext } from "./deploy-context.ts";
import { type Draft, draftCreation, draftUpdate } from "./draft.ts";
import { refuseForeign } from "./ownership.ts";
import { type DeployPlan, intentFor, refuseLoss, settingChanges, tagChanges } from "./plan.ts";

/** A plan, and the change set that would carry it out. */
export interface PreparedPlan {
  readonly plan: DeployPlan;
  readonly wanted: NewChangeSet;
  readonly changeSet: ChangeSet;
  /** The Lambdas whose code is the Python library's until now. */
  readonly foreignCode: readonly LambdaName[];
}

/** The parts of a plan that are needed to carry it out. */
interface Executable extends Pick<PreparedPlan, "wanted" | "changeSet"> {
  readonly plan: Pick<DeployPlan, "stackName" | "kind">;
}

/** Stacks that failed before anything was created: they can only be deleted. */
const STILLBORN: readonly string[] = ["ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED"];
const STUCK: readonly string[] = ["UPDATE_ROLLBACK_FAILED", "DELETE_FAILED"];
const GOOD: readonly string[] = ["CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"];

/** Works out what would change. Nothing changes yet, and nothing stays if it throws. */
export async function preparePlan(
  context: DeployContext,
  stackName: string,
  given: StackOptions,
  reset: boolean,
): Promise<PreparedPlan> {
  // Typos are refused before anything is asked or changed.
  intentFor(stackName, given, undefined, reset);
  const { aws } = context;
  const deployed = await usableStack(context, stackName);
  const wish = { stackName, given, reset };
  const draft = await (deployed === undefined
    ? draftCreation(aws, wish)
    : draftUpdate(aws, wish, deployed));
  return propose(context, stackName, draft, deployed);
}

/** Creates the change set of a draft, and returns what CloudFormation says that it does. */
async function propose(
  context: DeployContext,
  stackName: string,
  draft: Draft,
  deployed: Stack | undefined,
): Promise<PreparedPlan> {
  const { aws, timer } = context;
  const { intent, code, adopts, addsIndex } = draft;
  const region = await aws.region();
  const uploaded = await uploadTemplate(aws, compactTemplate(draft.template), context);
  const wanted: NewChangeSet = {
    stackName,
    name: changeSetName(context),
    type: deployed === undefined ? "CREATE" : "UPDATE",
    template: uploaded.template,
    parameters: intent.parameters,
    kept: intent.kept,
    tags: intent.tags,
    adopt: adopts,
  };
  const changeSet = await createChangeSet(aws, wanted, timer).catch(async (error: Error) => {
    await uploaded.remove();
    throw error;
  });
  const plan: DeployPlan = {
    kind: kindOf(changeSet, deployed, code),
    stackName,
    region,
    account: accountIn(changeSet.stackId) ?? accountIn(deployed?.id ?? ""),
    settings: settingChanges(intent, deployed),
    tags: tagChanges(intent, deployed),
    resources: changeSet.changes ?? [],
    adoptsTable: adopts,
    addsIndex,
    code,
    options: intent.options,
    notes: intent.notes,
  };
  await orDiscard(aws, wanted, changeSet, async () => {
    await uploaded.remove();
    refuseLoss(stackName, plan.resources, addsIndex !== undefined);
  });
  return { plan, wanted, changeSet, foreignCode: draft.foreignCode };
}

/** Deletes the change set of a plan. */
export async function discardPlan({ aws }: DeployContext, prepared: Executable): Promise<void> {
  if (prepared.changeSet.changes === undefined) return;
  await discardChangeSet(aws, prepared.wanted, prepared.changeSet);
}

/** Starts the change, which `executePlan` follows. A change that cannot start is discarded. */
export async function startPlan({ aws }: DeployContext, prepared: Executable): Promise<void> {
  const { wanted, changeSet } = prepared;
  await orDiscard(aws, wanted, changeSet, () => executeChangeSet(aws, wanted.stackName, changeSet));
}

/** Carries a plan out. A stack that failed to be created does not stay behind. */
export async function executePlan(context: DeployContext, prepared: Executable): Promise<Stack> {
  const { aws } = context;
  const { wanted, changeSet } = prepared;
  const { stackName, kind } = prepared.plan;
  const { stackId } = changeSet;
  const before = await orDiscard(aws, wanted, changeSet, () => latestEvent(aws, stackId));
  await startPlan(context, prepared);
  const { stack, events } = await watchStack(aws, stackId, before, context, "changed");
  if (stack !== undefined && GOOD.includes(stack.status)) return stack;
  const failure = new StackOperationError(
    stackName,
    explain(kind, stack, events),
    failureEvents(events),
  );
  // Any other stack has not failed, or another client is working on it.
  if (kind === "create" && stack !== undefined && STILLBORN.includes(stack.status)) {
    context.onStep?.(`Removing what was made of ${stackName}`);
    await removeStack(context, stackId, stackName).catch((cause: Error) => {
      throw new StackOperationError(
        stackName,
        `${failure.reason}; and what was made of it could not be removed: ${cause.message}`,
        failure.events,
        { cause: failure },
      );
    });
  }
  throw failure;
}

/** Returns the account in `arn:aws:cloudformation:<region>:<account>:stack/…`. */
function accountIn(arn: string): string | undefined {
  return arn.split(":")[4];
}

function kindOf(
  changeSet: ChangeSet,
  deployed: Stack | undefined,
  code: readonly LambdaName[],
): DeployPlan["kind"] {
  if (deployed === undefined) return "create";
  return changeSet.changes === undefined && code.length === 0 ? "nothing" : "update";
}

/**
 * Returns the stack to change; `undefined` when there is none. Waits for an operation under way.
 */
export async function usableStack(
  context: DeployContext,
  stackName: string,
): Promise<Stack | undefined> {
  const { aws } = context;
  let stack = await findStack(aws, stackName);
  if (stack !== undefined) await refuseForeign(aws, stack);
  if (stack !== undefined && isBusy(stack.status)) {
    context.onStep?.(`Waiting for the operation that is under way (${stack.status})`);
    const after = await latestEvent(aws, stack.id);
    stack = (await watchStack(aws, stack.id, after, context, "rested")).stack;
  }
  if (stack === undefined || isShell(stack) || stack.status === "DELETE_COMPLETE") return undefined;
  if (await isStillborn(aws, stack)) {
    context.onStep?.(`Removing what an earlier attempt has left (${stack.status})`);
    await removeStack(context, stack.id, stackName);
    return undefined;
  }
  if (STUCK.includes(stack.status)) throw new StackOperationError(stackName, stuck(stack));
  return stack;
}

/** Whether a stack failed to be created; remains that were stuck then may be deletable now. */
async function isStillborn(aws: Aws, stack: Stack): Promise<boolean> {
  if (STILLBORN.includes(stack.status)) return true;
  return stack.status === "DELETE_FAILED" && (await neverStood(aws, stack));
}

function explain(
  kind: DeployPlan["kind"],
  stack: Stack | undefined,
  events: readonly StackEvent[],
): string {
  if (stack !== undefined && isShell(stack)) {
    return "CloudFormation has accepted it, and has not begun after a minute. Check again later";
  }
  const cause = firstCause(events);
  const reason =
    cause === undefined
      ? (stack?.statusReason ?? stack?.status ?? "it is gone")
      : `${cause.resource} (${cause.type}): ${cause.reason ?? cause.status}${adviceFor(cause)}`;
  if (kind === "create") return `it could not be created: ${reason}`;
  if (stack === undefined || !STUCK.includes(stack.status)) {
    return `it could not be updated; it is as it was before: ${reason}`;
  }
  return `it could not be updated: ${reason}; and ${stuck(stack)}`;
}

/** Returns advice on a failed step; an equal stack in another region is the usual reason. */
function adviceFor({ type, reason = "" }: StackEvent): string {
  if (!type.startsWith("AWS::IAM::") || !/already exists/i.test(reason)) return "";
  return (
    ". Names of roles and policies hold for all regions of an account: choose others with " +
    "--role-name-format and --policy-name-format, or another name for the stack"
  );
}

/** Returns advice for a stack that CloudFormation cannot repair by itself. */
function stuck({ name, status }: Stack): string {
  const command = status === "DELETE_FAILED" ? "delete-stack" : "continue-update-rollback";
  return (
    `it is stuck in ${status}; repair it first with: aws cloudformation ${command} ` +
    `--stack-name ${name}`
  );
}

/** The most bytes that a request may carry. */
const BODY_BYTES_MAX = 51_200;
const KEY = "template.json";
const LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789";
const SUFFIX_LENGTH = 20;

interface UploadedTemplate {
  readonly template: { readonly body: string } | { readonly url: string };
  /** Removes the bucket, if there is one. */
  remove(): Promise<void>;
}

interface UploadOptions {
  readonly random: Random;
  readonly endpoint?: string | undefined;
  readonly bytesMax?: number;
}

/**
 * Returns the template as CloudFormation takes it: in the request, or where it is too long, in a
 * bucket that exists until CloudFormation has read it.
 */
export async function uploadTemplate(
  aws: Aws,
  body: string,
  { random, endpoint, bytesMax = BODY_BYTES_MAX }: UploadOptions,
): Promise<UploadedTemplate> {
  if (Buffer.byteLength(body) <= bytesMax) {
    return { template: { body }, remove: async () => undefined };
  }
  const letter = () => LETTERS[Math.floor(random() * LETTERS.length)];
  const Bucket = `zae-limiter-${Array.from({ length: SUFFIX_LENGTH }, letter).join("")}`;
  const region = await aws.region();
  await aws.send("s3:CreateBucket", {
    Bucket,
    // The oldest region must not be named.
    ...(region === "us-east-1"
      ? {}
      : { CreateBucketConfiguration: { LocationConstraint: region as never } }),
  });
  const remove = async () => {
    await aws.send("s3:DeleteObjects", { Bucket, Delete: { Objects: [{ Key: KEY }] } });
    await aws.send("s3:DeleteBucket", { Bucket });
  };
  try {
    await aws.send("s3:PutObject", { Bucket, Key: KEY, Body: body });
  } catch (error) {
    await aws.send("s3:DeleteBucket", { Bucket });
    throw error;
  }
  return { template: { url: urlOf(Bucket, region, endpoint) }, remove };
}

function urlOf(bucket: string, region: string, endpoint: string | undefined): string {
  if (endpoint !== undefined) return `${endpoint.replace(/\/$/, "")}/${bucket}/${KEY}`;
  const suffix = region.startsWith("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
  return `https://${bucket}.s3.${region}.${suffix}/${KEY}`;
}
