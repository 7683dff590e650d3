/**
 * Waiting of a call for several resources. It stands in no queue, since it would have to stand in
 * several at once: it asks again when what it was refused for should be there.
 */

import { InfrastructureError } from "../domain/errors.ts";
import type { Timer } from "../domain/timer.ts";
import type { CheckedRequest } from "./acquire-request.ts";
import type { Refusal } from "./decision.ts";

/** What other processes change is noticed by then. */
const ASK_MS_MAX = 60_000;

export async function waitAlone<Grant extends { readonly granted: true }>(
  timer: Timer,
  { maxWaitMs, signal }: Pick<CheckedRequest, "maxWaitMs" | "signal">,
  attempt: () => Promise<Grant | Refusal>,
  isClosed: () => boolean,
): Promise<Grant | Refusal> {
  const untilMs = timer.nowMs() + maxWaitMs;
  for (;;) {
    const decision = await attempt();
    if (decision.granted) return decision;
    const waitMs = decision.retryAfterSeconds * 1000;
    if (!(waitMs <= untilMs - timer.nowMs())) return decision;
    await timer.sleep(Math.max(1, Math.min(waitMs, ASK_MS_MAX)), signal);
    signal?.throwIfAborted();
    if (isClosed()) throw new InfrastructureError("The limiter was closed while a call waited");
  }
}
