/** Makes the legs of a call: the entity, then the ancestors it cascades to, with their limits. */

import type { BucketCallOptions, LinkOptions } from "../buckets/bucket-consumer.ts";
import type { BucketConfig, Leg, Link } from "../buckets/leg.ts";
import { ResourceDisabled, ValidationError } from "../domain/errors/errors.ts";
import { refuseUnsupported } from "../domain/errors/unsupported-limit.ts";
import type { Limit } from "../domain/limit.ts";
import type { ConfigResolver, Resolution } from "../records/config/config-resolver.ts";
import { ANCESTORS_MAX } from "../records/entities/entities.ts";
import type { CheckedAlso, MissingLimits } from "./acquire-request.ts";
import { type AmountsByName, checkAmountNames } from "./amounts.ts";
import type { Links } from "./links.ts";

export interface ConsumeTarget {
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: AmountsByName;
  /** What the caller calls the amounts, for messages; `consume` when not given. */
  readonly field?: string;
  /** Given with the call, instead of the stored ones. */
  readonly limits: readonly Limit[] | undefined;
  /** For this call; the setting of the limiter when absent. */
  readonly missingLimits?: MissingLimits | undefined;
  /** Other resources of the same call. */
  readonly also?: readonly CheckedAlso[];
}

/** The beginning of the reason when no level has limits; commands know the error by it. */
export const NO_LIMITS = "no limits are configured";

export class Legs {
  readonly #resolver: ConfigResolver;
  readonly #links: Links;
  readonly #missingLimits: MissingLimits | undefined;

  constructor(resolver: ConfigResolver, links: Links, missingLimits: MissingLimits | undefined) {
    this.#resolver = resolver;
    this.#links = links;
    this.#missingLimits = missingLimits;
  }

  /** Refuses names that the entity has no limit for, unless they are to be ignored. */
  checkNames(
    target: Pick<ConsumeTarget, "missingLimits">,
    field: string,
    amounts: AmountsByName,
    limits: readonly Limit[],
  ): void {
    const mode = target.missingLimits ?? this.#missingLimits;
    if (mode !== "ignore") checkAmountNames(field, amounts, limits);
  }

  /**
   * Returns the legs of a call from cached limits and links, without a read; `undefined` when
   * something is not cached, or when `of` has to refuse an ancestor.
   */
  remembered(target: ConsumeTarget): readonly Leg[] | undefined {
    const { entityId, resource, amounts, limits, also } = target;
    if (also !== undefined && also.length > 0) return undefined;
    const link = this.#links.known(entityId, resource);
    if (link === undefined) return undefined;
    const known = this.#known(entityId, resource);
    if (known === undefined) return undefined;
    refuseDisabled(entityId, resource, known);
    const config = configOf(known, limits, false);
    if (config === undefined) return undefined;
    refuseNames(target, config, amounts);
    this.checkNames(target, target.field ?? "consume", amounts, config.limits);
    const legs = [legOf(entityId, resource, config, { link, linkIsFresh: false }, amounts)];
    return this.#rememberAncestors(legs, target, link) ? legs : undefined;
  }

  /** Adds what `#addAncestors` would add; false when a read is needed, or the chain is refused. */
  #rememberAncestors(
    legs: Leg[],
    { resource, amounts, limits }: ConsumeTarget,
    first: Link,
  ): boolean {
    let link = first;
    for (let depth = 0; link.cascade && link.parentId !== undefined; depth += 1) {
      const { parentId } = link;
      const next = this.#links.known(parentId, resource);
      const stored = this.#known(parentId, resource);
      if (next === undefined || stored === undefined) return false;
      if (stored.disabledAt !== undefined || depth >= ANCESTORS_MAX) return false;
      const config = configOf(stored, undefined, false) ?? configOf(stored, limits, false);
      if (config !== undefined) {
        refuseNames({ entityId: parentId, resource }, config, amounts);
        const linked = { link: next, linkIsFresh: false };
        legs.push(legOf(parentId, resource, config, linked, amounts));
      }
      link = next;
    }
    return true;
  }

  /**
   * Returns the legs of all resources of a call, its own first. `forced`: the limits were just read
   * again, so they apply whatever version a bucket has.
   */
  async of(
    target: ConsumeTarget,
    options: BucketCallOptions,
    forced: boolean,
  ): Promise<readonly [Leg, ...Leg[]]> {
    const { also = [] } = target;
    if (also.length === 0) return this.#ofOne(target, options, forced);
    const parts = [target, ...also.map((part, at) => partOf(target, part, at))] as const;
    const [own, ...others] = await Promise.all(
      parts.map((part) => this.#ofOne(part, options, forced)),
    );
    return [...(own as readonly [Leg, ...Leg[]]), ...others.flat()];
  }

  /** An ancestor that is switched off refuses by links that were seen within the last second. */
  async #ofOne(
    target: ConsumeTarget,
    options: BucketCallOptions,
    forced: boolean,
  ): Promise<readonly [Leg, ...Leg[]]> {
    try {
      return await this.#chainOf(target, options, forced);
    } catch (error) {
      if (!(error instanceof ResourceDisabled) || error.entityId === target.entityId) throw error;
      return this.#chainOf(target, { ...options, fresh: true }, forced);
    }
  }

  async #chainOf(
    target: ConsumeTarget,
    options: LinkOptions,
    forced: boolean,
  ): Promise<readonly [Leg, ...Leg[]]> {
    const { entityId, resource, amounts, limits } = target;
    const [stored, linked] = await this.#look(entityId, resource, options);
    refuseDisabled(entityId, resource, stored);
    const own = configOf(stored, limits, forced);
    if (own === undefined) {
      throw new ValidationError(
        "limits",
        `${entityId}/${resource}`,
        `${NO_LIMITS} for entity "${entityId}" and resource "${resource}" at any ` +
          "level; store some, for example with repository.limits.setSystem(['rpm:100'])",
      );
    }
    refuseNames(target, own, amounts);
    this.checkNames(target, target.field ?? "consume", amounts, own.limits);
    const legs: [Leg, ...Leg[]] = [legOf(entityId, resource, own, linked, amounts)];
    await this.#addAncestors(legs, target, linked.link, options, forced);
    return legs;
  }

  /** An ancestor without limits at any level is passed over, and the chain goes on behind it. */
  async #addAncestors(
    legs: Leg[],
    target: ConsumeTarget,
    first: Link,
    options: LinkOptions,
    forced: boolean,
  ): Promise<void> {
    const { resource, amounts, limits } = target;
    const chain = [target.entityId];
    let link = first;
    while (link.cascade && link.parentId !== undefined) {
      const { parentId } = link;
      if (chain.includes(parentId) || chain.length > ANCESTORS_MAX) {
        throw new ValidationError(
          "parent_id",
          parentId,
          `the ancestors of "${target.entityId}" form a circle or are more than ${ANCESTORS_MAX}: ` +
            [...chain, parentId].join(" < "),
        );
      }
      chain.push(parentId);
      const [stored, next] = await this.#look(parentId, resource, options);
      refuseDisabled(parentId, resource, stored);
      const config = configOf(stored, undefined, forced) ?? configOf(stored, limits, forced);
      if (config !== undefined) {
        refuseNames({ entityId: parentId, resource }, config, amounts);
        legs.push(legOf(parentId, resource, config, next, amounts));
      }
      link = next.link;
    }
  }

  /** Reads what is stored for an entity, and which parent it cascades to. */
  #look(entityId: string, resource: string, options: LinkOptions) {
    const stored = this.#stored(entityId, resource);
    const policy = async () => (await stored).cascade;
    return Promise.all([stored, this.#links.of(entityId, resource, { ...options, policy })]);
  }

  #known(entityId: string, resource: string): Resolution | undefined {
    const known = this.#resolver.remembered(entityId, resource);
    // See `#stored`.
    return this.#isOld(known) ? undefined : known;
  }

  async #stored(entityId: string, resource: string): Promise<Resolution> {
    const resolved = await this.#resolver.resolution(entityId, resource);
    // A live bucket takes limits only from a newer version. If one cached level is older than the
    // last change, a change of another level would go unnoticed: read all levels together.
    if (!this.#isOld(resolved)) return resolved;
    this.#resolver.cache.clear();
    return this.#resolver.resolution(entityId, resource);
  }

  #isOld(resolution: Resolution | undefined): boolean {
    const { version } = this.#resolver.cache;
    return resolution?.limits !== undefined && resolution.limits.version < version;
  }
}

/** Another resource of a call, as a call of its own. */
function partOf(
  target: ConsumeTarget,
  { resource, amounts }: CheckedAlso,
  at: number,
): ConsumeTarget {
  const { entityId, missingLimits } = target;
  const field = `also[${at}].consume`;
  return { entityId, resource, amounts, field, limits: undefined, missingLimits };
}

/** The limits of a call, if it has any, or else those that are stored. */
function configOf(
  { limits: stored, cascade, bypassed }: Resolution,
  given: readonly Limit[] | undefined,
  forced: boolean,
): BucketConfig | undefined {
  const config =
    given === undefined ? stored : { limits: given, source: "override" as const, version: 0 };
  if (config === undefined || (!forced && cascade === undefined && !bypassed)) return config;
  return {
    ...config,
    ...(forced ? { forced } : {}),
    ...(cascade === undefined ? {} : { cascade }),
    ...(bypassed ? { bypass: true } : {}),
  };
}

/** A limit that only the Python library can enforce is refused by its name, and only by it. */
function refuseNames(
  { entityId, resource }: { readonly entityId: string; readonly resource: string },
  { unsupported }: BucketConfig,
  amounts: AmountsByName,
): void {
  if (unsupported === undefined || unsupported.length === 0) return;
  refuseUnsupported(amounts.keys(), unsupported, `"${entityId}" for "${resource}"`);
}

/** Refuses a resource that is switched off, before anything is checked or consumed. */
function refuseDisabled(entityId: string, resource: string, { disabledAt }: Resolution): void {
  if (disabledAt !== undefined) throw new ResourceDisabled(entityId, resource, disabledAt);
}

function legOf(
  entityId: string,
  resource: string,
  config: BucketConfig,
  linked: { link: Link; linkIsFresh: boolean },
  amounts: AmountsByName,
): Leg {
  const amountsMilli = config.limits.map(({ name }) => (amounts.get(name) ?? 0) * 1000);
  const { link, linkIsFresh } = linked;
  return { entityId, resource, config, amountsMilli, link, linkIsFresh };
}
