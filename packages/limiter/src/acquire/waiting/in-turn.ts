/** Attempts an acquire behind the calls that wait already. */

import type { Deadline } from "../../base/time.ts";
import type { CheckedRequest } from "../acquire-request.ts";
import type { Acquirer, Decided } from "../acquirer.ts";
import type { ObservedCall } from "../observed-call.ts";
import { linesOf, type QueueLine } from "./queue-line.ts";
import { waitForSeveral } from "./waiting-for-several.ts";
import type { WaitingQueues } from "./waiting-queues.ts";

/** Attempts an acquire behind the calls that wait already, and waits as long as it may. */
export function inTurn(
  queues: WaitingQueues,
  acquirer: Acquirer,
  checked: CheckedRequest,
  isClosed: () => boolean,
  call?: ObservedCall,
): Decided | Promise<Decided> {
  if (checked.maxWaitMs === 0 && queues.isEmpty) {
    call?.attempt();
    return acquirer.attempt(checked, call?.acquireId);
  }
  const attempt = async (deadline?: Deadline) => {
    call?.attempt();
    return acquirer.attempt(checked, call?.acquireId, deadline);
  };
  const behindOthers = async () => {
    if (queues.isEmpty) return attempt();
    const deadline = acquirer.deadline();
    return (await queues.refusal(checked, deadline)) ?? attempt(deadline);
  };
  const { maxWaitMs, also, totals } = checked;
  if (maxWaitMs === 0) return behindOthers();
  const wait = (line: QueueLine, waitMs: number) => queues.wait(line, waitMs, attempt, isClosed);
  const lines = linesOf(checked);
  const [own] = lines as readonly [QueueLine];
  if (also.length === 0 && !totals) return wait(own, maxWaitMs);
  // Most calls have no total: they ask once, in their own queue, unless others wait for one.
  const first = also.length === 0 && !queues.areAhead(lines.slice(1)) ? own : undefined;
  return waitForSeveral(acquirer.timer, checked, behindOthers, wait, first);
}
