/**
 * Slots that were taken by a request whose outcome is unknown: its answer was lost, or it may still
 * be under way. No lease knows of them, so they are given back. First a step with the token of the
 * request takes the same slots under an entry of its own: from then on either the request or the
 * step has taken them, whatever answers get lost, and the rows say which.
 */

import { BackgroundWork } from "../../base/background.ts";
import { randomToken } from "../../base/random.ts";
import type { Deadline } from "../../base/time.ts";
import { hasSlots } from "../../core/bucket.ts";
import { RateLimiterUnavailable } from "../../domain/errors/errors.ts";
import type { Leg } from "../leg.ts";
import { movedSlots } from "../slots/slot-entries.ts";
import { holderOf } from "../slots/slot-holder.ts";
import { type UntilAnsweredOptions, untilAnswered } from "../slots/until-answered.ts";
import type { Bucket } from "./bucket.ts";
import type { BucketTable } from "./bucket-table.ts";
import { refundAt } from "./limit-numbers.ts";

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
  /** Called with slots that were given back, or never taken. */
  readonly ended: (slots: TakenSlots) => void;
}

export class UnsureSlots {
  readonly #options: UnsureSlotsOptions;
  readonly #work = new BackgroundWork();
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
    this.#work.add(this.#untilAnswered(() => write()));
  }

  /** Gives back, in the background, the slots that a request may have taken. */
  add(slots: readonly TakenSlots[], token: string): void {
    if (slots.length > 0) this.#work.add(this.#settle(slots, token));
  }

  /** Resolves when nothing is given back any more. */
  idle(): Promise<void> {
    return this.#work.idle();
  }

  async #settle(slots: readonly TakenSlots[], token: string): Promise<void> {
    const once = this.newToken();
    const take = (bucket: Bucket, taken: TakenSlots) => takeInPlace(bucket, taken, token);
    const giveBack = (bucket: Bucket, taken: TakenSlots) => giveBackIn(bucket, taken, token);
    if (!(await this.#write(slots, take, token))) return;
    if (!(await this.#write(slots, giveBack, once))) return;
    for (const taken of slots) this.#options.ended(taken);
  }

  /** Changes the buckets of slots once for a token; false: the store was closed before. */
  async #write(
    slots: readonly TakenSlots[],
    change: (bucket: Bucket, taken: TakenSlots) => void,
    token: string,
  ): Promise<boolean> {
    const { table } = this.#options;
    const legs = slots.map(({ leg }) => leg);
    const work = () => {
      for (const taken of slots) {
        const { entityId, resource } = taken.leg;
        const bucket = table.get(entityId, resource);
        if (bucket === undefined) {
          // A token is spent by a write alone.
          table.delete(entityId, resource);
          continue;
        }
        change(bucket, taken);
        table.set(entityId, resource, bucket);
      }
    };
    const ask = async () => {
      await table.step(work, undefined, legs, token);
      return true;
    };
    return (await this.#untilAnswered(ask)) === true;
  }

  #untilAnswered<Answer>(ask: () => Promise<Answer>): Promise<Answer | undefined> {
    return untilAnswered(ask, this.#options);
  }
}

/** Returns the entry of the slots that are taken in place of a request, by its token. */
function entryInPlace({ entry }: TakenSlots, token: string): string {
  return `${holderOf(entry)}.${token}`;
}

/** Takes slots whether they are free or not; no lease has them, so their peak does not rise. */
function takeInPlace(bucket: Bucket, taken: TakenSlots, token: string): void {
  const { names, rates } = bucket.build;
  for (const { limitName, milli } of slotsIn(taken)) {
    const at = names.indexOf(limitName);
    const rate = rates[at];
    if (rate === undefined || !hasSlots(rate)) continue;
    const entry = entryInPlace(taken, token);
    bucket.keep({ slots: movedSlots(bucket.rare.slots, limitName, entry, milli) ?? [] });
    refundAt(bucket.numbers, at, rate, -milli);
  }
}

/** Gives back slots that were taken in place of a request, or else by the request. */
function giveBackIn(bucket: Bucket, taken: TakenSlots, token: string): void {
  const inPlace = entryInPlace(taken, token);
  const isInPlace = bucket.rare.slots.some(({ entry }) => entry === inPlace);
  const entry = isInPlace ? inPlace : taken.entry;
  for (const each of slotsIn(taken)) bucket.giveBack({ ...each, entry });
}

/** Returns the slots by the names of their limits. */
function slotsIn({ leg, amountsMilli }: TakenSlots): { limitName: string; milli: number }[] {
  return leg.config.limits.flatMap(({ name }, at) => {
    const milli = amountsMilli[at] ?? 0;
    return milli === 0 ? [] : [{ limitName: name, milli }];
  });
}
