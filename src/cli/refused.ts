/** What is said when there is not enough. */

import type { LimitStatus } from "../domain/limit-status.ts";
import type { Refusal } from "../limiter/decision.ts";
import { duration, withThousands } from "./numbers.ts";

export interface Refused {
  /** One line: what is missing, and when to try again. */
  readonly line: string;
  /** `Infinity` when it never fits. */
  readonly retryAfterSeconds: number;
  readonly statuses: readonly LimitStatus[];
}

export function refused({ violations, retryAfterSeconds, statuses }: Refusal): Refused {
  const missing = violations
    .map(
      ({ entityId, limitName, available, requested }) =>
        `${entityId} has ${withThousands(available)} ${limitName} of ${withThousands(requested)}`,
    )
    .join(", ");
  const advice = Number.isFinite(retryAfterSeconds)
    ? `try again in ${duration(retryAfterSeconds)}`
    : "that is more than fits at any time";
  return { line: `${missing}; ${advice}`, retryAfterSeconds, statuses };
}
