/** Reads the status of a stack: its table, its deployment, its aggregator. Changes nothing. */

import { systemTimer } from "@zae-limiter/limiter/base/time.ts";
import { checkStackName } from "@zae-limiter/limiter/domain/names.ts";
import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { tableAt } from "@zae-limiter/limiter/repository/stores/dynamodb.ts";
import { type Aws, type AwsConnection, connectAws } from "../client/aws.ts";
import { MissingServiceError } from "../client/aws-failure.ts";
import { findVersion } from "../deploy/compatibility.ts";
import { eventSourceOf } from "../lambda/event-source.ts";
import { functionNameOf } from "../lambda/function-names.ts";
import { findFunction } from "../lambda/lambda-code.ts";
import { describeTable, tableExists } from "./live-table.ts";
import { findStack, type Stack } from "./stack.ts";

/**
 * The status of a stack.
 *
 * @example
 * ```ts
 * import type { StackStatus } from 'zae-limiter/infra';
 * const isUp = ({ available, stackStatus }: StackStatus) => available && stackStatus !== undefined;
 * ```
 */
export interface StackStatus {
  /** The stack, which is also the name of the table. */
  readonly name: string;
  readonly region: string;
  /** Whether the table answers. */
  readonly available: boolean;
  /** How long the table took to answer. */
  readonly latencyMs: number | undefined;
  /** False where the endpoint has only DynamoDB. */
  readonly hasStacks: boolean;
  /** As CloudFormation says it; `undefined` where there is no stack. */
  readonly stackStatus: string | undefined;
  /** As DynamoDB says it, such as `ACTIVE`; `undefined` where there is no table. */
  readonly tableStatus: string | undefined;
  /** Whether there is an aggregator that reads the stream. */
  readonly aggregatorEnabled: boolean;
  /** `Enabled`, `Disabled`, …; `undefined` where there is none. */
  readonly eventSourceState: string | undefined;
  readonly clientVersion: string;
  /** The schema version of the table; `undefined` where it has no version record. */
  readonly schemaVersion: string | undefined;
  /** Whether `upgrade` would bring the table to a newer schema. */
  readonly needsMigration: boolean;
  /** Which release of the Python library upgrades the table first; only where it is too old. */
  readonly tooOld: string | undefined;
  /** The version of the deployed aggregator, where it is known. */
  readonly lambdaVersion: string | undefined;
  /** As DynamoDB counts it every six hours. */
  readonly tableItemCount: number | undefined;
  /** The size of the table, as DynamoDB counts it every six hours. */
  readonly tableSizeBytes: number | undefined;
  /** The role for applications, if the stack has roles. */
  readonly appRoleArn: string | undefined;
  /** The role for administrators, if the stack has roles. */
  readonly adminRoleArn: string | undefined;
  /** The role for readers, if the stack has roles. */
  readonly readonlyRoleArn: string | undefined;
}

interface Table {
  readonly status: string;
  readonly latencyMs: number;
  readonly items: number | undefined;
  readonly bytes: number | undefined;
}

/**
 * Reads the status of a stack, its table and its Lambda.
 *
 * @example
 * ```ts
 * import { stackStatus } from 'zae-limiter/infra';
 * await stackStatus('my_app')
 *   .catch((error) => console.log(error.code, error.field)); // ZAEL_VALIDATION name
 * ```
 */
export async function stackStatus(
  name: string,
  connection: DynamoOptions = {},
): Promise<StackStatus> {
  checkStackName(name);
  const timer = connection.timer ?? systemTimer;
  const aws = connectAws(connection as AwsConnection);
  try {
    const region = await aws.region();
    const [{ stack, hasStacks }, table] = await Promise.all([
      stackAt(aws, name),
      findTable(aws, name, () => timer.nowMs()),
    ]);
    const lambda = await aggregatorOf(aws, name, stack);
    // A table that this client may not use has a version, too.
    const version = table === undefined ? undefined : await findVersion(tableAt(name), connection);
    return {
      name,
      region,
      available: table?.status === "ACTIVE" || table?.status === "UPDATING",
      latencyMs: table?.latencyMs,
      hasStacks,
      stackStatus: stack?.status,
      tableStatus: table?.status,
      aggregatorEnabled: lambda.state === "Enabled",
      eventSourceState: lambda.state,
      clientVersion: CLIENT_VERSION,
      schemaVersion: version?.record.schemaVersion,
      needsMigration: version?.compatibility.needsMigration ?? false,
      tooOld: version?.compatibility.isTooOld ? version.compatibility.message : undefined,
      lambdaVersion: lambda.version,
      tableItemCount: table?.items,
      tableSizeBytes: table?.bytes,
      appRoleArn: stack?.outputs.AppRoleArn,
      adminRoleArn: stack?.outputs.AdminRoleArn,
      readonlyRoleArn: stack?.outputs.ReadOnlyRoleArn,
    };
  } finally {
    aws.close();
  }
}

/** Returns the stack; an endpoint without CloudFormation has a table without a stack. */
async function stackAt(
  aws: Aws,
  name: string,
): Promise<{ readonly stack: Stack | undefined; readonly hasStacks: boolean }> {
  try {
    return { stack: await findStack(aws, name), hasStacks: true };
  } catch (error) {
    if (!(error instanceof MissingServiceError)) throw error;
    return { stack: undefined, hasStacks: false };
  }
}

async function findTable(aws: Aws, name: string, nowMs: () => number): Promise<Table | undefined> {
  // The first request also loads the SDK and connects; the second one shows the usual latency.
  if (!(await tableExists(aws, name))) return undefined;
  const startedMs = nowMs();
  const table = await describeTable(aws, name);
  if (table === undefined) return undefined;
  return {
    status: table.TableStatus ?? "",
    latencyMs: nowMs() - startedMs,
    items: table.ItemCount,
    bytes: table.TableSizeBytes,
  };
}

/** Returns the aggregator: a stack may have none, and the caller may lack the permission. */
async function aggregatorOf(
  aws: Aws,
  name: string,
  stack: Stack | undefined,
): Promise<{ readonly version: string | undefined; readonly state: string | undefined }> {
  const none = { version: undefined, state: undefined };
  if (stack === undefined || stack.parameters.EnableAggregator === "false") return none;
  const functionName = functionNameOf(name, "aggregator");
  const [deployed, source] = await Promise.all([
    findFunction(aws, functionName),
    eventSourceOf(aws, functionName),
  ]);
  return { version: deployed?.version, state: source?.state };
}
