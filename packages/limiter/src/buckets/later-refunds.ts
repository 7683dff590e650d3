/** Repeats refunds that failed, in the background, and warns when they keep failing. */

import { BackgroundWork } from "../base/background.ts";
import type { Random } from "../base/random.ts";
import type { Timer } from "../base/time.ts";
import { RateLimiterUnavailable } from "../domain/errors/errors.ts";
import { type RefundWarning, refundWarning } from "./bucket-warning.ts";
import type { Adjustment } from "./leg.ts";

const REPETITIONS = 3;
const PAUSE_MS = 100;
const PAUSE_MS_MAX = 10_000;

export interface LaterRefundsOptions {
  readonly timer: Timer;
  readonly random: Random;
  /** Whether writing again after such a failure refunds only once. */
  readonly mayRepeat: (failure: RateLimiterUnavailable) => boolean;
  readonly onWarning: (warning: RefundWarning) => void;
  /** Aborts when the store is closed; until then slots are given back until it answers. */
  readonly closed?: AbortSignal | undefined;
}

export class LaterRefunds {
  readonly #options: LaterRefundsOptions;
  readonly #work = new BackgroundWork();

  constructor(options: LaterRefundsOptions) {
    this.#options = options;
  }

  add(adjustment: Adjustment, write: () => Promise<void>, cause: unknown): void {
    this.#work.add(this.#repeat(adjustment, write, cause));
  }

  /** Resolves when no refund is pending. */
  idle(): Promise<void> {
    return this.#work.idle();
  }

  async #repeat(adjustment: Adjustment, write: () => Promise<void>, first: unknown): Promise<void> {
    const { timer, random, mayRepeat, onWarning, closed } = this.#options;
    // A slot that stays held is lost until this process ends: only then others reclaim it.
    const isSlot = adjustment.entry !== undefined && closed !== undefined;
    const goesOn = (repetition: number) =>
      repetition <= REPETITIONS || (isSlot && closed?.aborted !== true);
    let cause = first;
    for (let repetition = 1; goesOn(repetition); repetition += 1) {
      if (!(cause instanceof RateLimiterUnavailable) || !mayRepeat(cause)) break;
      await timer.sleep(
        random() * Math.min(PAUSE_MS_MAX, PAUSE_MS * 2 ** repetition),
        isSlot ? closed : undefined,
      );
      try {
        return await write();
      } catch (error) {
        cause = error;
      }
    }
    onWarning(refundWarning(adjustment, cause));
  }
}
