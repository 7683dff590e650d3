/**
 * Consumes the legs of a cascading call as `cascade-steps.ts` decides, all of them or none, and
 * answers a call that is not granted.
 */

import type { Deadline } from "../../../base/time.ts";
import { RateLimiterUnavailable } from "../../../domain/errors/errors.ts";
import { TOTAL } from "../../../domain/names.ts";
import type { Adjustments } from "../../adjustments.ts";
import type { ConsumeResult, SeenBalances } from "../../bucket-consumer.ts";
import {
  changedLinks,
  consumes,
  effectiveLink,
  exceeds,
  gatesOf,
  type Leg,
  linkIn,
  refundOf,
  takenOf,
} from "../../leg.ts";
import type { BucketStates } from "../state/bucket-states.ts";
import type { CachedState } from "../state/cached-states.ts";
import type { ShardRequests } from "../state/shard-requests.ts";
import {
  goesAgain,
  type LegsHistory,
  type LegsStep,
  newLegsHistory,
  nextOfLegs,
} from "./cascade-steps.ts";
import { type Driver, drive } from "./driver.ts";
import type { ConsumeAnswer } from "./step.ts";

export interface CascadeParts {
  readonly states: BucketStates;
  readonly requests: ShardRequests;
  readonly driver: Driver;
  readonly adjustments: Pick<Adjustments<unknown>, "adjust" | "refund" | "idle">;
  readonly readBalances: (legs: readonly Leg[], deadline: Deadline) => Promise<Balances>;
}

export interface CascadeOptions {
  readonly deadline: Deadline;
  readonly signal: AbortSignal | undefined;
  /** Called when a leg is refunded because another one was refused or failed. */
  readonly onRefunded: ((leg: Leg) => void) | undefined;
}

type Balances = readonly (readonly number[])[];

export class Cascade {
  readonly #parts: CascadeParts;

  constructor(parts: CascadeParts) {
    this.#parts = parts;
  }

  /** Consumes all legs, or refunds those that were consumed. */
  async consume(
    legs: readonly Leg[],
    options: CascadeOptions,
  ): Promise<Pick<LegsHistory, "answers" | "failures">> {
    let history = newLegsHistory(legs);
    const decide = () => {
      if (history.balances !== undefined && !history.isSecond && goesAgain(legs, history)) {
        history = { ...newLegsHistory(legs), isRead: true, isSecond: true };
      }
      const step = nextOfLegs(legs, history, this.#parts.states);
      return step === undefined ? undefined : [step];
    };
    await drive(decide, async (step) => {
      history = await this.#perform(step, legs, history, options);
    });
    return history;
  }

  /** Refunds the legs that were consumed. */
  async refund(
    legs: readonly Leg[],
    answers: readonly (ConsumeAnswer | undefined)[],
    { deadline, onRefunded }: Pick<CascadeOptions, "deadline" | "onRefunded">,
  ): Promise<void> {
    const refunds = legs.flatMap((leg, position) => {
      const answer = answers[position];
      if (answer?.kind !== "consumed" || !consumes(leg.amountsMilli)) return [];
      onRefunded?.(leg);
      return refundOf(leg, answer.parts, answer.periods);
    });
    await Promise.all(refunds.map((refund) => this.#parts.adjustments.refund(refund, deadline)));
  }

  async #perform(
    step: LegsStep,
    legs: readonly Leg[],
    history: LegsHistory,
    options: CascadeOptions,
  ): Promise<LegsHistory> {
    const chosen = step.legs.map((position) => legs[position] as Leg);
    switch (step.do) {
      case "read":
        await Promise.all(chosen.map((leg) => this.#read(leg, options.deadline)));
        return { ...history, isRead: true };
      case "consume":
        return this.#consume(step.legs, chosen, history, options);
      case "refund":
        await this.refund(legs, history.answers, options);
        return { ...history, isRefunded: true };
      case "read-balances":
        return { ...history, balances: await this.#readBalances(chosen, options.deadline) };
    }
  }

  /** Reads balances. The refusal is certain: a store that fails now does not change it. */
  async #readBalances(legs: readonly Leg[], deadline: Deadline): Promise<Balances> {
    try {
      return await this.#parts.readBalances(legs, deadline);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable)) throw error;
      return legs.map(({ amountsMilli }) => amountsMilli.map(() => Number.NEGATIVE_INFINITY));
    }
  }

  async #consume(
    positions: readonly number[],
    legs: readonly Leg[],
    history: LegsHistory,
    { deadline, signal }: CascadeOptions,
  ): Promise<LegsHistory> {
    const { driver } = this.#parts;
    const results = await Promise.allSettled(
      legs.map((leg) => driver.consume(leg, deadline, signal)),
    );
    const answers = [...history.answers];
    const failures = [...history.failures];
    results.forEach((result, at) => {
      if (result.status === "fulfilled") answers[positions[at] as number] = result.value;
      else failures.push(result.reason);
    });
    return { ...history, answers, failures };
  }

  /** Reads a leg, unless it is too busy: then the consume finds out. */
  async #read(leg: Leg, deadline: Deadline): Promise<void> {
    try {
      await this.#parts.requests.read(leg, 0, deadline);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable) || !error.keyRange) throw error;
    }
  }
}

/** Leg by leg; missing for those that were not reached or failed. */
export type Answers = readonly (ConsumeAnswer | undefined)[];

/** Returns whether one of several resources refuses the call, whatever the others answer. */
export function isRefusedAnyway(legs: readonly Leg[], answers: Answers): boolean {
  const [first] = legs;
  const isSeveral = legs.some(({ resource }) => resource !== first?.resource);
  return isSeveral && answers.some((answer) => answer?.kind === "refused");
}

/**
 * Returns whether a call is refused for certain, also if legs without balances cannot be read: a
 * leg has too little, and the links that lead to it were shown by now. `isShown`: the store has
 * shown the bucket of a leg, and its link, within the last second.
 */
export function isCertain(
  legs: readonly Leg[],
  balancesMilli: readonly (readonly number[] | undefined)[],
  isShown: (leg: Leg) => boolean,
): boolean {
  return legs.some(({ config, amountsMilli, resource }, at) => {
    const balances = balancesMilli[at];
    if (balances === undefined || !exceeds(gatesOf(config, amountsMilli), balances)) return false;
    return legs.slice(0, at).every((below, position) => {
      const isKnown = balancesMilli[position] !== undefined || below.linkIsFresh;
      // The links of a resource lead to its totals.
      const isBelow = below.resource === resource || resource === TOTAL;
      return !isBelow || isKnown || isShown(below);
    });
  });
}

/**
 * Refuses a call, unless the buckets have another parent than the legs were made from: an ancestor
 * refuses only those that cascade to it. `firsts`: the first shard of each leg. `shownAtMs`: when
 * the store showed the oldest shard.
 */
export function refusedBy(
  legs: readonly Leg[],
  balancesMilli: readonly (readonly number[])[],
  local: boolean,
  firsts: readonly (CachedState | undefined)[],
  shownAtMs: number,
  periods?: SeenBalances["periods"],
): ConsumeResult {
  if (legs.length === 1) return { outcome: "refused", balancesMilli, periods, local, shownAtMs };
  const shown = legs.map((leg, at) => {
    const bucket = firsts[at]?.bucket;
    return { link: bucket ? effectiveLink(linkIn(bucket), leg.config.cascade) : leg.link };
  });
  const links = changedLinks(legs, shown);
  if (links !== undefined) return { outcome: "relinked", links };
  const withoutBucket = legs.filter((_, at) => firsts[at]?.bucket === undefined);
  return { outcome: "refused", balancesMilli, periods, local, withoutBucket, shownAtMs };
}

/** Returns the balances of a leg before the call: one that was consumed is refunded. */
export function balancesBefore(
  answer: ConsumeAnswer | undefined,
  leg: Leg,
): readonly number[] | undefined {
  if (answer === undefined || answer.kind === "outdated") return undefined;
  if (answer.kind === "refused") return answer.balancesMilli;
  const takenMilli = takenOf(leg.config, leg.amountsMilli);
  return answer.balancesMilli.map((balance, at) => balance + (takenMilli[at] ?? 0));
}
