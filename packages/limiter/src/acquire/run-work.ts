/** Runs the work of a call that was granted, and ends its lease. */

import type { AcquireRequest } from "./acquire-request.ts";
import type { Acquirer } from "./acquirer.ts";
import { errorOf, type NamedDecision } from "./decision.ts";
import type { Lease } from "./lease/lease.ts";
import { endAfter } from "./on-error.ts";

/**
 * Runs the work and ends the lease; throws when the call was refused. Work that was granted keeps
 * its result, and its error, when the end of the lease cannot be written.
 */
export async function runWork<T, Names extends string>(
  decision: NamedDecision<Names>,
  request: AcquireRequest<Names>,
  work: (lease: Lease<Names>) => T | Promise<T>,
  acquirer: Pick<Acquirer, "warnNotAdjusted">,
): Promise<T> {
  if (!decision.granted) throw errorOf(decision);
  const { lease } = decision;
  const commit = () =>
    lease.commit().catch((cause: unknown) => acquirer.warnNotAdjusted(request, cause));
  let result: T;
  try {
    result = await work(lease);
  } catch (error) {
    if (lease.isEnded) throw error;
    if (endAfter(request.onError, error) === "rollback") await lease.rollback();
    else await commit();
    throw error;
  }
  if (!lease.isEnded) await commit();
  return result;
}
