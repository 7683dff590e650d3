/**
 * The rule itself, for a whole bucket however many shards it has: what `tc` says was consumed never
 * exceeds the capacity, what has accrued and what operators have added, by the clocks of the
 * processes that consumed. It uses nothing but `tc` and operations, and only buckets whose limits
 * never change.
 */

import type { LimitOfShard, ShardImage } from "./bucket-image.ts";
import { ClockOrder } from "./clock-order.ts";
import { type BucketLanding, type DebtOf, ratesOf } from "./ledger.ts";
import { flowOf } from "./share.ts";
import { Violation } from "./violation.ts";

interface Total {
  readonly consumed: ClockOrder;
  readonly limit: LimitOfShard;
}

export class Totals {
  readonly #totals = new Map<string, Total | undefined>();
  readonly #debtOf: DebtOf;

  constructor(debtOf: DebtOf) {
    this.#debtOf = debtOf;
  }

  /** Whether the rule was applied to a limit until the end. */
  follows(bucket: string, limitName: string): boolean {
    return this.#totals.get(`${bucket} ${limitName}`) !== undefined;
  }

  landed(landings: readonly BucketLanding[]): void {
    for (const { before, after, plannedMs, charged } of landings) {
      this.#dropRemoved(before, after);
      if (after === undefined) continue;
      for (const limit of ratesOf(after)) {
        const id = `${after.bucket} ${limit.name}`;
        const total = this.#totalOf(id, limit, after.epochMs);
        if (total === undefined) continue;
        const taken = charged.get(limit.name) ?? 0n;
        total.consumed.take(taken, plannedMs);
        if (taken > 0n && total.consumed.overdrawn(this.#debtOf(after.bucket, limit.name))) {
          const detail = `a take of ${taken} milli-tokens got more than there ever were`;
          throw new Violation("over-admission", `"${limit.name}" of ${after.bucket}`, detail);
        }
      }
    }
  }

  /** Removes a limit that is gone, with or without its bucket: it starts from zero again. */
  #dropRemoved(before: ShardImage | undefined, after: ShardImage | undefined): void {
    if (before === undefined && after !== undefined) this.#beginAgain(after);
    for (const { name } of before?.limits ?? []) {
      if (after?.limits.some((limit) => limit.name === name) === true) continue;
      this.#totals.set(`${before?.bucket} ${name}`, undefined);
    }
  }

  /** Begins full by the numbers of a window that is open, see `refuseLoss` of the ledger. */
  #beginAgain({ bucket, shard, limits }: ShardImage): void {
    if (shard > 0) return;
    for (const { name, windows } of limits) {
      const id = `${bucket} ${name}`;
      if (windows !== undefined && this.#totals.get(id) !== undefined) this.#totals.delete(id);
    }
  }

  #totalOf(id: string, limit: LimitOfShard, epochMs: number): Total | undefined {
    if (!this.#totals.has(id)) {
      const consumed = new ClockOrder(flowOf(limit, 0, 1), epochMs);
      this.#totals.set(id, { consumed, limit });
    }
    const total = this.#totals.get(id);
    if (total === undefined) return undefined;
    const { capacity, refill, period, windows } = total.limit;
    if (windows?.text !== limit.windows?.text) {
      const detail = `has the windows ${limit.windows?.text} in place of ${windows?.text}`;
      throw new Violation("conservation", id, detail);
    }
    if (capacity === limit.capacity && refill === limit.refill && period === limit.period) {
      return total;
    }
    this.#totals.set(id, undefined);
    return undefined;
  }
}
