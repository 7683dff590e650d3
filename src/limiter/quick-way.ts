/** Charges on the spot, where the buckets are in this process and their limits are known. */

import type { ChargedNow } from "../buckets/bucket-store.ts";
import type { Limit } from "../domain/limit.ts";
import { CONFIG_LEVELS } from "../domain/precedence.ts";
import type { RepositoryInternals } from "../repository/internals.ts";
import { type AcquireRequest, isPlain } from "./acquire-request.ts";
import type { LeaseTarget } from "./active-lease.ts";
import type { Granted } from "./holding.ts";
import type { MissingLimits } from "./missing-limits.ts";

export class QuickWay {
  readonly #internals: RepositoryInternals;
  readonly #missingLimits: MissingLimits | undefined;

  constructor(internals: RepositoryInternals, missingLimits: MissingLimits | undefined) {
    this.#internals = internals;
    this.#missingLimits = missingLimits;
  }

  /**
   * Only for calls that say nothing out of the ordinary; `undefined`, with nothing done, for all
   * others.
   */
  charge(request: AcquireRequest): ChargedNow | Promise<ChargedNow | undefined> | undefined {
    const { buckets, resolver } = this.#internals;
    if (buckets.chargeNow === undefined || !isPlain(request)) return undefined;
    const { entityId, resource, consume } = request;
    const { cache } = resolver;
    const limits = givenLimits(request);
    const { generation } = cache;
    const ignoresMissing = (request.missingLimits ?? this.#missingLimits) === "ignore";
    const charged = buckets.chargeNow(
      entityId,
      resource,
      consume,
      generation,
      limits,
      ignoresMissing,
    );
    if (charged !== undefined) cache.countHits(CONFIG_LEVELS.length);
    return charged;
  }

  /** The next call for the same buckets may find them charged by limits that are in force. */
  remember({ legs }: Granted): void {
    const { buckets, resolver } = this.#internals;
    // Where the store says how far an acquire cascades, the links of the buckets do not tell.
    if (legs.some(({ config }) => config.cascade !== undefined || config.bypass === true)) return;
    const { generation, version } = resolver.cache;
    for (const { entityId, resource, config: charged } of legs) {
      const known = resolver.remembered(entityId, resource);
      if (known === undefined) return;
      const { source, limits } = charged;
      const config = source === "override" ? { limits, source, version: 0 } : known.limits;
      if (config === undefined || (source !== "override" && config.version < version)) return;
      const memory = { config, generation, untilMs: known.expiresAtMs };
      buckets.remember?.(entityId, resource, memory);
    }
  }
}

/** What the request says beyond entity and resource holds for its lease too. */
export function leaseTargetOf(request: AcquireRequest, charged: ChargedNow): LeaseTarget {
  const { onUnavailable, missingLimits } = request;
  const limits = givenLimits(request);
  const isBare = limits === undefined && onUnavailable === undefined && missingLimits === undefined;
  if (isBare) return charged;
  const { entityId, resource } = charged;
  return { entityId, resource, limits, onUnavailable, missingLimits };
}

/** `isPlain` lets only checked lists pass. */
function givenLimits({ limits }: AcquireRequest): readonly Limit[] | undefined {
  return limits as readonly Limit[] | undefined;
}
