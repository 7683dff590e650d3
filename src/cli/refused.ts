/** A refusal as commands show it. */

import type { LimitStatus } from "../domain/limit-status.ts";
import type { Refusal } from "../limiter/decision.ts";
import { duration, withThousands } from "./numbers.ts";

export interface Refused {
  /** One line: what is missing, and when to try again. */
  readonly line: string;
  /** `Infinity` when the request can never be granted. */
  readonly retryAfterSeconds: number;
  readonly statuses: readonly LimitStatus[];
}

export function refused({ violations, retryAfterSeconds, statuses }: Refusal): Refused {
  const missing = violations
    .map(
      ({ entityId, limitName, available, requested }) =>
        `${entityId} needs ${withThousands(requested)} ${limitName}, has ${withThousands(available)}`,
    )
    .join("; ");
  const advice = Number.isFinite(retryAfterSeconds)
    ? `try again in ${duration(retryAfterSeconds)}`
    : "that is more than the limit can ever hold";
  return { line: `${missing}; ${advice}`, retryAfterSeconds, statuses };
}
