/** The exit codes of the process. They are part of the interface: scripts depend on them. */

export const EXIT = {
  ok: 0,
  /** Refused or failed: a value that is not allowed, something that is not there, a bug. */
  failed: 1,
  /** The command line cannot be read, as shells and most tools have it. */
  usage: 2,
  /** A limit did not have enough; nothing was consumed. */
  limitExceeded: 3,
  /** The store does not answer. */
  unavailable: 4,
  /** Two sides differ: stored limits and their file, or the two stores of a copy. */
  drift: 5,
} as const;
