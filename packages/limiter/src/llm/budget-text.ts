/** The sentence of a refusal by a limit in money, which users of a client read. */

import { formatMoney, isMoney } from "../core/micro-dollars.ts";
import { type LimitStatus, resetZone } from "../domain/limit-status.ts";
import { localText } from "../domain/zone.ts";

/** Returns the violation in money with the longest wait; `undefined` where money was enough. */
export function spentBudget(violations: readonly LimitStatus[]): LimitStatus | undefined {
  return violations
    .filter(({ limitName }) => isMoney(limitName))
    .sort((one, other) => other.retryAfterSeconds - one.retryAfterSeconds)[0];
}

/**
 * Returns `Budget usd of team-a is spent: $500.00 of $500.00, resets 2026-12-01 00:00
 * Europe/Berlin`; `isNamed` says whether the client may know the entity.
 */
export function budgetSentence(status: LimitStatus, isNamed: boolean): string {
  const { limit, limitName, entityId, available, requested } = status;
  const subject = `Budget ${limitName}${isNamed ? ` of ${entityId}` : ""}`;
  const shown = (micro: number) => formatMoney(limitName, micro);
  const allowance = shown(limit.capacity);
  const used = shown(status.used ?? limit.capacity - available);
  if (available <= 0) return `${subject} is spent: ${used} of ${allowance}${resetText(status)}`;
  const needed = `${shown(requested)} needed, ${shown(available)} of ${allowance} left`;
  return `${subject} does not pay for this call: ${needed}${resetText(status)}`;
}

function resetText(status: LimitStatus): string {
  const { resetsAtMs } = status;
  return resetsAtMs === undefined ? "" : `, resets ${localText(resetZone(status), resetsAtMs)}`;
}
