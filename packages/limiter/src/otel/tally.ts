/**
 * Sums by attributes, kept as plain numbers and read when metrics are collected. The SDK's own
 * counters cost more per call than an acquire in memory.
 */

import type { Attributes, ObservableResult } from "@opentelemetry/api";

interface Sum {
  readonly attributes: Attributes;
  value: number;
}

/** Finds the sum of some values, one value after the other: no key has to be put together. */
interface Branch {
  readonly branches: Map<string | undefined, Branch>;
  sum: Sum | undefined;
}

/** Values that come when there are too many sums share one, in which every label is this. */
const OTHER = "other";
/** Labels are bounded where they are made; their combinations are bounded here. */
const SUMS_MAX = 5000;

export class Tally {
  readonly #names: readonly string[];
  readonly #most: number;
  readonly #root: Branch = newBranch();
  readonly #sums: Sum[] = [];
  #other: Sum | undefined;

  constructor(names: readonly string[], most: number = SUMS_MAX) {
    this.#names = names;
    this.#most = most;
  }

  /** Adds to the sum of these values, in the order of the names; `undefined` leaves a name out. */
  add(amount: number, ...values: (string | undefined)[]): void {
    this.sumOf(...values).value += amount;
  }

  /** Keeps the largest amount instead of the sum. */
  raise(amount: number, ...values: (string | undefined)[]): void {
    const sum = this.sumOf(...values);
    if (amount > sum.value) sum.value = amount;
  }

  observe(result: ObservableResult): void {
    for (const { attributes, value } of this.#sums) result.observe(value, attributes);
    if (this.#other !== undefined) result.observe(this.#other.value, this.#other.attributes);
  }

  /** Returns the sum of these values, in the order of the names. */
  sumOf(...values: (string | undefined)[]): Sum {
    let branch = this.#root;
    for (const value of values) {
      let next = branch.branches.get(value);
      if (next === undefined) {
        if (this.#sums.length >= this.#most) return this.#overflow();
        next = newBranch();
        branch.branches.set(value, next);
      }
      branch = next;
    }
    if (branch.sum === undefined) {
      branch.sum = { attributes: this.#named(values), value: 0 };
      this.#sums.push(branch.sum);
    }
    return branch.sum;
  }

  #overflow(): Sum {
    this.#other ??= { attributes: this.#named(this.#names.map(() => OTHER)), value: 0 };
    return this.#other;
  }

  #named(values: readonly (string | undefined)[]): Attributes {
    const attributes: Attributes = {};
    this.#names.forEach((name, at) => {
      const value = values[at];
      if (value !== undefined) attributes[name] = value;
    });
    return attributes;
  }
}

function newBranch(): Branch {
  return { branches: new Map(), sum: undefined };
}
