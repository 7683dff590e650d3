/** A timer whose sleep ends with the reason of the stop signal. */

import type { Timer } from "../domain/timer.ts";

export function stoppableTimer(timer: Timer, signal: AbortSignal | undefined): Timer {
  if (signal === undefined) return timer;
  return {
    nowMs: () => timer.nowMs(),
    sleep: async (ms) => {
      signal.throwIfAborted();
      await timer.sleep(ms, signal);
      signal.throwIfAborted();
    },
  };
}
