/** Makes the legs of a call: the entity, then the ancestors it cascades to, with their limits. */

import type { BucketCallOptions, BucketConfig, Leg, Link } from "../buckets/bucket-store.ts";
import { ValidationError } from "../domain/errors.ts";
import type { Limit } from "../domain/limit.ts";
import type { ConfigResolver } from "../records/config-resolver.ts";
import { ANCESTORS_MAX } from "../records/entities.ts";
import { type AmountsByName, checkAmountNames } from "./amounts.ts";
import type { Links } from "./links.ts";
import type { MissingLimits } from "./missing-limits.ts";

export interface Target {
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: AmountsByName;
  /** What the caller calls the amounts, for messages; `consume` when not given. */
  readonly field?: string;
  /** Given with the call, instead of the stored ones. */
  readonly limits: readonly Limit[] | undefined;
  /** For this call; the setting of the limiter when absent. */
  readonly missingLimits?: MissingLimits | undefined;
}

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
    target: Pick<Target, "missingLimits">,
    field: string,
    amounts: AmountsByName,
    limits: readonly Limit[],
  ): void {
    const mode = target.missingLimits ?? this.#missingLimits;
    if (mode !== "ignore") checkAmountNames(field, amounts, limits);
  }

  /**
   * The legs of a call, when all that they are made of is remembered: nothing is read, and nobody
   * has to wait. Only for one entity by itself, which is what most calls are about.
   */
  remembered(target: Target): readonly [Leg] | undefined {
    const { entityId, resource, amounts, limits } = target;
    const link = this.#links.known(entityId);
    if (link === undefined || (link.cascade && link.parentId !== undefined)) return undefined;
    if (limits !== undefined && this.#resolver.isActive !== true) return undefined;
    const config = limits === undefined ? this.#known(entityId, resource) : override(limits);
    if (config === undefined) return undefined;
    this.checkNames(target, target.field ?? "consume", amounts, config.limits);
    return [legOf(entityId, resource, config, { link, linkIsFresh: false }, amounts)];
  }

  /** `forced`: the limits were just read anew, so they apply whatever a bucket says. */
  async of(
    target: Target,
    options: BucketCallOptions,
    forced: boolean,
  ): Promise<readonly [Leg, ...Leg[]]> {
    const { entityId, resource, amounts, limits } = target;
    const [own, linked] = await Promise.all([
      limits === undefined ? this.#stored(entityId, resource, forced) : override(limits),
      this.#links.of(entityId, resource, options),
      // Limits of the call are not read, so the state of the namespace has to be.
      limits === undefined ? undefined : this.#resolver.checkActive(),
    ]);
    if (own === undefined) {
      throw new ValidationError(
        "limits",
        `${entityId}/${resource}`,
        `no limits are configured for entity "${entityId}" and resource "${resource}" at any level`,
      );
    }
    this.checkNames(target, target.field ?? "consume", amounts, own.limits);
    const legs: [Leg, ...Leg[]] = [legOf(entityId, resource, own, linked, amounts)];
    await this.#addAncestors(legs, target, linked.link, options, forced);
    return legs;
  }

  /** An ancestor without limits at any level is passed over, and the chain goes on behind it. */
  async #addAncestors(
    legs: Leg[],
    target: Target,
    first: Link,
    options: BucketCallOptions,
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
      const [stored, next] = await Promise.all([
        this.#stored(parentId, resource, forced),
        this.#links.of(parentId, resource, options),
      ]);
      const config = stored ?? (limits === undefined ? undefined : override(limits));
      if (config !== undefined) legs.push(legOf(parentId, resource, config, next, amounts));
      link = next.link;
    }
  }

  #known(entityId: string, resource: string): BucketConfig | undefined {
    const limits = this.#resolver.remembered(entityId, resource)?.limits;
    // See `#stored`.
    return limits === undefined || limits.version < this.#resolver.cache.version
      ? undefined
      : limits;
  }

  async #stored(
    entityId: string,
    resource: string,
    forced: boolean,
  ): Promise<BucketConfig | undefined> {
    let resolved = await this.#resolver.resolve(entityId, resource);
    // A live bucket takes limits only from a newer version. When a level was remembered from before
    // the last change, nobody would notice that another one has changed: they are read together.
    if (resolved !== undefined && resolved.version < this.#resolver.cache.version) {
      this.#resolver.cache.clear();
      resolved = await this.#resolver.resolve(entityId, resource);
    }
    if (resolved === undefined) return undefined;
    return forced ? { ...resolved, forced } : resolved;
  }
}

function override(limits: readonly Limit[]): BucketConfig {
  return { limits, source: "override", version: 0 };
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
