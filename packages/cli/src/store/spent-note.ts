/** A note of commands that give a spent quota more: other processes may not see it at once. */

import { SPENT_MS } from "@zae-limiter/limiter/buckets/spent.ts";
import type { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";

/** Returns the note; `undefined` without a quota or a session, or if each call asks the store. */
export function spentNote(
  repository: Repository,
  limits: Iterable<Pick<Limit, "kind">>,
): string | undefined {
  if (repository[INTERNALS].buckets.embedded) return undefined;
  const hasPeriods = [...limits].some(({ kind }) => kind === "quota" || kind === "session");
  if (!hasPeriods) return undefined;
  return `Processes that have seen the limit spent follow within ${SPENT_MS / 1000} seconds`;
}
