/**
 * Sums of what was consumed in each period, for a whole bucket however many shards it has, and of
 * what each process may refund in it: what it consumed in that period, and no more.
 */

import { smaller } from "./share.ts";
import { Violation } from "./violation.ts";

interface PeriodSum {
  consumed: bigint;
  /** The largest allowance that the limit had in the period. */
  allowance: bigint;
}

/** One limit of a bucket, in the period that ends at `endMs`. */
export interface PeriodOfBucket {
  readonly bucket: string;
  readonly limitName: string;
  readonly endMs: number;
}

export class PeriodBooks {
  readonly #sums = new Map<string, PeriodSum>();
  /** Amounts that a process consumed and has not refunded, by the end of their period. */
  readonly #open = new Map<string, Map<number, bigint>>();

  /** Records a consumption; together with all others it is at most the allowance and `debt`. */
  take(
    period: PeriodOfBucket,
    process: number,
    { amount, allowance, debt }: Record<"amount" | "allowance" | "debt", bigint>,
  ): void {
    const sum = this.#sumOf(period);
    if (allowance > sum.allowance) sum.allowance = allowance;
    sum.consumed += amount;
    this.#add(period, process, amount);
    if (amount <= 0n || sum.consumed <= sum.allowance + debt) return;
    const detail = `${sum.consumed} milli were consumed in the period until ${period.endMs}`;
    throw new Violation("over-admission", subjectOf(period), `${detail}, of ${sum.allowance}`);
  }

  /** Records a refund: `returned` of it came back to the balance, and `dropped` did not. */
  refund(period: PeriodOfBucket, process: number, returned: bigint, dropped: bigint): void {
    this.#sumOf(period).consumed -= returned;
    const left = this.#add(period, process, -returned);
    if (left < 0n) {
      const detail = `process ${process} refunded ${-left} milli more than it consumed in the period`;
      throw new Violation("over-admission", subjectOf(period), detail);
    }
    let earlier = dropped;
    const open = this.#openOf(period, process);
    for (const [endMs, amount] of open) {
      if (endMs === period.endMs || earlier === 0n) continue;
      const part = smaller(amount, earlier);
      open.set(endMs, amount - part);
      earlier -= part;
    }
    if (earlier === 0n) return;
    const detail = `a refund of process ${process} was dropped by ${earlier} milli in its own period`;
    throw new Violation("conservation", subjectOf(period), detail);
  }

  #add(period: PeriodOfBucket, process: number, amount: bigint): bigint {
    const open = this.#openOf(period, process);
    const left = (open.get(period.endMs) ?? 0n) + amount;
    open.set(period.endMs, left);
    return left;
  }

  #openOf({ bucket, limitName }: PeriodOfBucket, process: number): Map<number, bigint> {
    const id = `${process} ${bucket} ${limitName}`;
    const open = this.#open.get(id) ?? new Map<number, bigint>();
    this.#open.set(id, open);
    return open;
  }

  #sumOf({ bucket, limitName, endMs }: PeriodOfBucket): PeriodSum {
    const id = `${bucket} ${limitName} ${endMs}`;
    const sum = this.#sums.get(id) ?? { consumed: 0n, allowance: 0n };
    this.#sums.set(id, sum);
    return sum;
  }
}

function subjectOf({ bucket, limitName }: PeriodOfBucket): string {
  return `"${limitName}" of ${bucket}`;
}
