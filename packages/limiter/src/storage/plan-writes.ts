/** Computes what writes would do, without doing it. */

import { checkDistinct, checkTransaction, checkWrite, keyOfWrite } from "./checks.ts";
import { applyChange, holds, storedItem } from "./evaluate.ts";
import type { Item, Key } from "./item.ts";
import type { TransactResult, Write } from "./item-store.ts";

/** One write, and the item before and after it. */
export interface PlannedWrite {
  readonly key: Key;
  /** Whether the condition holds; where it does not, `after` is what is stored. */
  readonly ok: boolean;
  readonly before: Item | undefined;
  readonly after: Item | undefined;
}

/** The effect of writes that go together; `failures` as in the result of a transaction. */
export interface PlannedWrites {
  readonly writes: readonly PlannedWrite[];
  /** The result that the transaction has. */
  readonly result: TransactResult;
}

/**
 * Checks writes and works out what each of them does to what `read` returns: for stores that
 * evaluate conditions and changes in this process, under a lock or in a transaction of their own.
 * Throws a `ValidationError` for a request that could never work. `transaction`: at most 100.
 *
 * @example
 * ```ts
 * import { planWrites, type Item } from 'zae-limiter/testing';
 * const stored: Item = { PK: 'ns/ENTITY#key-1', SK: '#META', tokens: 5 };
 * const update = { PK: stored.PK, SK: stored.SK };
 * const condition = [{ is: '>=', name: 'tokens', value: 3 }] as const;
 * const write = { update, change: { add: { tokens: -3 } }, condition };
 * const { writes, result } = planWrites([write], () => stored);
 * console.log(result.ok, writes[0]?.after?.['tokens']); // true 2
 * ```
 */
export function planWrites(
  writes: readonly Write[],
  read: (key: Key) => Item | undefined,
  options: { readonly transaction?: boolean } = {},
): PlannedWrites {
  if (options.transaction === true) checkTransaction(writes);
  else {
    checkDistinct(writes.map(keyOfWrite));
    writes.forEach(checkWrite);
  }
  const failures = new Map<number, { item: Item | undefined }>();
  const planned = writes.map((write, position) => {
    const step = planWrite(write, read(keyOfWrite(write)));
    if (!step.ok) failures.set(position, { item: step.before });
    return step;
  });
  return { writes: planned, result: failures.size > 0 ? { ok: false, failures } : { ok: true } };
}

/** Works out one write, which was checked before. */
export function planWrite(write: Write, before: Item | undefined): PlannedWrite {
  const key = keyOfWrite(write);
  const ok = holds(write.condition, before);
  return { key, ok, before, after: ok ? outcome(write, before) : before };
}

function outcome(write: Write, before: Item | undefined): Item | undefined {
  if ("put" in write) return storedItem(write.put);
  if ("update" in write) return applyChange(write.update, before, write.change);
  return "delete" in write ? undefined : before;
}
