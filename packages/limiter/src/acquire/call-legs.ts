/** The legs of a call, and which part of the call consumes how much of each. */

import type { KnownLimits } from "../buckets/bucket-consumer.ts";
import type { BucketConfig, Leg, Link } from "../buckets/leg.ts";
import { TOKENS_MAX } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { refuseUnsupported } from "../domain/errors/unsupported-limit.ts";
import type { Limit } from "../domain/limit.ts";
import { TOTAL } from "../domain/names.ts";
import type { Resolution } from "../records/config/config-resolver.ts";
import { ANCESTORS_MAX } from "../records/entities/entities.ts";
import type { AmountsByName } from "./acquire-request.ts";

/** The amounts that one part of a call consumes of a leg. */
export interface Share {
  /** 0: the entity and resource of the request; above: `also`, in its order. */
  readonly part: number;
  /** Milli-tokens, aligned with the limits of the leg. */
  readonly amountsMilli: readonly number[];
}

/** Leg by leg, the parts that consume from it; `undefined` where the call has one part. */
export type Shares = readonly (readonly Share[])[] | undefined;

/** Beginning of the reason when no level has limits; commands recognise the error by it. */
export const NO_LIMITS = "no limits are configured";

const OWN: readonly number[] = Object.freeze([0]);

/** Returns the parts of a call that consume from the leg at an index. */
export function partsAt(shares: Shares, at: number): readonly number[] {
  return shares === undefined ? OWN : (shares[at] ?? []).map(({ part }) => part);
}

/** The legs of a call, one for each bucket, and how long their limits stay as they are. */
export class CallLegs implements KnownLimits {
  readonly legs: Leg[] = [];
  readonly generation: number;
  untilMs = Number.POSITIVE_INFINITY;
  /** The call was made with totals, and none of its entities has one. */
  withoutTotals: boolean;
  readonly #shares: Share[][] | undefined;

  constructor(generation: number, hasParts: boolean, withTotals: boolean) {
    this.generation = generation;
    this.withoutTotals = withTotals;
    this.#shares = hasParts ? [] : undefined;
  }

  get shares(): Shares {
    return this.#shares;
  }

  /** Adds a leg of a part; amounts that several parts consume of one bucket are added up. */
  add(leg: Leg, part: number): void {
    if (leg.resource === TOTAL) this.withoutTotals = false;
    const shares = this.#shares;
    if (shares === undefined) {
      this.legs.push(leg);
      return;
    }
    const { amountsMilli } = leg;
    const at = this.legs.findIndex(
      ({ entityId, resource }) => entityId === leg.entityId && resource === leg.resource,
    );
    if (at === -1) {
      this.legs.push(leg);
      shares.push([{ part, amountsMilli }]);
      return;
    }
    this.legs[at] = sumOf(this.legs[at] as Leg, amountsMilli);
    shares[at]?.push({ part, amountsMilli });
  }
}

function sumOf(leg: Leg, moreMilli: readonly number[]): Leg {
  const { entityId, resource, config, link, linkIsFresh } = leg;
  const amountsMilli = leg.amountsMilli.map((amount, at) => {
    const sum = amount + (moreMilli[at] ?? 0);
    if (sum <= TOKENS_MAX * 1000) return sum;
    const name = config.limits[at]?.name;
    const reason = `the parts of the call consume more than ${TOKENS_MAX} of "${name}" of "${entityId}" together`;
    throw new ValidationError("also", sum / 1000, reason);
  });
  return { entityId, resource, config, amountsMilli, link, linkIsFresh };
}

/** Returns the limits of a call, if it has any, or else those that are stored. */
export function configOf(
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

/** Refuses a limit that only the Python library can enforce, where the call names it. */
export function refuseNames(
  entityId: string,
  resource: string,
  { unsupported }: BucketConfig,
  amounts: AmountsByName,
): void {
  if (unsupported === undefined || unsupported.length === 0) return;
  refuseUnsupported(amounts.keys(), unsupported, `"${entityId}" for "${resource}"`);
}

export function legOf(
  entityId: string,
  resource: string,
  config: BucketConfig,
  link: Link,
  linkIsFresh: boolean,
  amounts: AmountsByName,
): Leg {
  const amountsMilli = config.limits.map(({ name }) => (amounts.get(name) ?? 0) * 1000);
  return { entityId, resource, config, amountsMilli, link, linkIsFresh };
}

/** Returns the parent as the next entity of a chain; refuses circles and too long chains. */
export function nextIn(chain: readonly string[], parentId: string): string {
  if (!chain.includes(parentId) && chain.length <= ANCESTORS_MAX) return parentId;
  throw new ValidationError(
    "parent_id",
    parentId,
    `the ancestors of "${chain[0]}" form a circle or are more than ${ANCESTORS_MAX}: ` +
      [...chain, parentId].join(" < "),
  );
}

/** Returns the error of a call that neither the resource nor a total has limits for. */
export function withoutLimits(entityId: string, resource: string): ValidationError {
  return new ValidationError(
    "limits",
    `${entityId}/${resource}`,
    `${NO_LIMITS} for entity "${entityId}" and resource "${resource}" at any ` +
      `level; store some, for example with repository.limits.${howToStore(resource)}`,
  );
}

/** Returns how to store limits for a resource: a total has none of the system. */
function howToStore(resource: string): string {
  return resource === TOTAL ? "setResource('@all', ['rpm:100'])" : "setSystem(['rpm:100'])";
}
