/** Lists of the buckets of an embedded store. */

import { defined } from "../../base/defined.ts";
import type { Clock } from "../../base/time.ts";
import type { Rate } from "../../core/bucket.ts";
import { SCHEDULES } from "../../domain/schedules.ts";
import type { StoredState } from "../bucket-admin.ts";
import { hasPeriods } from "../periods.ts";
import { holdersOf } from "../slots/slot-entries.ts";
import { totalAt } from "../slots/slot-peaks.ts";
import type { Bucket } from "./bucket.ts";
import { seenPeriodAt } from "./bucket-periods.ts";
import type { BucketId, BucketTable } from "./bucket-table.ts";
import { resourcesIn } from "./embedded-transfer.ts";
import { refilledAtMs } from "./limit-numbers.ts";

export class BucketLists {
  readonly #table: BucketTable;
  readonly #clock: Clock;

  constructor(table: BucketTable, clock: Clock) {
    this.#table = table;
    this.#clock = clock;
  }

  /** Lists the limits of an entity, for one resource or for all. */
  entity(entityId: string, resource?: string): Promise<StoredState[]> {
    return this.#table.peek(() => {
      const now = this.#clock();
      return this.#table
        .ofEntity(entityId)
        .filter((row) => resource === undefined || row.resource === resource)
        .flatMap((row) => statesOf(row, row.bucket, now));
    }, undefined);
  }

  async *resource(resource: string): AsyncGenerator<StoredState> {
    let after: string | undefined;
    for (;;) {
      const from = after;
      const rows = await this.#table.peek(() => this.#table.ofResource(resource, from), undefined);
      if (rows.length === 0) return;
      for (const row of rows) yield* statesOf(row, row.bucket, this.#clock());
      after = rows.at(-1)?.entityId;
    }
  }

  async *all(): AsyncGenerator<StoredState> {
    for await (const resource of resourcesIn(this.#table)) yield* this.resource(resource);
  }
}

/** Returns the limits of a bucket for lists. */
function statesOf({ entityId, resource }: BucketId, bucket: Bucket, nowMs: number): StoredState[] {
  const { numbers, build, rare } = bucket;
  return build.names.map((limitName, at) => {
    const rate = build.rates[at] as Rate;
    const { capacityMilli, refillMilli, periodMs } = SCHEDULES.rateAt(rate, nowMs);
    return {
      entityId,
      resource,
      shard: 0,
      shardCount: 1,
      limitName,
      capacityMilli,
      refillMilli,
      periodMs,
      balanceMilli: bucket.balanceMilli(at, nowMs),
      consumedMilli: totalAt(numbers, at, rate),
      refilledAtMs: refilledAtMs(numbers, at),
      ...defined({ holders: holdersOf(rare.slots, limitName) }),
      ...(hasPeriods(rate)
        ? { rule: rate.rule, period: seenPeriodAt(numbers, at, rate, nowMs) }
        : {}),
    };
  });
}
