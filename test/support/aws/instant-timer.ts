/** Waiting that takes no time, but counts as if it had. */

import type { Timer } from "@zae-limiter/limiter/base/time.ts";

export interface InstantTimer extends Timer {
  /** The number of sleeps. */
  readonly waits: number;
}

export function instantTimer(): InstantTimer {
  let nowMs = 0;
  let waits = 0;
  return {
    nowMs: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms;
      waits += 1;
    },
    get waits() {
      return waits;
    },
  };
}
