/** Consumes the legs of a cascading call as `cascade-steps.ts` decides: all of them or none. */

import type { Deadline } from "../../../base/time.ts";
import { RateLimiterUnavailable } from "../../../domain/errors/errors.ts";
import { consumes } from "../../gating.ts";
import { type Leg, refundOf } from "../../leg.ts";
import type { BucketStates } from "../state/bucket-states.ts";
import type { ShardRequests } from "../state/shard-requests.ts";
import type { Adjustments } from "./adjustments.ts";
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
  readonly adjustments: Adjustments;
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
      return refundOf(leg, answer.parts);
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
