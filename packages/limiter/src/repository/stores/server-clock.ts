/** The time of a store's server, where this machine's clock is wrong. */

import type { Clock } from "../../base/clock.ts";

/** Machines that keep their clock in step differ by less; the server's date has whole seconds. */
const SKEW_MS_MAX = 2000;

/**
 * Returns a clock that follows the server once the two differ by more than rounding explains.
 * Otherwise a process with a fast clock would get refill before all other processes.
 */
export function serverClock(
  local: Clock,
  server: { readonly serverDateSkewMs: number | undefined },
): Clock {
  return () => {
    const skew = server.serverDateSkewMs;
    return skew === undefined || Math.abs(skew) <= SKEW_MS_MAX
      ? local()
      : local() + Math.round(skew);
  };
}
