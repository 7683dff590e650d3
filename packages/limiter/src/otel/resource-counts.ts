/** The sums of one resource, kept at hand: most events of a limiter add to the same few. */

import type { Attributes } from "@opentelemetry/api";
import type { BoundedLabels } from "./bounded-labels.ts";
import { NAMESPACE, OUTCOME, RESOURCE } from "./names.ts";
import type { Sum, Tally } from "./tally.ts";

/** The tallies that the sums belong to. */
interface CountedTallies {
  readonly acquires: Tally;
  readonly consumed: Tally;
  readonly adjusted: Tally;
  readonly limits: BoundedLabels;
}

/** A grant is counted without labels for the limit, its level and the entity. */
const NO_LABELS = [undefined, undefined, undefined] as const;

export class ResourceCounts {
  /** The label of the resource. */
  readonly resource: string;
  readonly #namespace: string;
  readonly #tallies: CountedTallies;
  #granted: Sum | undefined;
  readonly #consumed = new Map<string, Sum>();
  readonly #more = new Map<string, Sum>();
  readonly #less = new Map<string, Sum>();
  readonly #attributes = new Map<string, Attributes>();

  constructor(resource: string, namespace: string, tallies: CountedTallies) {
    this.resource = resource;
    this.#namespace = namespace;
    this.#tallies = tallies;
  }

  /** Counts a grant, and what it has consumed by limit. */
  granted(consumed: Readonly<Record<string, number>>): void {
    const { acquires, consumed: tally } = this.#tallies;
    this.#granted ??= acquires.sumOf("granted", this.resource, this.#namespace, ...NO_LABELS);
    this.#granted.value += 1;
    for (const name in consumed) {
      const sum = this.#consumed.get(name) ?? this.#sum(this.#consumed, tally, name, undefined);
      sum.value += consumed[name] ?? 0;
    }
  }

  /** Counts a correction of what was consumed. */
  adjusted(name: string, amount: number): void {
    if (amount === 0) return;
    const sums = amount > 0 ? this.#more : this.#less;
    const direction = amount > 0 ? "more" : "less";
    const sum = sums.get(name) ?? this.#sum(sums, this.#tallies.adjusted, name, direction);
    sum.value += Math.abs(amount);
  }

  /** Returns the same object each time, which a meter may recognize. */
  attributesOf(outcome: string): Attributes {
    let attributes = this.#attributes.get(outcome);
    if (attributes === undefined) {
      attributes = { [OUTCOME]: outcome, [RESOURCE]: this.resource, [NAMESPACE]: this.#namespace };
      this.#attributes.set(outcome, attributes);
    }
    return attributes;
  }

  /** Finds a sum, and keeps it by the label of the limit, of which there are few. */
  #sum(sums: Map<string, Sum>, tally: Tally, name: string, direction: string | undefined): Sum {
    const limit = this.#tallies.limits.labelOf(name);
    const sum = tally.sumOf(this.resource, this.#namespace, limit, direction);
    sums.set(limit, sum);
    return sum;
  }
}
