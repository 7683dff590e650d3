/**
 * Sums by attributes, kept as plain numbers and read when metrics are collected. The SDK's own
 * counters cost more per call than an acquire in memory.
 */

import type { Attributes, ObservableResult } from "@opentelemetry/api";

interface Sum {
  readonly attributes: Attributes;
  value: number;
}

export class Tally {
  readonly #names: readonly string[];
  readonly #sums = new Map<string, Sum>();

  constructor(names: readonly string[]) {
    this.#names = names;
  }

  /** Adds to the sum of these values, in the order of the names; `undefined` leaves a name out. */
  add(amount: number, ...values: (string | undefined)[]): void {
    const key = values.join("\u0000");
    const sum = this.#sums.get(key);
    if (sum === undefined) this.#sums.set(key, { attributes: this.#named(values), value: amount });
    else sum.value += amount;
  }

  /** Keeps the largest amount instead of the sum. */
  raise(amount: number, ...values: (string | undefined)[]): void {
    const before = this.#sums.get(values.join("\u0000"))?.value ?? 0;
    if (amount > before) this.add(amount - before, ...values);
  }

  observe(result: ObservableResult): void {
    for (const { attributes, value } of this.#sums.values()) result.observe(value, attributes);
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
