/** Deletes a stack for a user. Its data stays unless the user asks for that too. */

import { checkStackName } from "@zae-limiter/limiter/domain/names.ts";
import type { DynamoOptions } from "@zae-limiter/limiter/repository/options.ts";
import { deployContext } from "../deploy/deploy-context.ts";
import { refuseForeign } from "../deploy/ownership.ts";
import { tableExists } from "./live-table.ts";
import {
  deleteKeptBucket,
  deleteKeptTable,
  refuseToDelete,
  removeStack,
  startDelete,
} from "./remove-stack.ts";
import { findStack } from "./stack.ts";
import type { StackEvent } from "./stack-events.ts";

/** Which stack to delete, and how. */
export interface TeardownRequest {
  /** The stack. */
  readonly stackName: string;
  /** How to reach AWS. */
  readonly connection: DynamoOptions;
  /** Also deletes the table and the archive, with everything in them. */
  readonly withData?: boolean;
  /** False: only started. The data then stays. */
  readonly wait?: boolean;
  /** Receives each event of the stack while it is deleted. */
  readonly onEvent?: (event: StackEvent) => void;
  /** Receives a sentence for each step. */
  readonly onStep?: (step: string) => void;
  /** Stops waiting; a deletion that has begun goes on in CloudFormation. */
  readonly signal?: AbortSignal;
}

/** The deleted and the kept parts of a stack. */
export interface Teardown {
  /** `missing`: there was no such stack. */
  readonly outcome: "deleted" | "started" | "missing";
  /** The kept parts: the table and the archive, where they still exist. */
  readonly kept: { readonly table: string | undefined; readonly bucket: string | undefined };
  /** Whether there was a table, and it is gone now with everything in it. */
  readonly tableDeleted: boolean;
}

/**
 * Deletes a stack. A stack that is not there is no error.
 *
 * @example
 * ```ts
 * import { deleteStack } from 'zae-limiter/infra';
 * await deleteStack({ stackName: '123app', connection: { region: 'eu-west-1' } })
 *   .catch((error) => console.log(error.code)); // ZAEL_VALIDATION
 * ```
 */
export async function deleteStack(request: TeardownRequest): Promise<Teardown> {
  const stackName = checkStackName(request.stackName);
  const context = deployContext(request);
  const { aws, timer } = context;
  try {
    const stack = await findStack(aws, stackName);
    if (stack !== undefined) await refuseForeign(aws, stack);
    if (request.withData === true) await refuseToDelete(aws, stackName);
    let bucket = stack?.outputs.AuditArchiveBucketName;
    if (stack !== undefined) {
      if (request.wait === false) {
        await startDelete(aws, stack.id);
        const kept = { table: stackName, bucket };
        return { outcome: "started", kept, tableDeleted: false };
      }
      await removeStack(context, stack.id, stackName);
    }
    const outcome = stack === undefined ? "missing" : "deleted";
    if (request.withData !== true) {
      const table = (await tableExists(aws, stackName)) ? stackName : undefined;
      return { outcome, kept: { table, bucket }, tableDeleted: false };
    }
    request.onStep?.("Deleting the table");
    const tableDeleted = await deleteKeptTable(aws, stackName, timer);
    if (bucket !== undefined) {
      request.onStep?.("Deleting the archive");
      await deleteKeptBucket(aws, bucket);
      bucket = undefined;
    }
    return { outcome, kept: { table: undefined, bucket }, tableDeleted };
  } finally {
    aws.close();
  }
}
