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
  /** The stored limits differ from those in the file. */
  drift: 5,
} as const;
