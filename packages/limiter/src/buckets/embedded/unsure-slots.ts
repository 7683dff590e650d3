/**
 * Slots that were taken by a request whose outcome is unknown: its answer was lost, or it may still
 * be under way. No lease knows of them, so they are given back. First the token of the request is
 * spent by a step: from then on the request has been granted, or it never will be.
 */

import { randomToken } from "../../base/random.ts";
import type { Deadline } from "../../base/time.ts";
import { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import type { Adjustment, Leg } from "../leg.ts";
import { type UntilAnsweredOptions, untilAnswered } from "../slots/until-answered.ts";
import type { BucketTable } from "./bucket-table.ts";

const TOKEN_BYTES = 15;

/** Slots that a request takes of one leg, under one entry. */
export interface TakenSlots {
  readonly leg: Leg;
  /** Milli-slots, aligned with the limits of the leg; zero for those that are not of slots. */
  readonly amountsMilli: readonly number[];
  readonly entry: string;
}

export interface UnsureSlotsOptions extends UntilAnsweredOptions {
  readonly table: BucketTable;
  /** Gives slots back that were taken, once for a token. */
  readonly giveBack: (adjustment: Adjustment, token: string) => Promise<void>;
  /** Called with slots that were not taken. */
  readonly untaken: (slots: TakenSlots) => void;
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
  async giveBack(
    write: (deadline?: Deadline) => Promise<void>,
    deadline?: Deadline,
  ): Promise<void> {
    try {
      return await write(deadline);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
    }
    this.#keep(this.#untilAnswered(() => write()));
  }

  /** Gives back, in the background, what a request may have taken. */
  add(slots: readonly TakenSlots[], token: string): void {
    if (slots.length > 0) this.#keep(this.#settle(slots, token));
  }

  #keep(work: Promise<void>): void {
    this.#pending.add(work);
    void work.finally(() => this.#pending.delete(work));
  }

  /** Resolves when nothing is given back any more. */
  async idle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  async #settle(slots: readonly TakenSlots[], token: string): Promise<void> {
    const { giveBack, untaken } = this.#options;
    const legs = slots.map(({ leg }) => leg);
    const isUntaken = await this.#untilAnswered(() => this.#spend(legs, token));
    for (const taken of slots) {
      const once = this.newToken();
      if (isUntaken === true) untaken(taken);
      if (isUntaken === false) await this.#untilAnswered(() => giveBack(backOf(taken), once));
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

/** Returns the adjustment that gives slots back. */
function backOf({ leg, amountsMilli, entry }: TakenSlots): Adjustment {
  const { entityId, resource, config } = leg;
  const deltasMilli = amountsMilli.map((milli) => -milli);
  return { entityId, resource, shard: 0, config, deltasMilli, entry };
}
