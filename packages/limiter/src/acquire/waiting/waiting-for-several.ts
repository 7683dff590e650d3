/**
 * Waiting of a call for several buckets. It is in one queue at a time: that of the line it must
 * wait for longest. When another line turns out to be scarcer, it moves to that queue, so that it
 * holds up no call that needs only the first.
 */

import type { Timer } from "../../base/time.ts";
import { bucketId } from "../../records/keys.ts";
import type { CheckedRequest } from "../acquire-request.ts";
import type { Refusal } from "../decision.ts";
import { linesOf, type QueueLine, scarcestOf } from "./queue-line.ts";
import { isTooLate } from "./waiting-queue.ts";

/** Longest rest between two queues, when two lines are scarcer in turns, in milliseconds. */
const REST_MS_MAX = 1000;

/**
 * Waits until the call is granted or too late. `waitIn` waits in the queue of one line, and returns
 * when another one is scarcer. `first`: the line to begin with; absent: `attempt` finds it.
 */
export async function waitForSeveral<Grant extends { readonly granted: true }>(
  timer: Timer,
  request: CheckedRequest,
  attempt: () => Promise<Grant | Refusal>,
  waitIn: (line: QueueLine, maxWaitMs: number) => Promise<Grant | Refusal>,
  first?: QueueLine,
): Promise<Grant | Refusal> {
  const untilMs = timer.nowMs() + request.maxWaitMs;
  let line = first;
  let decision = await (line === undefined ? attempt() : waitIn(line, request.maxWaitMs));
  let changedMs = Number.NEGATIVE_INFINITY;
  for (;;) {
    const nowMs = timer.nowMs();
    if (decision.granted || isTooLate(decision, nowMs, untilMs)) return decision;
    const next = scarcestOf(decision, request) ?? (linesOf(request)[0] as QueueLine);
    // The queue has refused it: too many wait already.
    if (line !== undefined && bucketId(line) === bucketId(next)) return decision;
    line = next;
    if (changedMs === nowMs) {
      const waitMs = decision.retryAfterSeconds * 1000;
      await timer.sleep(Math.max(1, Math.min(waitMs, REST_MS_MAX)), request.signal);
    }
    changedMs = timer.nowMs();
    decision = await waitIn(line, untilMs - changedMs);
  }
}
