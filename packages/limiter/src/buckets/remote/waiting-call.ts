/** A call that waits for the server, alone or together with others of the same buckets. */

import type { Deadline } from "../../base/time.ts";
import { tooLate } from "../../domain/errors/unavailability.ts";
import { bucketId } from "../../records/keys.ts";
import type { ConsumeOptions, ConsumeResult } from "../bucket-consumer.ts";
import { warmTerms } from "../embedded/warm-row.ts";
import { Waiting } from "../gathering.ts";
import { consumes, fits, gatesOf, type Leg, sameLink, takenOf } from "../leg.ts";
import { countedOf } from "../slots/slot-amounts.ts";

/** The amounts of one leg, in the order of its limits. */
interface LegAmounts {
  readonly gatesMilli: readonly number[];
  readonly takenMilli: readonly number[];
  readonly countedMilli: readonly number[];
  readonly acquires: number;
}

export class WaitingCall extends Waiting<ConsumeResult> {
  readonly legs: readonly Leg[];
  readonly options: ConsumeOptions;
  /** The config version that this process knew when the call was made. */
  readonly knownVersion: number | undefined;

  constructor(
    legs: readonly Leg[],
    options: ConsumeOptions,
    knownVersion: number | undefined,
    deadline: Deadline,
    resolve: (result: ConsumeResult) => void,
    reject: (error: unknown) => void,
  ) {
    super(deadline, resolve, reject);
    this.legs = legs;
    this.options = options;
    this.knownVersion = knownVersion;
  }

  /** Ends at its own deadline, although others of its request may go on. */
  expire(): void {
    this.fail(tooLate(!this.isSent));
  }
}

/** Returns the place of a call: all its buckets, in their order. */
export function chainId(legs: readonly Leg[]): string {
  const [first] = legs;
  return legs.length === 1 && first !== undefined
    ? bucketId(first)
    : legs.map((leg) => bucketId(leg)).join("\n");
}

/** Whether two calls of the same buckets expect the same of them. */
export function mayShare({ legs }: WaitingCall, { legs: others }: WaitingCall): boolean {
  return legs.every(({ config, link }, at) => {
    const other = others[at] as Leg;
    if (config === other.config && link === other.link) return true;
    const { limits, forced, cascade, bypass } = config;
    return (
      limits === other.config.limits &&
      forced === other.config.forced &&
      cascade === other.config.cascade &&
      bypass === other.config.bypass &&
      sameLink(link, other.link)
    );
  });
}

/** Returns the first calls whose sums are safe integers; one at least. */
export function safePrefix(calls: readonly WaitingCall[]): readonly WaitingCall[] {
  const [first] = calls;
  if (calls.length <= 1 || first === undefined) return calls;
  const sums = first.legs.map(({ amountsMilli }) => [...amountsMilli]);
  for (let count = 1; count < calls.length; count += 1) {
    const { legs } = calls[count] as WaitingCall;
    for (const [leg, { amountsMilli }] of legs.entries()) {
      const sum = sums[leg] as number[];
      for (const [at, amount] of amountsMilli.entries()) sum[at] = (sum[at] as number) + amount;
      if (!sum.every(Number.isSafeInteger)) return calls.slice(0, count);
    }
  }
  return calls;
}

/** Returns the latest deadline of calls. */
export function latestOf(calls: readonly WaitingCall[]): Deadline {
  const [{ deadline }] = calls as [WaitingCall];
  return calls.reduce((latest: Deadline, call) => latest.latest(call.deadline), deadline);
}

/** Returns the sum of what calls ask of one leg, in the order of the names of its limits. */
export function amountsAt(calls: readonly WaitingCall[], at: number): LegAmounts {
  const { config } = (calls[0] as WaitingCall).legs[at] as Leg;
  const { order, isSorted } = warmTerms(config.limits);
  let acquires = 0;
  const sums = config.limits.map(() => 0);
  for (const { legs } of calls) {
    const { amountsMilli } = legs[at] as Leg;
    if (consumes(amountsMilli)) acquires += 1;
    for (let place = 0; place < sums.length; place += 1) {
      sums[place] = (sums[place] as number) + (amountsMilli[place] ?? 0);
    }
  }
  const counted = countedOf(config, sums);
  const countedMilli = isSorted ? counted : order.map((place) => counted[place] as number);
  const gates = gatesOf(config, sums);
  const gatesMilli = gates === sums ? countedMilli : order.map((place) => gates[place] as number);
  const isCounted = config.bypass === true;
  const takenMilli = isCounted ? countedMilli.map(() => 0) : countedMilli;
  return { gatesMilli, takenMilli, countedMilli, acquires };
}

/** Whether a call fits into balances, leg by leg, in the order of the limits. */
export function fitsInto(
  { legs }: WaitingCall,
  balancesMilli: readonly (readonly number[])[],
): boolean {
  return legs.every(({ config, amountsMilli }, at) =>
    fits(config, amountsMilli, balancesMilli[at] as readonly number[]),
  );
}

/** Returns balances less the amounts of a call, or with them added again. */
export function balancesWith(
  { legs }: WaitingCall,
  balancesMilli: readonly (readonly number[])[],
  sign: 1 | -1,
): readonly (readonly number[])[] {
  return legs.map(({ config, amountsMilli }, at) => {
    const taken = takenOf(config, amountsMilli);
    return (balancesMilli[at] as readonly number[]).map(
      (balance, place) => balance + sign * (taken[place] ?? 0),
    );
  });
}

/** Returns the calls that fit one after the other. */
export function firstThatFit(
  calls: readonly WaitingCall[],
  balancesMilli: readonly (readonly number[])[],
): readonly WaitingCall[] {
  let left = balancesMilli;
  return calls.filter((call) => {
    if (!fitsInto(call, left)) return false;
    left = balancesWith(call, left, -1);
    return true;
  });
}
