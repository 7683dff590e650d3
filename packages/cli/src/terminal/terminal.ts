/** The outside of a command: its output, its questions and its interruptions. */

import type { Clock, Timer } from "@zae-limiter/limiter/base/time.ts";
import type { Palette } from "./palette.ts";

/** Events that end a command early. `SIGPIPE` means that its output is not read any more. */
export type Interruption = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGPIPE";

export interface Terminal {
  /** Results. */
  readonly out: (text: string) => void;
  /** Errors, notes and progress. */
  readonly err: (text: string) => void;
  readonly palette: Palette;
  readonly errPalette: Palette;
  /** Whether a person sees `out`, which may then be drawn over. */
  readonly isTerminal: boolean;
  /** Whether a person sees `err`. */
  readonly errIsTerminal: boolean;
  readonly columns: number;
  /** How high it is, where that is known. */
  readonly rows?: number | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Returns yes or no; `undefined` when stdin is no terminal and has no answer. */
  readonly ask: (question: string) => Promise<boolean | undefined>;
  /**
   * Adds a listener, with which an interruption does not end the process; the result removes it.
   */
  readonly onInterruption: (listener: (interruption: Interruption) => void) => () => void;
  readonly timer: Timer;
  /** The store's own when absent. */
  readonly clock?: Clock;
}
