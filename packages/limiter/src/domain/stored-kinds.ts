/** The kinds of limits that every store can hold. */

import { ValidationError } from "./errors/errors.ts";
import type { Limit, LimitKind } from "./limit.ts";

/** Kinds that can be stored and consumed from; texts of the others can be read and shown. */
export const STORED_KINDS: ReadonlySet<LimitKind> = new Set<LimitKind>([
  "rate",
  "quota",
  "session",
]);

/** Throws for a limit whose kind no store can hold yet. */
export function refuseUnstored(limit: Limit): void {
  if (STORED_KINDS.has(limit.kind)) return;
  const reason = `limits of the kind "${limit.kind}" cannot be enforced yet, got "${limit}"`;
  throw new ValidationError("limits", String(limit), reason);
}
