/** A refusal as commands show it. */

import type { Refusal } from "@zae-limiter/limiter/acquire/decision.ts";
import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { duration, withThousands } from "../terminal/numbers.ts";

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
