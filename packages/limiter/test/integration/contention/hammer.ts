/** Many clients at once on one bucket, in real time. */

import { performance } from "node:perf_hooks";
import { setImmediate as turn } from "node:timers/promises";
import type { RateLimiter } from "@zae-limiter/limiter/index.ts";

export interface Hammered {
  readonly granted: number;
  /** From just before the first call to just after the last answer. */
  readonly elapsedMs: number;
  /** How much of a core this process had. It could use all of one, and more. */
  readonly coreShare: number;
}

/** All clients ask as fast as they can, each for its own entity, until the time is over. */
export async function hammer(
  limiters: readonly RateLimiter[],
  entityOf: (client: number) => string,
  durationMs: number,
): Promise<Hammered> {
  const startedAt = performance.now();
  const cpuBefore = process.cpuUsage();
  let granted = 0;
  await Promise.all(
    limiters.map(async (limiter, client) => {
      const request = { entityId: entityOf(client), resource: "api", consume: { rps: 1 } };
      while (performance.now() - startedAt < durationMs) {
        const decision = await limiter.tryAcquire(request);
        if (decision.granted) granted += 1;
        // A refusal may need no call at all; others must get a turn all the same.
        else await turn();
      }
    }),
  );
  const elapsedMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { granted, elapsedMs, coreShare: (user + system) / 1000 / elapsedMs };
}

/** Tokens that a full bucket may grant in that time at most. */
export function allowed(
  capacity: number,
  perSecond: number,
  { elapsedMs }: Pick<Hammered, "elapsedMs">,
): number {
  return capacity + (perSecond * elapsedMs) / 1000;
}
