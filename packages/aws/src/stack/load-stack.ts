/** The stack with the workers of load tests: `{name}-load`. */

import { systemTimer } from "@zae-limiter/limiter/base/time.ts";
import {
  InfrastructureNotFoundError,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkStackName } from "@zae-limiter/limiter/domain/names.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { type AwsConnection, connectAws } from "../client/aws.ts";
import { changeSetName, createChangeSet, type NewChangeSet } from "../deploy/change-set.ts";
import { discardPlan, executePlan, usableStack } from "../deploy/change-set-plan.ts";
import { type DeployContext, deployContext } from "../deploy/deploy-context.ts";
import { putCode } from "../lambda/lambda-code.ts";
import { loadTemplate } from "../template/load.ts";
import { compactTemplate } from "../template/template.ts";
import { tableExists } from "./live-table.ts";
import { findStack } from "./stack.ts";
import type { StackEvent } from "./stack-events.ts";
import { NAME_TAG, stackTags, TYPE_TAG } from "./stack-tags.ts";

export const LOAD_STACK_TYPE = "load-test";
/** With `-load-worker` it is the name of a function, for which AWS allows 64 characters. */
const NAME_LENGTH_MAX = 50;

/** Checks the name of a stack that gets workers; returns the name of the stack of the workers. */
export function loadStackName(name: string): string {
  checkStackName(name);
  if (name.length <= NAME_LENGTH_MAX) return `${name}-load`;
  const reason =
    `load tests need a name of at most ${NAME_LENGTH_MAX} characters, got ${name.length}: ` +
    "the function of the workers is named after it";
  throw new ValidationError("name", name, reason);
}

export function loadFunctionName(name: string): string {
  return `${loadStackName(name)}-worker`;
}

interface LoadDeployRequest {
  /** The name of the table that is tested. */
  readonly name: string;
  readonly connection: DynamoOptions;
  readonly memoryMegabytes?: number | undefined;
  /** The code of the workers. */
  readonly zip: Uint8Array;
  /** Sees what will happen, and decides. Not asked where nothing would change. */
  readonly confirm: (kind: "create" | "update") => Promise<boolean>;
  readonly onEvent?: (event: StackEvent) => void;
  readonly onStep?: (step: string) => void;
  readonly signal?: AbortSignal;
}

interface LoadDeployed {
  readonly outcome: "created" | "updated" | "unchanged" | "declined";
  readonly stackName: string;
  readonly functionName: string;
}

/** Creates or changes the stack of the workers, and uploads their code. */
export async function deployLoadStack(request: LoadDeployRequest): Promise<LoadDeployed> {
  const { name } = request;
  const stackName = loadStackName(name);
  const functionName = loadFunctionName(name);
  const context = deployContext(request);
  const { aws, timer } = context;
  try {
    const outcome = await changeStack(context, request, stackName);
    if (outcome === "declined") return { outcome, stackName, functionName };
    request.onStep?.("Uploading the code");
    await putCode(aws, { stackName, functionName, zip: request.zip, over: "other" }, timer);
    return { outcome, stackName, functionName };
  } finally {
    aws.close();
  }
}

async function changeStack(
  context: DeployContext,
  request: LoadDeployRequest,
  stackName: string,
): Promise<LoadDeployed["outcome"]> {
  const { aws, timer } = context;
  const { name, memoryMegabytes } = request;
  const target = await findStack(aws, name);
  if (target === undefined && !(await tableExists(aws, name))) {
    throw new InfrastructureNotFoundError(name);
  }
  const deployed = await usableStack(context, stackName);
  const { KMSKeyArn = "", PermissionBoundary = "" } = target?.parameters ?? {};
  const memory = memoryMegabytes ?? deployed?.parameters.LambdaMemorySize;
  const wanted: NewChangeSet = {
    stackName,
    name: changeSetName(context),
    type: deployed === undefined ? "CREATE" : "UPDATE",
    template: { body: compactTemplate(loadTemplate()) },
    parameters: {
      TableName: name,
      KMSKeyArn,
      PermissionBoundary,
      ...(memory === undefined ? {} : { LambdaMemorySize: String(memory) }),
    },
    kept: [],
    tags: { ...stackTags(stackName, {}), [NAME_TAG]: name, [TYPE_TAG]: LOAD_STACK_TYPE },
    adopt: false,
  };
  const changeSet = await createChangeSet(aws, wanted, timer);
  if (changeSet.changes === undefined) return "unchanged";
  const kind = deployed === undefined ? "create" : "update";
  const prepared = { plan: { stackName, kind }, wanted, changeSet } as const;
  let isAgreed = false;
  try {
    isAgreed = await request.confirm(kind);
    request.signal?.throwIfAborted();
  } finally {
    if (!isAgreed || request.signal?.aborted === true) await discardPlan(context, prepared);
  }
  if (!isAgreed) return "declined";
  request.onStep?.(kind === "create" ? "Creating the stack" : "Updating the stack");
  await executePlan(context, prepared);
  return kind === "create" ? "created" : "updated";
}

/** Uploads the code of the workers; says whether it has changed. */
export async function pushLoadCode(
  name: string,
  zip: Uint8Array,
  connection: DynamoOptions,
): Promise<{ readonly functionName: string; readonly changed: boolean }> {
  const functionName = loadFunctionName(name);
  const aws = connectAws(connection as AwsConnection);
  try {
    const code = { stackName: loadStackName(name), functionName, zip, over: "other" } as const;
    const { changed } = await putCode(aws, code, connection.timer ?? systemTimer);
    return { functionName, changed };
  } finally {
    aws.close();
  }
}
