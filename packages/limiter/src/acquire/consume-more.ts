/** Consumes more for a lease that is open, behind those that wait: `lease.consume`. */

import type { Deadline } from "../base/time.ts";
import { RateLimiterUnavailable } from "../domain/errors/errors.ts";
import { RateLimitExceeded } from "../domain/errors/rate-limit-exceeded.ts";
import type { AcquirerOptions } from "./acquirer.ts";
import type { AmountsByName } from "./amounts.ts";
import { Refusal } from "./decision.ts";
import type { Granted } from "./lease/holding.ts";
import type { Lease } from "./lease/lease.ts";
import type { LeaseTarget } from "./lease/lease-host.ts";
import type { ConsumeTarget } from "./legs.ts";
import type { ObservedCall } from "./observed-call.ts";
import type { Outage } from "./outage.ts";

/** What an acquirer does for it. */
export interface MoreParts extends Pick<AcquirerOptions, "announcer" | "refusedByOthers"> {
  readonly outage: Outage;
  readonly deadline: () => Deadline;
  readonly consume: (target: ConsumeTarget, deadline: Deadline) => Promise<Granted | Refusal>;
  readonly isLocal: (refusal: Refusal) => boolean;
  /** What listeners are told of; `undefined`: consumed without a count. */
  readonly leaseOf: (target: LeaseTarget, taken: Granted | undefined) => Lease;
}

/** Returns what was consumed; `undefined` when the store cannot answer and calls may pass. */
export async function consumeMore(
  parts: MoreParts,
  target: LeaseTarget,
  amounts: AmountsByName,
  acquireId: string | undefined,
): Promise<Granted | undefined> {
  const { announcer } = parts;
  if (!announcer.isHeard) return more(parts, target, amounts);
  const { entityId, resource } = target;
  const request = { entityId, resource, consume: Object.fromEntries(amounts) };
  const call = announcer.begin(request, acquireId);
  return call.run(() =>
    call.watch(async () => {
      const taken = await more(parts, target, amounts, call);
      call.granted(parts.leaseOf(target, taken));
      return taken;
    }),
  );
}

async function more(
  parts: MoreParts,
  request: LeaseTarget,
  amounts: AmountsByName,
  call?: ObservedCall,
): Promise<Granted | undefined> {
  try {
    const { entityId, resource, limits, missingLimits } = request;
    const target = { entityId, resource, limits, missingLimits, amounts };
    call?.attempt();
    const deadline = parts.deadline();
    const refused = await parts.refusedByOthers(target, deadline);
    const taken = refused ?? (await parts.consume(target, deadline));
    if (!(taken instanceof Refusal)) return taken;
    call?.refused(taken, parts.isLocal(taken));
    throw new RateLimitExceeded(taken.statuses);
  } catch (error) {
    if (!(error instanceof RateLimiterUnavailable)) throw error;
    call?.unanswered(error);
    parts.outage.pass(request, error);
    return undefined;
  }
}
