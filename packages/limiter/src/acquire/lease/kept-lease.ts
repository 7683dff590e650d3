/**
 * Consumption of an ended lease as JSON: any process can correct it later, as the lease itself
 * would have done.
 */

import type { LimitSource } from "../../buckets/leg.ts";
import { checkInteger } from "../../domain/check.ts";
import { Limit } from "../../domain/limit.ts";
import type { LimitJson } from "../../domain/limit-spec.ts";
import type { RateLimiter } from "../rate-limiter.ts";
import { ActiveLease, HELD } from "./active-lease.ts";
import type { Holding } from "./holding.ts";
import type { Lease, SettledAmounts } from "./lease.ts";
import { LeaseHoldings } from "./lease-holdings.ts";
import { LEASE_HOST } from "./lease-host.ts";
import { LeasePart } from "./lease-part.ts";

/** A type and not an interface, so that it is assignable to JSON. */
export type KeptLease = {
  readonly entityId: string;
  readonly resource: string;
  readonly holdings: readonly KeptHolding[];
};

/** A holding in one shard of one bucket, in milli-tokens aligned with the limits. */
type KeptHolding = {
  /** The part of the call; absent where an older version wrote it: one part for each resource. */
  readonly part?: number;
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
  readonly limits: readonly LimitJson[];
  readonly source: LimitSource;
  readonly version: number;
  readonly bypass: boolean;
  readonly heldMilli: readonly number[];
  readonly unsureMilli: readonly number[];
  /** The ends of the periods that were consumed in, 0 where a limit has none; absent: none has. */
  readonly endsMs?: readonly number[];
};

/** Returns what a lease has consumed, as far as it is written; `undefined` for a degraded one. */
export function keptLeaseOf(lease: Lease): KeptLease | undefined {
  if (!(lease instanceof ActiveLease)) return undefined;
  const { target, holdings } = lease[HELD];
  const { entityId, resource } = target;
  return { entityId, resource, holdings: holdings.map(keptOf) };
}

function keptOf({ part, entityId, resource, shard, config, ...milli }: Holding): KeptHolding {
  const { limits, source, version, bypass = false } = config;
  const heldMilli = [...milli.heldMilli];
  const { endsMs } = milli;
  const unsureMilli = limits.map((_, at) => milli.unsureMilli[at] ?? 0);
  const json = limits.map((limit) => limit.toJSON());
  return {
    part,
    entityId,
    resource,
    shard,
    limits: json,
    source,
    version,
    bypass,
    heldMilli,
    unsureMilli,
    ...(endsMs === undefined ? {} : { endsMs: limits.map((_, at) => endsMs[at] ?? 0) }),
  };
}

/**
 * Sets the final amounts of a kept lease: of its part and those of `also`, on every shard, of the
 * entity and its ancestors, of resources and totals. Limits that it does not hold are left out, and
 * so are slots: the lease gave them back.
 * Not to be repeated: a second call would write the same correction again.
 */
export async function settleKept(
  limiter: RateLimiter,
  { entityId, resource, holdings: kept }: KeptLease,
  amounts: SettledAmounts,
): Promise<void> {
  const host = limiter[LEASE_HOST];
  const target = { entityId, resource, missingLimits: "ignore" } as const;
  const resources = [...new Set(kept.map((holding) => holding.resource))];
  const read = kept.map((holding) =>
    holdingOf(holding, holding.part ?? resources.indexOf(holding.resource)),
  );
  const holdings = new LeaseHoldings(host, target, undefined, read);
  const lease = { statuses: [] };
  const slots = kept.flatMap(({ limits }) => limits.filter(({ concurrent }) => concurrent));
  const counted = { ...amounts };
  for (const { name } of slots) delete counted[name];
  const access = {
    holdings: () => holdings,
    refuseEnded: () => {},
    consumeMore: () => Promise.resolve(false),
    flush: () => {},
  };
  for (const part of new Set(holdings.all.map((holding) => holding.part))) {
    new LeasePart(host, lease, access, target, part).settle(counted);
  }
  await holdings.flush();
}

/** Reads a holding from JSON, which another program may have written. */
function holdingOf(
  { limits, source, version, bypass, ...kept }: KeptHolding,
  part: number,
): Holding {
  const { entityId, resource, shard } = kept;
  const checked = (milli: readonly number[]) =>
    limits.map((_, at) => checkInteger("kept", milli[at] ?? 0, 0, Number.MAX_SAFE_INTEGER));
  return {
    part: checkInteger("kept", part, 0, Number.MAX_SAFE_INTEGER),
    entityId,
    resource,
    shard,
    config: {
      limits: limits.map((json) => Limit.fromJSON(json)),
      source,
      version: checkInteger("kept", version, 0, Number.MAX_SAFE_INTEGER),
      ...(bypass ? { bypass } : {}),
    },
    heldMilli: checked(kept.heldMilli),
    pendingMilli: limits.map(() => 0),
    unsureMilli: checked(kept.unsureMilli),
    entry: undefined,
    endsMs: kept.endsMs && checked(kept.endsMs).map((endMs) => (endMs === 0 ? undefined : endMs)),
  };
}
