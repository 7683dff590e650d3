/**
 * Slots that were taken by a step whose outcome is unknown: its answer was lost, or it may still be
 * under way. No lease knows of them, so they are given back. First the token of the step is spent
 * by another one: from then on the step has happened, or it never will.
 */

import { randomToken } from "../../base/random.ts";
import type { Deadline } from "../../base/time.ts";
import { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import type { ConsumeResult } from "../bucket-consumer.ts";
import { type Adjustment, type Leg, refundOf } from "../leg.ts";
import { slotsOnly } from "../slots/slot-amounts.ts";
import { type UntilAnsweredOptions, untilAnswered } from "../slots/until-answered.ts";
import type { BucketTable } from "./bucket-table.ts";

const TOKEN_BYTES = 15;

export interface UnsureSlotsOptions extends UntilAnsweredOptions {
  readonly table: BucketTable;
  /** Gives slots back that were taken, once for a token. */
  readonly giveBack: (adjustment: Adjustment, token: string, deadline?: Deadline) => Promise<void>;
  /** Called with the slots that were not taken. */
  readonly untaken: (adjustment: Adjustment) => void;
}

export class UnsureSlots {
  readonly #options: UnsureSlotsOptions;
  readonly #pending = new Set<Promise<void>>();
  #tokens = 0;

  constructor(options: UnsureSlotsOptions) {
    this.#options = options;
  }

  /** Returns a token; they differ even where random numbers do not, as in simulations. */
  newToken(): string {
    this.#tokens += 1;
    return `${randomToken(this.#options.random, TOKEN_BYTES)}s${this.#tokens.toString(36)}`;
  }

  /**
   * Gives back what a lease ends with. Where the store does not answer in time, that goes on in the
   * background: no correction is worth a slot that stays held.
   */
  async giveBack(adjustment: Adjustment, token: string, deadline?: Deadline): Promise<void> {
    const { giveBack } = this.#options;
    try {
      return await giveBack(adjustment, token, deadline);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
    }
    this.#keep(this.#untilAnswered(() => giveBack(adjustment, token)));
  }

  /** Gives back, in the background, what a step may have taken. */
  add(legs: readonly Leg[], result: ConsumeResult, token: string): void {
    if (result.outcome !== "granted") return;
    const slots = legs.flatMap((leg, at) => {
      const parts = result.legs[at]?.parts ?? [];
      return refundOf(leg, parts).flatMap(ofSlots);
    });
    this.#keep(this.#settle(legs, slots, token));
  }

  #keep(work: Promise<void>): void {
    this.#pending.add(work);
    void work.finally(() => this.#pending.delete(work));
  }

  /** Resolves when nothing is given back any more. */
  async idle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  async #settle(legs: readonly Leg[], slots: readonly Adjustment[], token: string): Promise<void> {
    const { giveBack, untaken } = this.#options;
    const isUntaken = await this.#untilAnswered(() => this.#spend(legs, token));
    for (const adjustment of slots) {
      const once = this.newToken();
      if (isUntaken === true) untaken(adjustment);
      if (isUntaken === false) await this.#untilAnswered(() => giveBack(adjustment, once));
    }
  }

  #untilAnswered<Answer>(ask: () => Promise<Answer>): Promise<Answer | undefined> {
    return untilAnswered(ask, this.#options);
  }

  /** Uses up a token by writing the rows as they are; false: the step of the token was done. */
  async #spend(legs: readonly Leg[], token: string): Promise<boolean> {
    const { table } = this.#options;
    const work = (): boolean | undefined => {
      for (const { entityId, resource } of legs) {
        const bucket = table.get(entityId, resource);
        if (bucket === undefined) table.delete(entityId, resource);
        else table.set(entityId, resource, bucket);
      }
      return true;
    };
    return (await table.step(work, undefined, legs, token)) === true;
  }
}

/** Returns an adjustment with its slots alone; none where it has none. */
function ofSlots(adjustment: Adjustment): readonly Adjustment[] {
  const { config, deltasMilli, entry } = adjustment;
  if (entry === undefined) return [];
  return [{ ...adjustment, deltasMilli: slotsOnly(config, deltasMilli), acquires: 0 }];
}
