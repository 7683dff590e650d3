/** Creates a stack or changes it, through a change set. */

import type { Random } from "../domain/chance.ts";
import type { Clock } from "../domain/clock.ts";
import { StackOperationError } from "../domain/errors.ts";
import { checkStackOptions, type StackOptions } from "../domain/stack-options.ts";
import type { Timer } from "../domain/timer.ts";
import type { Aws } from "./aws.ts";
import {
  type ChangeSet,
  createChangeSet,
  discardChangeSet,
  executeChangeSet,
  type NewChangeSet,
} from "./change-set.ts";
import { deleteStack } from "./delete.ts";
import { templateAround } from "./deployed-table.ts";
import { findFunction, functionNameOf, isCurrent } from "./lambda-code.ts";
import { type LambdaName, lambdaPackage } from "./lambda-package.ts";
import {
  type DeployPlan,
  intentFor,
  refuseLoss,
  refuseProjection,
  settingChanges,
  tagChanges,
} from "./plan.ts";
import { findStack, isBusy, isShell, type Stack } from "./stack.ts";
import {
  failureEvents,
  firstCause,
  latestEvent,
  type StackEvent,
  watchStack,
} from "./stack-events.ts";
import { tableExists } from "./table-exists.ts";
import { compactTemplate, stackTemplate } from "./template/template.ts";
import { uploadTemplate } from "./template-upload.ts";

/** What deploying works with. */
export interface DeployContext {
  readonly aws: Aws;
  readonly timer: Timer;
  readonly clock: Clock;
  readonly random: Random;
  readonly endpoint?: string | undefined;
  readonly onEvent?: ((event: StackEvent) => void) | undefined;
  /** What is done next, for people. */
  readonly onStep?: ((step: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A plan, and the change set that would carry it out. */
export interface PreparedPlan {
  readonly plan: DeployPlan;
  readonly wanted: NewChangeSet;
  readonly changeSet: ChangeSet;
}

/** Failed before anything was there to keep: it can only be deleted. */
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
  const { aws, timer, clock } = context;
  const deployed = await usableStack(context, stackName);
  const intent = intentFor(stackName, given, deployed, reset);
  refuseProjection(intent, deployed);
  // Code that is missing is found out before there is a stack that needs it.
  enabledLambdas(intent.options).forEach(lambdaPackage);
  const adopt = deployed === undefined && (await tableExists(aws, stackName));
  const template = deployed === undefined ? stackTemplate() : await templateAround(aws, stackName);
  const uploaded = await uploadTemplate(aws, compactTemplate(template), context);
  try {
    const wanted: NewChangeSet = {
      stackName,
      name: `zae-limiter-${clock()}`,
      type: deployed === undefined ? "CREATE" : "UPDATE",
      template: uploaded.template,
      parameters: intent.parameters,
      kept: intent.kept,
      tags: intent.tags,
      adopt,
    };
    const changeSet = await createChangeSet(aws, wanted, timer);
    const code = await codeToUpload(aws, stackName, intent.options, deployed);
    const plan: DeployPlan = {
      kind: kindOf(changeSet, deployed, code),
      stackName,
      settings: settingChanges(intent, deployed),
      tags: tagChanges(intent, deployed),
      resources: changeSet.changes ?? [],
      adoptsTable: adopt,
      code,
      options: intent.options,
      notes: intent.notes,
    };
    const prepared = { plan, wanted, changeSet };
    await refused(context, prepared);
    return prepared;
  } finally {
    await uploaded.remove();
  }
}

/** Takes back what preparing has made. */
export async function discardPlan({ aws }: DeployContext, prepared: PreparedPlan): Promise<void> {
  if (prepared.changeSet.changes === undefined) return;
  await discardChangeSet(aws, prepared.wanted, prepared.changeSet);
}

/** Starts the change; `executePlan` follows it to its end. */
export async function startPlan({ aws }: DeployContext, prepared: PreparedPlan): Promise<void> {
  await executeChangeSet(aws, prepared.plan.stackName, prepared.changeSet);
}

/** Carries a plan out. A stack that could not be created does not stay behind. */
export async function executePlan(context: DeployContext, prepared: PreparedPlan): Promise<Stack> {
  const { aws } = context;
  const { stackName, kind } = prepared.plan;
  const { stackId } = prepared.changeSet;
  const before = await latestEvent(aws, stackId);
  try {
    await startPlan(context, prepared);
  } catch (error) {
    // It was not even begun.
    await discardPlan(context, prepared);
    throw error;
  }
  const { stack, events } = await watchStack(aws, stackId, before, context);
  if (stack !== undefined && GOOD.includes(stack.status)) return stack;
  const failure = new StackOperationError(
    stackName,
    explain(kind, stack, events),
    failureEvents(events),
  );
  if (kind === "create") {
    context.onStep?.(`Removing what was made of ${stackName}`);
    await deleteStack(context, stackId, stackName).catch((cause: Error) => {
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

async function refused(context: DeployContext, prepared: PreparedPlan): Promise<void> {
  try {
    refuseLoss(prepared.plan.stackName, prepared.plan.resources);
  } catch (error) {
    await discardPlan(context, prepared);
    throw error;
  }
}

function kindOf(
  changeSet: ChangeSet,
  deployed: Stack | undefined,
  code: readonly LambdaName[],
): DeployPlan["kind"] {
  if (deployed === undefined) return "create";
  return changeSet.changes === undefined && code.length === 0 ? "nothing" : "update";
}

/** The Lambdas that the stack will have and that do not run the code of this version. */
async function codeToUpload(
  aws: Aws,
  stackName: string,
  options: StackOptions,
  deployed: Stack | undefined,
): Promise<LambdaName[]> {
  const found = enabledLambdas(options).map(async (lambda) => {
    if (deployed === undefined) return lambda;
    const running = await findFunction(aws, functionNameOf(stackName, lambda));
    return running !== undefined && isCurrent(running, lambda) ? undefined : lambda;
  });
  return (await Promise.all(found)).filter((lambda) => lambda !== undefined);
}

/** The Lambdas of a stack with these options. */
export function enabledLambdas(options: StackOptions): LambdaName[] {
  const { enableAggregator, enableProvisioner, createIam } = checkStackOptions(options);
  return [
    ...(enableAggregator ? (["aggregator"] as const) : []),
    ...(enableProvisioner && createIam ? (["provisioner"] as const) : []),
  ];
}

/** The stack to change; `undefined` when there is none. Whoever works on it is waited for. */
async function usableStack(context: DeployContext, stackName: string): Promise<Stack | undefined> {
  const { aws } = context;
  let stack = await findStack(aws, stackName);
  if (stack !== undefined && isBusy(stack.status)) {
    context.onStep?.(`Waiting for the operation that is under way (${stack.status})`);
    const after = await latestEvent(aws, stack.id);
    stack = (await watchStack(aws, stack.id, after, context)).stack;
  }
  if (stack === undefined || isShell(stack) || stack.status === "DELETE_COMPLETE") return undefined;
  if (STILLBORN.includes(stack.status)) {
    context.onStep?.(`Removing what an earlier attempt has left (${stack.status})`);
    await deleteStack(context, stack.id, stackName);
    return undefined;
  }
  if (STUCK.includes(stack.status)) {
    const command = stack.status === "DELETE_FAILED" ? "delete-stack" : "continue-update-rollback";
    throw new StackOperationError(
      stackName,
      `it is stuck in ${stack.status}; mend it first with: aws cloudformation ${command} ` +
        `--stack-name ${stackName}`,
    );
  }
  return stack;
}

function explain(
  kind: DeployPlan["kind"],
  stack: Stack | undefined,
  events: readonly StackEvent[],
): string {
  const done = kind === "create" ? "created" : "updated; it is as it was before";
  const cause = firstCause(events);
  if (cause === undefined) {
    return `it could not be ${done}: ${stack?.statusReason ?? stack?.status ?? "it is gone"}`;
  }
  return `it could not be ${done}: ${cause.resource} (${cause.type}): ${cause.reason ?? cause.status}`;
}
