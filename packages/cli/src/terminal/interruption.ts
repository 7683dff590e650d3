/** Runs work that Ctrl-C ends cleanly. */

import type { Interruption, Terminal } from "./terminal.ts";

/** As shells report a process that a signal has ended; a closed pipe is no failure. */
const CODES: Readonly<Record<Interruption, number>> = {
  SIGINT: 130,
  SIGTERM: 143,
  SIGHUP: 129,
  SIGPIPE: 0,
};

/** The command was ended from outside; there is nothing to report. */
export class Interrupted extends Error {
  constructor(readonly interruption: Interruption) {
    super(`Ended by ${interruption}`);
  }

  get exitCode(): number {
    return CODES[this.interruption];
  }
}

/**
 * Runs the work with a signal that aborts when the command is to end; its reason is an
 * `Interrupted`. The work cleans up before it ends, and goes on at what is `ignored`.
 */
export async function interruptible<T>(
  terminal: Terminal,
  work: (signal: AbortSignal) => Promise<T>,
  ignored: readonly Interruption[] = [],
): Promise<T> {
  const controller = new AbortController();
  const stop = terminal.onInterruption((interruption) => {
    if (!ignored.includes(interruption)) controller.abort(new Interrupted(interruption));
  });
  try {
    return await work(controller.signal);
  } finally {
    stop();
  }
}

export function exitCodeOf(interruption: Interruption): number {
  return CODES[interruption];
}
