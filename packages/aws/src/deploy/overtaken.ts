/**
 * Another client has changed the stack first, so the prepared change set is void. Nothing is lost:
 * the deployment reads the stack again and continues from there.
 */

import { StackOperationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { AwsRefusal } from "../client/aws-failure.ts";

export class Overtaken extends StackOperationError {
  constructor(stackName: string, cause?: unknown) {
    super(
      stackName,
      "another client is changing it at the same time. Run the same command again",
      [],
      { cause },
    );
  }
}

const VOID = /^(ChangeSetNotFound|InvalidChangeSetStatus)(Exception)?$/;
const GONE = /^(Stack|ChangeSet)\b.*does not exist/;
const BUSY = /\bis in \w+_IN_PROGRESS (state|status)\b/;

/** Whether an error means that the change set is gone, or the stack is gone or being changed. */
export function isOvertaken(error: unknown): boolean {
  if (!(error instanceof AwsRefusal)) return false;
  return VOID.test(error.awsCode) || GONE.test(error.detail) || BUSY.test(error.detail);
}

/** Runs work on a change set, which other clients may void at any time. */
export async function orOvertaken<Result>(
  stackName: string,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw isOvertaken(error) ? new Overtaken(stackName, error) : error;
  }
}
