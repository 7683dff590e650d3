/**
 * Charges all legs of a call, or none.
 *
 * Legs are independent items and go in parallel, those that are likely to refuse before the
 * others. When one is refused, those that were charged are restored. Two calls may then have
 * stood in each other's way, each holding what the other needed: a call of which only a part was
 * refused looks again after giving back, and if there is enough now, goes leg by leg. All go in
 * the same order, from the child up, so that one of them gets through.
 */

import { RateLimiterUnavailable } from "../../domain/errors.ts";
import type { Leg } from "../bucket-store.ts";
import { type Adjustment, givingBack } from "../bucket-store.ts";
import type { Charger } from "./charger.ts";
import type { LegCharge } from "./leg-charge.ts";
import type { LegViews } from "./leg-views.ts";
import type { ShardCharger } from "./shard-charger.ts";
import { exceeds } from "./take-plan.ts";

export interface CascadeOptions {
  readonly read: ReadLegs;
  readonly deadline: number;
  /** Told when a leg was given back because another one was refused or failed. */
  readonly onRestored: ((leg: Leg) => void) | undefined;
}

/** What came of the legs; those that were not reached have no charge. */
export interface Charges {
  readonly charges: readonly (LegCharge | undefined)[];
  readonly failures: readonly unknown[];
}

type ReadLegs = (legs: readonly Leg[]) => Promise<readonly (readonly number[])[]>;
export type Restore = (adjustment: Adjustment, deadline: number) => Promise<void>;

export class Cascade {
  readonly #charger: Charger;
  readonly #shards: ShardCharger;
  readonly #views: LegViews;
  readonly #restore: Restore;

  constructor(charger: Charger, shards: ShardCharger, views: LegViews, restore: Restore) {
    this.#charger = charger;
    this.#shards = shards;
    this.#views = views;
    this.#restore = restore;
  }

  /** Charges all legs; otherwise what was charged has been given back. */
  async charge(legs: readonly Leg[], options: CascadeOptions): Promise<Charges> {
    if (legs.length === 1) return this.#alone(legs[0] as Leg, options.deadline);
    await this.#lookAtUnknown(legs, options.deadline);
    const first = await this.#inGroups(legs, this.#views.order(legs), options);
    if (!isPartlyRefused(first)) return first;
    const refused = legs.filter((_, at) => first.charges[at]?.kind === "refused");
    const balances = await options.read(refused);
    const stillRefused = refused.some((leg, at) =>
      exceeds(leg.amountsMilli, balances[at] as readonly number[]),
    );
    if (stillRefused) return first;
    return this.#inGroups(
      legs,
      legs.map((_, at) => [at]),
      options,
    );
  }

  /** Most calls have one leg, and nothing to wait for or to give back. */
  async #alone(leg: Leg, deadline: number): Promise<Charges> {
    try {
      return { charges: [await this.#charger.charge(leg, deadline)], failures: [] };
    } catch (error) {
      return { charges: [undefined], failures: [error] };
    }
  }

  /** Only who knows how much there is can put the scarce ones first. */
  async #lookAtUnknown(legs: readonly Leg[], deadline: number): Promise<void> {
    const unknown = legs.filter((leg) => this.#views.countOf(leg) === undefined);
    await Promise.all(unknown.map((leg) => this.#lookAt(leg, deadline)));
  }

  /** One that is too busy to be looked at is for the charge to deal with. */
  async #lookAt(leg: Leg, deadline: number): Promise<void> {
    try {
      await this.#shards.look(leg, 0, deadline);
    } catch (error) {
      if (!(error instanceof RateLimiterUnavailable) || !error.keyRange) throw error;
    }
  }

  async #inGroups(
    legs: readonly Leg[],
    groups: readonly (readonly number[])[],
    options: CascadeOptions,
  ): Promise<Charges> {
    const charges: (LegCharge | undefined)[] = legs.map(() => undefined);
    const failures: unknown[] = [];
    for (const group of groups) {
      const settled = await Promise.allSettled(
        group.map((at) => this.#charger.charge(legs[at] as Leg, options.deadline)),
      );
      settled.forEach((result, position) => {
        if (result.status === "fulfilled") charges[group[position] as number] = result.value;
        else failures.push(result.reason);
      });
      const stopped = group.some((at) => charges[at]?.kind !== "charged");
      if (!stopped) continue;
      await this.#giveBack(legs, charges, options);
      break;
    }
    return { charges, failures };
  }

  async #giveBack(
    legs: readonly Leg[],
    charges: readonly (LegCharge | undefined)[],
    { deadline, onRestored }: CascadeOptions,
  ): Promise<void> {
    const adjustments = legs.flatMap((leg, at) => {
      const charge = charges[at];
      if (charge?.kind !== "charged" || !leg.amountsMilli.some((amount) => amount > 0)) return [];
      onRestored?.(leg);
      return givingBack(leg, charge.parts);
    });
    await Promise.all(adjustments.map((adjustment) => this.#restore(adjustment, deadline)));
  }
}

/** Some legs were charged and given back, others refused, and nothing else went wrong. */
function isPartlyRefused({ charges, failures }: Charges): boolean {
  const kinds = charges.map((charge) => charge?.kind);
  return (
    failures.length === 0 &&
    kinds.includes("charged") &&
    kinds.includes("refused") &&
    !kinds.includes("outdated")
  );
}
