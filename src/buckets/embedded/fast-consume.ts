/** A consume decided on the fast path; the common form of its result is built on demand. */

import type { BucketConfig, Leg, LegOutcome, Link } from "../leg.ts";

export class FastConsume {
  readonly granted: boolean;
  readonly entityId: string;
  readonly resource: string;
  readonly config: BucketConfig;
  readonly link: Link;
  readonly amountsMilli: readonly number[];
  readonly #leftMilli: readonly number[];

  constructor(
    granted: boolean,
    entityId: string,
    resource: string,
    config: BucketConfig,
    link: Link,
    amountsMilli: readonly number[],
    leftMilli: readonly number[],
  ) {
    this.granted = granted;
    this.entityId = entityId;
    this.resource = resource;
    this.config = config;
    this.link = link;
    this.amountsMilli = amountsMilli;
    this.#leftMilli = leftMilli;
  }

  get balancesMilli(): readonly [readonly number[]] {
    return [this.#leftMilli];
  }

  get legs(): readonly [Leg] {
    const { entityId, resource, config, link, amountsMilli } = this;
    return [{ entityId, resource, config, amountsMilli, link, linkIsFresh: false }];
  }

  get outcomes(): readonly [LegOutcome] {
    const parts = [{ shard: 0, amountsMilli: this.amountsMilli }];
    return [{ parts, link: this.link, balancesMilli: this.#leftMilli }];
  }
}
