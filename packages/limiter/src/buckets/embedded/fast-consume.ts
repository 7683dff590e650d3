/** A consume decided on the fast path; the common form of its result is built on demand. */

import type { FastOutcome, OnlyBucket } from "../fast-path.ts";
import type { BucketConfig, Leg, LegOutcome, Link } from "../leg.ts";

/** Its fields are only declared: a definition would write each of them twice. */
export class FastConsume implements FastOutcome, OnlyBucket {
  declare readonly granted: boolean;
  declare readonly entityId: string;
  declare readonly resource: string;
  declare readonly config: BucketConfig;
  declare readonly link: Link;
  /** In milli-tokens: the amount of each limit, then what each has left, or has where refused. */
  declare readonly milli: number[];

  constructor(
    granted: boolean,
    entityId: string,
    resource: string,
    config: BucketConfig,
    link: Link,
    milli: number[],
  ) {
    this.granted = granted;
    this.entityId = entityId;
    this.resource = resource;
    this.config = config;
    this.link = link;
    this.milli = milli;
  }

  get only(): OnlyBucket {
    return this;
  }

  get amountsMilli(): number[] {
    return this.milli.slice(0, this.milli.length / 2);
  }

  consumedMilli(at: number): number {
    return this.milli[at] as number;
  }

  leftMilli(at: number): number {
    return this.milli[this.milli.length / 2 + at] as number;
  }

  get balancesMilli(): readonly [readonly number[]] {
    return [this.milli.slice(this.milli.length / 2)];
  }

  get legs(): readonly [Leg] {
    const { entityId, resource, config, link, amountsMilli } = this;
    return [{ entityId, resource, config, amountsMilli, link, linkIsFresh: false }];
  }

  get outcomes(): readonly [LegOutcome] {
    const { link, amountsMilli } = this;
    const [balancesMilli] = this.balancesMilli;
    return [{ parts: [{ shard: 0, amountsMilli }], link, balancesMilli }];
  }
}
