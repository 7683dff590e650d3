/**
 * Waiting of a call for several resources. It is in one queue at a time: that of the resource it
 * must wait for longest. When another resource turns out to be scarcer, it moves to that queue, so
 * that it holds up no call that needs only the first.
 */

import type { Timer } from "../../base/time.ts";
import type { CheckedRequest } from "../acquire-request.ts";
import type { Refusal } from "../decision.ts";
import { isTooLate } from "./waiting-queue.ts";

/** Longest rest between two queues, when two resources are scarcer in turns, in milliseconds. */
const REST_MS_MAX = 1000;

/** Returns the resource that a refused call must wait for longest. */
export function scarcestOf(refusal: Refusal): string | undefined {
  let [longest, resource]: [number, string | undefined] = [-1, undefined];
  for (const status of refusal.violations) {
    if (status.retryAfterSeconds <= longest) continue;
    longest = status.retryAfterSeconds;
    ({ resource } = status);
  }
  return resource;
}

/** Returns the request as it waits in the queue of one of its resources. */
function partOf(request: CheckedRequest, resource: string, maxWaitMs: number): CheckedRequest {
  const other = request.also.find((part) => part.resource === resource);
  return { ...request, maxWaitMs, ...other };
}

/**
 * Waits until the call is granted or too late. The last argument waits in the queue of one
 * resource, and returns when another one is scarcer.
 */
export async function waitForSeveral<Grant extends { readonly granted: true }>(
  timer: Timer,
  request: CheckedRequest,
  attempt: () => Promise<Grant | Refusal>,
  stand: (part: CheckedRequest) => Promise<Grant | Refusal>,
): Promise<Grant | Refusal> {
  const untilMs = timer.nowMs() + request.maxWaitMs;
  let decision = await attempt();
  let changedMs = Number.NEGATIVE_INFINITY;
  for (;;) {
    const nowMs = timer.nowMs();
    if (decision.granted || isTooLate(decision, nowMs, untilMs)) return decision;
    if (changedMs === nowMs) {
      const waitMs = decision.retryAfterSeconds * 1000;
      await timer.sleep(Math.max(1, Math.min(waitMs, REST_MS_MAX)), request.signal);
    }
    changedMs = timer.nowMs();
    const resource = scarcestOf(decision) ?? request.resource;
    decision = await stand(partOf(request, resource, untilMs - changedMs));
  }
}
