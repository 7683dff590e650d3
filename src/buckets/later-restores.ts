/** Gives back later what could not be given back in time, and warns when that fails too. */

import type { Random } from "../domain/chance.ts";
import { RateLimiterUnavailable } from "../domain/errors.ts";
import type { Timer } from "../domain/timer.ts";
import { type Adjustment, type RestoreWarning, restoreWarning } from "./bucket-store.ts";

const REPETITIONS = 3;
const PAUSE_MS = 100;

export interface LaterRestoresOptions {
  readonly timer: Timer;
  readonly random: Random;
  /** Whether writing again after such a failure gives back once. */
  readonly mayRepeat: (failure: RateLimiterUnavailable) => boolean;
  readonly onWarning: (warning: RestoreWarning) => void;
}

export class LaterRestores {
  readonly #options: LaterRestoresOptions;
  readonly #pending = new Set<Promise<void>>();

  constructor(options: LaterRestoresOptions) {
    this.#options = options;
  }

  add(adjustment: Adjustment, write: () => Promise<void>, cause: unknown): void {
    const repeated = this.#repeat(adjustment, write, cause);
    this.#pending.add(repeated);
    void repeated.finally(() => this.#pending.delete(repeated));
  }

  /** Resolves when nothing is left to give back. */
  async idle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  async #repeat(adjustment: Adjustment, write: () => Promise<void>, first: unknown): Promise<void> {
    const { timer, random, mayRepeat, onWarning } = this.#options;
    let cause = first;
    for (let repetition = 1; repetition <= REPETITIONS; repetition += 1) {
      if (!(cause instanceof RateLimiterUnavailable) || !mayRepeat(cause)) break;
      await timer.sleep(random() * PAUSE_MS * 2 ** repetition);
      try {
        return await write();
      } catch (error) {
        cause = error;
      }
    }
    onWarning(restoreWarning(adjustment, cause));
  }
}
