/**
 * Labels whose number is bounded, whatever callers pass. A value that was admitted keeps its label,
 * so that its counter never falls; the values that came too late share `other`.
 */

const OTHER = "other";

export class BoundedLabels {
  readonly #max: number;
  readonly #admitAfter: number;
  readonly #admitted = new Set<string>();
  /** How often values were seen that have no label yet. */
  readonly #seen = new Map<string, number>();

  /** `admitAfter`: how often a value must be seen first. The busiest values get there first. */
  constructor(max: number, admitAfter = 1) {
    this.#max = max;
    this.#admitAfter = admitAfter;
  }

  labelOf(value: string): string {
    if (this.#admitted.has(value)) return value;
    if (this.#admitted.size >= this.#max) return OTHER;
    const seen = (this.#seen.get(value) ?? 0) + 1;
    if (seen >= this.#admitAfter) {
      this.#admitted.add(value);
      this.#seen.delete(value);
      if (this.#admitted.size >= this.#max) this.#seen.clear();
      return value;
    }
    // Values that are seen once must not fill the memory.
    if (this.#seen.size >= this.#max * 100) this.#seen.clear();
    this.#seen.set(value, seen);
    return OTHER;
  }
}
