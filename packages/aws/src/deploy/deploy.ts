/** Deploys: from nothing, or from an older stack, to a table that can be connected to. */

import {
  StackAlreadyExistsError,
  StackOperationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkNamespace } from "@zae-limiter/limiter/domain/names.ts";
import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { eventSourceReady } from "../lambda/event-source.ts";
import { functionNameOf } from "../lambda/function-names.ts";
import { type UploadedCode, uploadCode } from "../lambda/lambda-code.ts";
import type { StackOptions } from "../options/stack-options.ts";
import { indexFilled } from "../stack/live-table.ts";
import { findStack } from "../stack/stack.ts";
import type { StackEvent } from "../stack/stack-events.ts";
import { openRecords, type WrittenRecords, writeRecords } from "../stack/table-records.ts";
import {
  discardPlan,
  executePlan,
  type PreparedPlan,
  preparePlan,
  startPlan,
} from "./change-set-plan.ts";
import { refuseUnusable, refuseUnusableTable } from "./compatibility.ts";
import { type DeployContext, deployContext } from "./deploy-context.ts";
import { enabledLambdas } from "./draft.ts";
import { Overtaken } from "./overtaken.ts";
import { type DeployPlan, intentFor } from "./plan.ts";

/** How to deploy, besides what. */
export interface DeployRequest {
  /** The stack, which is also the name of the table. */
  readonly stackName: string;
  /** Options; those that are not given stay as they are deployed. */
  readonly options: StackOptions;
  /** Options that are not given return to their defaults instead. */
  readonly reset?: boolean;
  /** False: the change is started and not followed; code and records are for another time. */
  readonly wait?: boolean;
  /** Namespaces to register in addition to `default`. */
  readonly namespaces?: readonly string[];
  /** The most shards of a bucket; what is not given stays as it is. */
  readonly maxShards?: number;
  /** The release of the Python library's Lambda that the table claims to have; none when absent. */
  readonly pythonLambdaVersion?: string;
  /** How to reach AWS. */
  readonly connection: DynamoOptions;
  /** The name in the version record. */
  readonly updatedBy?: string;
  /** Sees the plan, and decides. Not asked where nothing would change. */
  readonly confirm?: (plan: DeployPlan) => Promise<boolean>;
  /** Receives each event of the stack while it changes. */
  readonly onEvent?: (event: StackEvent) => void;
  /** Receives a sentence for each step. */
  readonly onStep?: (step: string) => void;
  /** Stops the deployment; a change that has begun goes on in CloudFormation. */
  readonly signal?: AbortSignal;
}

/** The outcome of a deployment. */
export interface Deployed {
  /** `started`: returned without waiting for the end. `declined`: nothing was changed. */
  readonly outcome: "done" | "started" | "declined";
  /** The plan of this deployment. */
  readonly plan: DeployPlan;
  /** The ARN of the stack. */
  readonly stackId: string;
  /** The status of the stack at the end, as CloudFormation says it. */
  readonly stackStatus: string;
  /** The code of the functions, uploaded or found as it should be. */
  readonly code: readonly UploadedCode[];
  /** Whether the aggregator reads the stream; `undefined` where there is none. */
  readonly eventSourceReady: boolean | undefined;
  /** The records that were written to the table; `undefined` without a wait. */
  readonly records: WrittenRecords | undefined;
}

/** How often another client may be faster; many may deploy the same stack when they start. */
const OVERTAKEN_MAX = 10;
/** CloudFormation takes a moment to show an operation that has begun. */
const OVERTAKEN_PAUSE_MS = 2000;
/** Once the code is there; what happened before waits in the stream. */
const EVENT_SOURCE_TIMEOUT_MS = 60_000;

/**
 * Creates a stack or updates it, puts the code in its Lambdas and the first records in its table.
 * A failure is reported with its first cause; a stack that could not be created does
 * not stay behind.
 *
 * @example
 * ```ts
 * import { deployStack } from 'zae-limiter/infra';
 * const options = { lambdaTimeout: 1000 };
 * await deployStack({ stackName: 'my-app', options, connection: { region: 'eu-west-1' } })
 *   .catch((error) => console.log(error.reason)); // must be at most 900, got 1000
 * ```
 */
export async function deployStack(request: DeployRequest): Promise<Deployed> {
  const { stackName, options, reset = false } = request;
  // Typos are refused before anything is asked or changed.
  intentFor(stackName, options, undefined, reset);
  for (const name of request.namespaces ?? []) checkNamespace(name);
  const context = deployContext(request);
  try {
    return await deployOver(context, request);
  } finally {
    context.aws.close();
  }
}

/** Deploys with a given connection, clock and listeners. */
export async function deployOver(
  context: DeployContext,
  request: DeployRequest,
): Promise<Deployed> {
  const { stackName, connection, options, reset = false } = request;
  for (;;) {
    const { prepared, result } = await whileOvertaken(context, async () => {
      await refuseUnusableTable(context.aws, stackName, connection);
      const prepared = await preparePlan(context, stackName, options, reset);
      return { prepared, result: await carryOut(request, context, prepared) };
    });
    // A missing index was added by itself; now deploy what was asked for.
    if (prepared.plan.addsIndex === undefined || result.outcome !== "done") return result;
  }
}

/** Tries again from the current stack whenever another client was faster. */
export async function whileOvertaken<Result>(
  { timer, random, onStep }: Pick<DeployContext, "timer" | "random" | "onStep">,
  attempt: () => Promise<Result>,
): Promise<Result> {
  for (let times = 1; ; times += 1) {
    try {
      return await attempt();
    } catch (error) {
      const isOver = error instanceof Overtaken || error instanceof StackAlreadyExistsError;
      if (!isOver || times > OVERTAKEN_MAX) throw error;
      onStep?.("Another client was faster: continuing from its change");
      await timer.sleep(Math.ceil(OVERTAKEN_PAUSE_MS * (1 + random())));
    }
  }
}

async function carryOut(
  request: DeployRequest,
  context: DeployContext,
  prepared: PreparedPlan,
): Promise<Deployed> {
  const { plan, changeSet } = prepared;
  const result = {
    plan,
    stackId: changeSet.stackId,
    code: [],
    eventSourceReady: undefined,
    records: undefined,
  };
  if (plan.kind !== "nothing" && (await confirmed(request, context, prepared)) === false) {
    await discardPlan(context, prepared);
    return { ...result, outcome: "declined", stackStatus: "" };
  }
  const executes = changeSet.changes !== undefined;
  if (request.wait === false && executes) {
    await startPlan(context, prepared);
    const stackStatus = (await findStack(context.aws, changeSet.stackId))?.status ?? "";
    return { ...result, outcome: "started", stackStatus };
  }
  if (executes)
    context.onStep?.(plan.kind === "create" ? "Creating the stack" : "Updating the stack");
  const stack = executes
    ? await executePlan(context, prepared)
    : await findStack(context.aws, plan.stackName);
  const finished = await finishing(request, () =>
    plan.addsIndex === undefined
      ? finish(request, context, prepared)
      : indexed(context, plan.stackName, plan.addsIndex),
  );
  return { ...result, ...finished, outcome: "done", stackStatus: stack?.status ?? "" };
}

/** Asks for agreement; when it is interrupted, the prepared change is discarded, too. */
async function confirmed(
  request: DeployRequest,
  context: DeployContext,
  prepared: PreparedPlan,
): Promise<boolean> {
  try {
    const agreed = (await request.confirm?.(prepared.plan)) ?? true;
    request.signal?.throwIfAborted();
    return agreed;
  } catch (error) {
    await discardPlan(context, prepared);
    throw error;
  }
}

/** Waits until the index is filled: before that it cannot be queried, nor the table changed. */
async function indexed(
  { aws, timer, onStep }: DeployContext,
  table: string,
  index: string,
): Promise<Record<never, never>> {
  onStep?.(`Waiting until the index ${index} is filled`);
  await indexFilled(aws, table, index, timer);
  return {};
}

/** Uploads code and writes records. Each step may be repeated after an interruption. */
async function finish(
  request: DeployRequest,
  context: DeployContext,
  { plan, foreignCode }: PreparedPlan,
): Promise<Pick<Deployed, "code" | "eventSourceReady" | "records">> {
  const { aws, timer } = context;
  const { stackName } = plan;
  const code: UploadedCode[] = [];
  const records = await openRecords(stackName, request.connection);
  try {
    // The client that was waited for may have been newer than this one.
    await refuseUnusable(records.store);
    for (const lambda of enabledLambdas(plan.options)) {
      context.onStep?.(`Checking the code of the ${lambda}`);
      const over = foreignCode.includes(lambda) ? "other" : "older";
      code.push(await uploadCode(aws, stackName, lambda, timer, over));
    }
    context.onStep?.("Writing the version and the namespaces");
    const aggregator = code.find(({ lambda }) => lambda === "aggregator");
    const written = await writeRecords(records, {
      aggregatorVersion: aggregator?.version ?? null,
      namespaces: request.namespaces ?? [],
      auditRetentionDays: plan.options.auditRetentionDays,
      maxShards: request.maxShards,
      pythonLambdaVersion: request.pythonLambdaVersion,
      updatedBy: request.updatedBy ?? `client:${CLIENT_VERSION}`,
    });
    return { code, records: written, eventSourceReady: await listening(request, context, code) };
  } finally {
    await records.close();
  }
}

async function listening(
  request: DeployRequest,
  { aws, timer, onStep }: DeployContext,
  code: readonly UploadedCode[],
): Promise<boolean | undefined> {
  if (!code.some(({ lambda }) => lambda === "aggregator")) return undefined;
  onStep?.("Waiting for the aggregator to read the stream");
  const functionName = functionNameOf(request.stackName, "aggregator");
  return eventSourceReady(aws, functionName, { timer, timeoutMs: EVENT_SOURCE_TIMEOUT_MS });
}

/** Runs the work on a complete stack; an error says how to complete the rest. */
async function finishing<Result>(
  { stackName, signal }: DeployRequest,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    signal?.throwIfAborted();
    const reason = error instanceof StackOperationError ? error.reason : (error as Error).message;
    throw new StackOperationError(
      stackName,
      `the stack is deployed, but not complete: ${reason}. Run the same command again to finish`,
      [],
      { cause: error },
    );
  }
}
