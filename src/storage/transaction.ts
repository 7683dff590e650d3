/** What every store asks of a transaction before it starts. */

import { ValidationError } from "../domain/errors.ts";
import type { Key } from "./item.ts";
import { TRANSACT_MAX, type Write } from "./item-store.ts";

/** The key a write goes to. */
export function keyOfWrite(write: Write): Key {
  if ("put" in write) return write.put;
  if ("update" in write) return write.update;
  return "delete" in write ? write.delete : write.check;
}

/** At most 100 writes, each to another item. */
export function checkTransaction(writes: readonly Write[]): void {
  if (writes.length > TRANSACT_MAX) {
    throw new ValidationError(
      "transaction",
      writes.length,
      `expected at most ${TRANSACT_MAX} writes, got ${writes.length}`,
    );
  }
  const keys = new Set(
    writes.map((write) => JSON.stringify([keyOfWrite(write).PK, keyOfWrite(write).SK])),
  );
  if (keys.size !== writes.length) {
    throw new ValidationError("transaction", writes.length, "each write must go to another item");
  }
}
