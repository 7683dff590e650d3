/** The limits that buckets were built from, shared by all buckets with the same ones. */

import type { Rate } from "../../core/bucket.ts";
import { type BuiltFrom, sameRate } from "../config-match.ts";
import type { BucketConfig, LimitSource } from "../leg.ts";

/** The map of shared builds is emptied when it has this many. */
const BUILDS_MAX = 1000;

/** The limits that a bucket was built from. Buckets with the same limits share one object. */
export class Build implements BuiltFrom {
  readonly version: number;
  readonly source: LimitSource;
  readonly names: readonly string[];
  /** Aligned with `names`. */
  readonly rates: readonly Rate[];

  constructor(
    version: number,
    source: LimitSource,
    names: readonly string[],
    rates: readonly Rate[],
  ) {
    this.version = version;
    this.source = source;
    this.names = names;
    this.rates = rates;
  }

  rateOf(limitName: string): Rate | undefined {
    return this.rates[this.names.indexOf(limitName)];
  }

  limitNames(): Iterable<string> {
    return this.names;
  }

  /** Whether the bucket has exactly the limits of a config, in its order. */
  isOf({ limits }: Pick<BucketConfig, "limits">): boolean {
    const { names, rates } = this;
    return (
      names.length === limits.length &&
      limits.every(({ name, rate }, at) => names[at] === name && sameRate(rates[at] as Rate, rate))
    );
  }
}

/** Keeps one build for all buckets with the same limits: a table may have a million buckets. */
export class SharedBuilds {
  readonly #builds = new Map<string, Build>();

  /** Returns the shared build that is equal; `before`, which most writes leave, where it is. */
  of(build: Build, before: Build | undefined): Build {
    if (before !== undefined && (before === build || isSame(before, build))) return before;
    const text = JSON.stringify(build);
    const known = this.#builds.get(text);
    if (known !== undefined) return known;
    if (this.#builds.size >= BUILDS_MAX) this.#builds.clear();
    this.#builds.set(text, build);
    return build;
  }
}

function isSame(left: Build, right: Build): boolean {
  return (
    left.version === right.version &&
    left.source === right.source &&
    left.names.length === right.names.length &&
    left.names.every(
      (name, at) =>
        name === right.names[at] && sameRate(left.rates[at] as Rate, right.rates[at] as Rate),
    )
  );
}
