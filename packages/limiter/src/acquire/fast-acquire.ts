/** The fast path of an acquire: buckets in this process, whose limits are cached. */

import type { FastOutcome, FastPath, FastRequest } from "../buckets/fast-path.ts";
import type { Limit } from "../domain/limit.ts";
import { CONFIG_LEVELS } from "../domain/precedence.ts";
import type { ConfigCache } from "../records/config/config-cache.ts";
import type { ConfigResolver } from "../records/config/config-resolver.ts";
import type { RepositoryInternals } from "../repository/internals.ts";
import { type AcquireRequest, isPlain, type MissingLimits } from "./acquire-request.ts";
import type { Granted } from "./lease/holding.ts";
import type { LeaseTarget } from "./lease/lease-host.ts";

export class FastAcquire {
  readonly #path: FastPath;
  readonly #resolver: ConfigResolver;
  readonly #cache: ConfigCache;
  /** What holds for requests that do not say it. */
  readonly #ignoresMissing: boolean;

  constructor(internals: RepositoryInternals, missingLimits: MissingLimits | undefined) {
    this.#path = internals.buckets.fastPath;
    this.#resolver = internals.resolver;
    this.#cache = internals.resolver.cache;
    this.#ignoresMissing = missingLimits === "ignore";
  }

  /** Consumes for calls without special options; `undefined`: nothing done, use the slow path. */
  consume(request: AcquireRequest): FastOutcome | Promise<FastOutcome | undefined> | undefined {
    if (!isPlain(request)) return undefined;
    const { missingLimits } = request;
    const ignoresMissing =
      missingLimits === undefined ? this.#ignoresMissing : missingLimits === "ignore";
    const cache = this.#cache;
    // `isPlain` lets only checked lists of limits pass.
    const checked = request as FastRequest;
    const outcome = this.#path.consume(checked, cache.generation, ignoresMissing);
    if (outcome !== undefined) cache.countHits(CONFIG_LEVELS.length);
    return outcome;
  }

  /** Tells the buckets which limits are in force, so that the next call may use the fast path. */
  remember({ legs }: Granted): void {
    const resolver = this.#resolver;
    // Where a stored level decides whether an acquire cascades, the links of the buckets do not.
    if (legs.some(({ config }) => config.cascade !== undefined || config.bypass === true)) return;
    const { generation, version } = resolver.cache;
    for (const { entityId, resource, config: used } of legs) {
      const known = resolver.remembered(entityId, resource);
      if (known === undefined) return;
      const { source, limits } = used;
      const config = source === "override" ? { limits, source, version: 0 } : known.limits;
      if (config === undefined || (source !== "override" && config.version < version)) return;
      const cached = { config, generation, untilMs: known.expiresAtMs };
      this.#path.remember(entityId, resource, cached);
    }
  }
}

/** Returns the lease target; the other fields of the request apply to its lease too. */
export function leaseTargetOf(request: AcquireRequest, outcome: FastOutcome): LeaseTarget {
  const isBare = (request.limits ?? request.onUnavailable ?? request.missingLimits) === undefined;
  return isBare ? outcome : withOptions(outcome, request);
}

function withOptions(
  { entityId, resource }: FastOutcome,
  { limits, onUnavailable, missingLimits }: AcquireRequest,
): LeaseTarget {
  // `isPlain` lets only checked lists of limits pass.
  const given = limits as readonly Limit[] | undefined;
  return { entityId, resource, limits: given, onUnavailable, missingLimits };
}
