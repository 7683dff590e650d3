/** The steps of a deletion: the stack, and the table and the archive that it keeps. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { StackOperationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { Aws } from "../client/aws.ts";
import { isRefusal } from "../client/aws-failure.ts";
import { describeTable, isLimiterTable, tableExists } from "./live-table.ts";
import { isMissing } from "./stack.ts";
import {
  failureEvents,
  firstCause,
  latestEvent,
  type StackEvent,
  type Watch,
  watchStack,
} from "./stack-events.ts";

interface DeleteContext extends Watch {
  readonly aws: Aws;
}

const POLL_MS = 1000;
const TABLE_TIMEOUT_MS = 300_000;

/** Deletes a stack by its ARN and waits until it is gone. */
export async function removeStack(
  context: DeleteContext,
  stackId: string,
  stackName: string,
): Promise<void> {
  const { aws } = context;
  const before = await latestEvent(aws, stackId);
  await startDelete(aws, stackId);
  const { stack, events } = await watchStack(aws, stackId, before, context, "deleted");
  if (stack === undefined || stack.status === "DELETE_COMPLETE") return;
  const cause = firstCause(events);
  const what =
    cause === undefined
      ? (stack.statusReason ?? stack.status)
      : `${cause.resource} (${cause.type}): ${cause.reason ?? cause.status}`;
  const advice = adviceFor(cause, stackName);
  throw new StackOperationError(
    stackName,
    `it could not be deleted: ${advice === "" ? what : what.replace(/\.$/, "")}${advice}`,
    failureEvents(events),
  );
}

/** Returns advice for a table with deletion protection, which CloudFormation cannot change. */
function adviceFor(cause: StackEvent | undefined, stackName: string): string {
  const { physicalId, reason = "" } = cause ?? {};
  if (!/protected against deletion|deletion protection/i.test(reason)) return "";
  return (
    ". Switch that off with: aws dynamodb update-table --table-name " +
    `${physicalId || stackName} --no-deletion-protection-enabled, and run this again`
  );
}

/** Starts a deletion. A stack that does not exist counts as deleted. */
export async function startDelete(aws: Aws, stackId: string): Promise<void> {
  try {
    await aws.send("cloudformation:DeleteStack", { StackName: stackId });
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** Refuses before anything is deleted, so that everything or nothing is. */
export async function refuseToDelete(aws: Aws, name: string): Promise<void> {
  const table = await describeTable(aws, name);
  if (table === undefined) return;
  if (!isLimiterTable(table)) {
    throw new StackOperationError(name, "the table of that name is not one of ours; it stays");
  }
  if (table.DeletionProtectionEnabled !== true) return;
  throw new StackOperationError(
    name,
    "the table is protected against deletion. Deploy with --no-deletion-protection first",
  );
}

/** Deletes the table that a stack has left, and waits until its name is free. */
export async function deleteKeptTable(aws: Aws, table: string, timer: Timer): Promise<boolean> {
  try {
    await aws.send("dynamodb:DeleteTable", { TableName: table });
  } catch (error) {
    if (isRefusal(error, "ResourceNotFoundException")) return false;
    throw error;
  }
  const startedMs = timer.nowMs();
  while (await tableExists(aws, table)) {
    if (timer.nowMs() - startedMs > TABLE_TIMEOUT_MS) {
      throw new StackOperationError(table, "the table was not deleted within five minutes");
    }
    await timer.sleep(POLL_MS);
  }
  return true;
}

/** Empties the archive that a stack has left and deletes it. */
export async function deleteKeptBucket(aws: Aws, bucket: string): Promise<boolean> {
  try {
    for (;;) {
      // The bucket keeps versions: each of them and each mark of a deletion is deleted.
      const page = await aws.send("s3:ListObjectVersions", { Bucket: bucket });
      const all = [...(page.Versions ?? []), ...(page.DeleteMarkers ?? [])];
      if (all.length === 0) break;
      const Objects = all.map(({ Key = "", VersionId }) => ({ Key, VersionId }));
      const { Errors = [] } = await aws.send("s3:DeleteObjects", {
        Bucket: bucket,
        Delete: { Objects, Quiet: true },
      });
      const [failed] = Errors;
      if (failed !== undefined) {
        throw new StackOperationError(bucket, `${failed.Key} cannot be deleted: ${failed.Message}`);
      }
    }
    await aws.send("s3:DeleteBucket", { Bucket: bucket });
    return true;
  } catch (error) {
    if (isRefusal(error, "NoSuchBucket")) return false;
    throw error;
  }
}
