/** `demo --dashboard`: live traffic in a temporary store, shown in the browser until Ctrl-C. */

import { serveDashboard } from "@zae-limiter/dashboard/server/serve.ts";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { systemClock } from "@zae-limiter/limiter/base/time.ts";
import { announce } from "../dashboard/announce.ts";
import type { DashboardFlags } from "../dashboard/options.ts";
import { checkedToken } from "../dashboard/token.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type DemoOptions, openStage, withTemporaryStore } from "./demo.ts";
import { createFleet, useInThePast, useNow, useUp } from "./fleet.ts";
import { StageTime } from "./stage-time.ts";

const TICK_MS = 250;
/** How long ago the traffic begins that is shown as usage. */
const PAST_MS = 48 * 3_600_000;

/** Runs until the command is interrupted. */
export function runDashboardDemo(
  terminal: Terminal,
  { random }: Pick<DemoOptions, "random">,
  flags: DashboardFlags & { readonly json: boolean },
): Promise<never> {
  const token = checkedToken(flags.host, undefined);
  return withTemporaryStore(terminal, async (url, signal) => {
    const nowMs = systemClock();
    // The past is told by a clock of its own, then the time is the real one.
    const startMs = nowMs - PAST_MS;
    let past: StageTime | undefined = new StageTime(startMs);
    const repository = await openStage(url, () => past?.clock() ?? systemClock());
    const limiter = new RateLimiter(repository);
    try {
      await createFleet(repository);
      await useInThePast(limiter, random, (ms) => past?.moveTo(ms - startMs), nowMs);
      past = undefined;
      await useUp(limiter, random);
      const served = await serveDashboard(repository, {
        ...flags,
        token,
        readOnly: false,
        limiter,
      });
      try {
        announce(served.url, terminal, flags);
        while (!signal.aborted) {
          await useNow(limiter, random, TICK_MS / 1000);
          await terminal.timer.sleep(TICK_MS, signal);
        }
        throw signal.reason;
      } finally {
        await served.close();
      }
    } finally {
      await limiter.close();
    }
  });
}
