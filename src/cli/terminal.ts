/** Everything a command sees of the outside: where it writes, whom it asks, what interrupts it. */

import type { Clock } from "../domain/clock.ts";
import type { Timer } from "../domain/timer.ts";
import type { Palette } from "./palette.ts";

/** What can end a command early. `SIGPIPE` means that nobody reads its output any more. */
export type Interruption = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGPIPE";

export interface Terminal {
  /** Results. */
  readonly out: (text: string) => void;
  /** Errors, notes and progress. */
  readonly err: (text: string) => void;
  /** Colours for `out`. */
  readonly palette: Palette;
  /** Colours for `err`. */
  readonly errPalette: Palette;
  /** Whether a person sees `out`, which may then be drawn over. */
  readonly isTerminal: boolean;
  /** Whether a person sees `err`. */
  readonly errIsTerminal: boolean;
  /** How wide `out` is. */
  readonly columns: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Yes or no; `undefined` when there is nobody to ask. */
  readonly ask: (question: string) => Promise<boolean | undefined>;
  /**
   * While anybody listens, interruptions are theirs to deal with; else they end the process. Call
   * the result to stop listening.
   */
  readonly onInterruption: (listener: (interruption: Interruption) => void) => () => void;
  readonly timer: Timer;
  /** The store's own when absent. */
  readonly clock?: Clock;
}
