/**
 * Decides how the legs of a cascading call are consumed: all or none. Pure.
 *
 * Legs are independent items. Those that are likely to refuse go before the others, the rest in
 * parallel, and behind all of them those that begin a session, which no refund would end. When one
 * is refused or fails, those that were consumed are refunded. Two calls may then have blocked each
 * other, each holding what the other needed: a call of which only a part was refused checks the
 * refused legs again after the refund, and if they have enough now, consumes leg by leg. All calls
 * use the same order then, from the child up, so that one of them is granted.
 */

import type { Limit } from "../../../domain/limit.ts";
import { exceeds, fits, gatesOf, type Leg } from "../../leg.ts";
import type { BucketStates } from "../state/bucket-states.ts";
import type { ConsumeAnswer } from "./step.ts";

export type LegsStep =
  /** Reads legs of which too little is known: only then the scarce ones can go first. */
  | { readonly do: "read"; readonly legs: readonly number[] }
  | { readonly do: "consume"; readonly legs: readonly number[] }
  | { readonly do: "refund"; readonly legs: readonly number[] }
  | { readonly do: "read-balances"; readonly legs: readonly number[] };

export interface LegsHistory {
  /** The legs of which too little was known were read. */
  readonly isRead: boolean;
  /** Aligned with the legs; missing for those that were not reached or failed. */
  readonly answers: readonly (ConsumeAnswer | undefined)[];
  readonly failures: readonly unknown[];
  readonly isRefunded: boolean;
  /** Balances of the refused legs after the refund. */
  readonly balances: readonly (readonly number[])[] | undefined;
  /** The second time each leg goes by itself. */
  readonly isSecond: boolean;
}

export function newLegsHistory(legs: readonly Leg[]): LegsHistory {
  return {
    isRead: false,
    answers: legs.map(() => undefined),
    failures: [],
    isRefunded: false,
    balances: undefined,
    isSecond: false,
  };
}

/** Returns the next step; `undefined` when the answers and failures of the history decide. */
export function nextOfLegs(
  legs: readonly Leg[],
  history: LegsHistory,
  states: BucketStates,
): LegsStep | undefined {
  const { answers, isRead, isSecond } = history;
  if (isStopped(history)) return afterStop(history);
  // Once a leg was consumed nothing is read: a read that fails would leave it consumed.
  const isFirst = !isRead && answers.every(isPending);
  const unknown = isFirst ? unknownOf(legs, states) : [];
  if (unknown.length > 0) return { do: "read", legs: unknown };
  const open = at(answers, (answer) => answer === undefined);
  if (open.length === 0) return undefined;
  if (isSecond) return { do: "consume", legs: open.slice(0, 1) };
  return { do: "consume", legs: firstOf(legs, open, states) };
}

/** Whether a second pass is worth it: the refused amounts would fit now. */
export function goesAgain(legs: readonly Leg[], history: LegsHistory): boolean {
  const { answers, balances } = history;
  if (balances === undefined) return false;
  const refused = at(answers, isRefused);
  return refused.every((leg, position) => {
    const { config, amountsMilli } = legs[leg] as Leg;
    return fits(config, amountsMilli, balances[position] as readonly number[]);
  });
}

/**
 * Returns the legs that are read first: those of which nothing is known, and before a session
 * begins all that the store has not shown within the last second.
 */
function unknownOf(legs: readonly Leg[], states: BucketStates): readonly number[] {
  const unknown = at(legs, (leg) => states.countOf(leg) === undefined);
  if (!legs.some((leg) => beginsSession(leg, states))) return unknown;
  return at(legs, (leg) => !states.isShown(leg));
}

/**
 * Returns the legs that go next: one that had too little, or hardly enough; else all together. Legs
 * that begin a session go behind the others, one by one from the ancestors down: a refund would
 * leave it open.
 */
function firstOf(
  legs: readonly Leg[],
  open: readonly number[],
  states: BucketStates,
): readonly number[] {
  const known = open.map((position) => {
    const leg = legs[position] as Leg;
    const needed = gatesOf(leg.config, leg.amountsMilli);
    return { position, needed, held: states.lastBalances(leg, leg.config).balancesMilli };
  });
  const lacks = (times: number) => (leg: (typeof known)[number]) =>
    exceeds(
      leg.needed.map((amount) => times * amount),
      leg.held,
    );
  const refusing = known.find(lacks(1));
  if (refusing !== undefined) return [refusing.position];
  const others = known.filter(({ position }) => !beginsSession(legs[position] as Leg, states));
  const next = others.length > 0 ? others : known.slice(-1);
  const scarce = next.find(lacks(2));
  return (scarce === undefined ? next : [scarce]).map(({ position }) => position);
}

/** Whether a leg begins a session, as far as this process knows. */
function beginsSession(leg: Leg, states: BucketStates): boolean {
  const { config, amountsMilli } = leg;
  const isUsed = ({ kind }: Limit, position: number) =>
    kind === "session" && (amountsMilli[position] ?? 0) > 0;
  if (!config.limits.some(isUsed)) return false;
  const periods = states.periodsOf(leg, config);
  return config.limits.some((limit, position) => {
    return isUsed(limit, position) && periods?.[position] === undefined;
  });
}

function isStopped({ answers, failures }: LegsHistory): boolean {
  return failures.length > 0 || answers.some((answer) => !isPending(answer) && !isConsumed(answer));
}

function afterStop(history: LegsHistory): LegsStep | undefined {
  const { answers, failures, isRefunded, balances, isSecond } = history;
  const consumed = at(answers, isConsumed);
  if (!isRefunded) return { do: "refund", legs: consumed };
  const refused = at(answers, isRefused);
  const partly =
    failures.length === 0 &&
    consumed.length > 0 &&
    refused.length > 0 &&
    !answers.some((answer) => answer?.kind === "outdated");
  if (!partly || isSecond || balances !== undefined) return undefined;
  return { do: "read-balances", legs: refused };
}

function isPending(answer: ConsumeAnswer | undefined): answer is undefined {
  return answer === undefined;
}

function isConsumed(answer: ConsumeAnswer | undefined): boolean {
  return answer?.kind === "consumed";
}

function isRefused(answer: ConsumeAnswer | undefined): boolean {
  return answer?.kind === "refused";
}

/** Returns the positions of those that pass. */
function at<T>(values: readonly T[], passes: (value: T) => boolean): number[] {
  return values.flatMap((value, position) => (passes(value) ? [position] : []));
}
