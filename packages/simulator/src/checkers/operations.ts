/**
 * Resets and top-ups: each key at most once, all shards in one transaction, and the balance changes
 * by what the record says. What they add is credited to the ideal buckets of the other checkers.
 */

import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import type { Landing } from "@zae-limiter/testing/table/call.ts";
import { isOperation } from "./charges.ts";
import type { BucketLanding } from "./ledger.ts";
import { Violation } from "./violation.ts";

const MILLI = 1000;

/** The operation that a call asked for. */
export interface PlannedOperation {
  readonly key: string;
  readonly kind: "reset" | "top_up";
  readonly bucket: string;
  /** Whole tokens by limit name; none for a reset, which fills all limits. */
  readonly amounts: Readonly<Record<string, number>>;
}

/** The answer that a call got. */
export interface OperationAnswer {
  readonly shards: number;
  readonly amounts: Readonly<Record<string, number>>;
}

interface Known {
  readonly planned: PlannedOperation;
  /** The answer of the first call that got one; later calls must get the same. */
  answer: OperationAnswer | undefined;
  record: Item | undefined;
}

export class Operations {
  readonly #known = new Map<string, Known>();
  made = 0;

  /** Records that a call with this key will be made, perhaps not for the first time. */
  plan(planned: PlannedOperation): void {
    if (!this.#known.has(planned.key)) {
      this.#known.set(planned.key, { planned, answer: undefined, record: undefined });
    }
  }

  answered(key: string, answer: OperationAnswer): void {
    const known = this.#known.get(key) as Known;
    const { record, planned } = known;
    const subject = subjectOf(planned);
    if (record === undefined) throw new Violation("operations", subject, "was never made");
    known.answer ??= answer;
    const told = JSON.stringify([answer.shards, answer.amounts]);
    const made = JSON.stringify([record.shards, record.amounts]);
    if (told !== made || told !== JSON.stringify([known.answer.shards, known.answer.amounts])) {
      throw new Violation("operations", subject, `was told ${told}, and made ${made}`);
    }
  }

  landed(landings: readonly Landing[], buckets: readonly BucketLanding[]): void {
    for (const landing of landings) {
      if (isOperation(landing) && landing.after !== undefined) {
        this.#made(landing.after, buckets);
      }
    }
  }

  #made(record: Item, buckets: readonly BucketLanding[]): void {
    const known = this.#known.get(record.SK.slice("#OP#".length));
    if (known === undefined) {
      throw new Violation("operations", record.SK, "was made, and no call has asked for it");
    }
    const { planned } = known;
    const subject = subjectOf(planned);
    if (known.record !== undefined) throw new Violation("operations", subject, "was made twice");
    known.record = record;
    this.made += 1;
    const added = new Map<string, bigint>();
    for (const { before, after, charged } of buckets) {
      if (before === undefined || after?.bucket !== planned.bucket) {
        throw new Violation("operations", subject, "has changed another bucket");
      }
      for (const { name } of after.limits) {
        added.set(name, (added.get(name) ?? 0n) - (charged.get(name) ?? 0n));
      }
    }
    judgeAmounts(planned, record, added);
  }
}

function judgeAmounts(
  planned: PlannedOperation,
  { amounts }: Item,
  added: ReadonlyMap<string, bigint>,
): void {
  const told = (amounts ?? {}) as Readonly<Record<string, number>>;
  for (const [name, milli] of added) {
    const tokens = Number(milli) / MILLI;
    const most = planned.kind === "reset" ? Number.POSITIVE_INFINITY : (planned.amounts[name] ?? 0);
    if (tokens < 0 || tokens > most || Math.floor(tokens) !== (told[name] ?? 0)) {
      const detail = `has added ${tokens} of "${name}", says ${told[name] ?? 0}, and may add ${most}`;
      throw new Violation("operations", subjectOf(planned), detail);
    }
  }
}

function subjectOf({ kind, key, bucket }: PlannedOperation): string {
  return `${kind} ${key} of ${bucket}`;
}
