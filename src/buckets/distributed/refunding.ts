/**
 * Refunds what was consumed to the shard it came from. Refunds of one shard that are under way
 * together share a transaction.
 */

import { Deadline } from "../../domain/deadline.ts";
import type { Random } from "../../domain/random.ts";
import type { Timer } from "../../domain/timer.ts";
import type { RefundWarning } from "../bucket-warning.ts";
import { LaterRefunds } from "../later-refunds.ts";
import type { Adjustment } from "../leg.ts";
import { placeOf, together } from "./adjusting.ts";
import type { Changes, DueAdjustment, SharedAdjustment, Tokens } from "./changes.ts";
import { Gathering } from "./gathering.ts";
import { WIDTH_MAX } from "./pacing.ts";

export interface RefundOptions {
  readonly timeoutMs: number;
  readonly timer: Timer;
  readonly random: Random;
  readonly onWarning: (warning: RefundWarning) => void;
}

export class Refunds {
  readonly #changes: Changes;
  readonly #options: RefundOptions;
  readonly #later: LaterRefunds;
  readonly #gathering: Gathering<DueAdjustment>;

  constructor(changes: Changes, options: RefundOptions) {
    this.#changes = changes;
    this.#options = options;
    const { timer, random, onWarning } = options;
    // The token tells the store what was written already.
    this.#later = new LaterRefunds({ timer, random, mayRepeat: () => true, onWarning });
    const run = (due: readonly DueAdjustment[]) => this.#refund(together(due));
    this.#gathering = new Gathering({ width: WIDTH_MAX, timer, run });
  }

  /**
   * Never throws: when the store does not answer in time, the refund goes on in the background with
   * the same token, and at last it warns.
   */
  refund(adjustment: Adjustment, deadline: Deadline): Promise<void> {
    return this.#gathering.add(placeOf(adjustment), { adjustment, deadline });
  }

  /** Resolves when no refund is under way in the background. */
  async idle(): Promise<void> {
    await this.#gathering.idle();
    await this.#later.idle();
  }

  async #refund(shared: SharedAdjustment): Promise<void> {
    const tokens = this.#changes.newTokens();
    try {
      await this.#changes.write(shared, tokens);
    } catch (error) {
      this.#later.add(shared.adjustment, () => this.#again(shared, tokens), error);
    }
  }

  async #again(before: SharedAdjustment, tokens: Tokens): Promise<void> {
    const deadline = new Deadline(this.#options.timer, this.#options.timeoutMs);
    const shared = { ...before, deadline };
    if (await this.#changes.hasArrived(shared, tokens)) return;
    await this.#changes.write(shared, tokens);
  }
}
