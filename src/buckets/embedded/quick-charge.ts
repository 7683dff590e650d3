/** A charge that was decided on the spot, in the form of any other as soon as somebody asks. */

import type { BucketConfig, Leg, LegOutcome, Link } from "../bucket-store.ts";

export class QuickCharge {
  readonly granted: boolean;
  readonly entityId: string;
  readonly resource: string;
  readonly config: BucketConfig;
  readonly link: Link;
  readonly amountsMilli: readonly number[];
  /** After a grant, what is left; else what there is. */
  readonly balancesMilli: readonly number[];

  constructor(
    granted: boolean,
    entityId: string,
    resource: string,
    config: BucketConfig,
    link: Link,
    amountsMilli: readonly number[],
    balancesMilli: readonly number[],
  ) {
    this.granted = granted;
    this.entityId = entityId;
    this.resource = resource;
    this.config = config;
    this.link = link;
    this.amountsMilli = amountsMilli;
    this.balancesMilli = balancesMilli;
  }

  get legs(): readonly [Leg] {
    const { entityId, resource, config, link, amountsMilli } = this;
    return [{ entityId, resource, config, amountsMilli, link, linkIsFresh: false }];
  }

  get outcomes(): readonly [LegOutcome] {
    const parts = [{ shard: 0, amountsMilli: this.amountsMilli }];
    return [{ parts, link: this.link, balancesMilli: this.balancesMilli }];
  }
}
