/**
 * Makes the legs of a call: the entity, then the ancestors it cascades to, with their limits.
 *
 * `now` makes them from cached limits and links, or returns what is missing; `of` reads that and
 * runs `now` again, until nothing is missing. A cached link is a hint: a consume reports when a
 * bucket has another link.
 */

import { boundedMap } from "../base/bounded-map.ts";
import type { Clock, Deadline } from "../base/time.ts";
import type { KnownLimits } from "../buckets/bucket-consumer.ts";
import type { BucketStore } from "../buckets/bucket-store.ts";
import { type BucketConfig, type Leg, type Link, sameLink } from "../buckets/leg.ts";
import { ResourceDisabled, ValidationError } from "../domain/errors/errors.ts";
import { refuseUnsupported } from "../domain/errors/unsupported-limit.ts";
import type { Limit } from "../domain/limit.ts";
import type { ConfigResolver, Resolution, Resolved } from "../records/config/config-resolver.ts";
import { ANCESTORS_MAX } from "../records/entities/entities.ts";
import { bucketId } from "../records/keys.ts";
import type { RepositoryInternals } from "../repository/internals.ts";
import {
  type AmountsByName,
  type CheckedAlso,
  checkAmountNames,
  type MissingLimits,
} from "./acquire-request.ts";

export interface ConsumeTarget {
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: AmountsByName;
  /** Name of the amounts in messages; `consume` when absent. */
  readonly field?: string;
  /** Limits given with the call, instead of the stored ones. */
  readonly limits: readonly Limit[] | undefined;
  /** Mode of this call; the setting of the limiter when absent. */
  readonly missingLimits?: MissingLimits | undefined;
  /** Other resources of the same call. */
  readonly also?: readonly CheckedAlso[];
}

/** Beginning of the reason when no level has limits; commands recognise the error by it. */
export const NO_LIMITS = "no limits are configured";

const LINKS_MAX = 50_000;
const LINK_LIFETIME_MS = 60_000;
/** A link shown longer ago than this may not refuse a call; the same as for a balance. */
const SHOWN_MS = 1000;

interface CachedLink {
  readonly link: Link;
  seenAtMs: number;
  /** When the store last showed it, in epoch milliseconds; a link may come from a cached state. */
  shownAtMs: number;
  /** Link changes of this process when it was seen; stale once that count grows. */
  relinks: number;
}

/** The legs of a call, and how long their limits are known to stay as they are. */
export class CallLegs implements KnownLimits {
  readonly legs: Leg[] = [];
  readonly generation: number;
  untilMs = Number.POSITIVE_INFINITY;

  constructor(generation: number) {
    this.generation = generation;
  }
}

/** An entity whose limits or link are not cached. */
interface MissingPart {
  readonly entityId: string;
  readonly resource: string;
  /** Whether the link must be asked of the store, because it decides a refusal. */
  readonly isFresh: boolean;
}

/** The parts that a call lacks. */
interface Missing {
  readonly missing: readonly MissingPart[];
}

export function isMissing(legs: CallLegs | Missing): legs is Missing {
  return "missing" in legs;
}

/** The stored limits of an entity, and its link. */
interface Found {
  readonly stored: Resolved;
  readonly link: Link;
  /** Whether the link was read in the course of the call, and not found in the cache. */
  readonly linkIsFresh: boolean;
}

/** A part that a call has read itself; it holds for the call even where nothing is cached. */
interface ReadPart extends Found {
  /** Whether the store has shown the link within the last second. */
  readonly isShown: boolean;
}

type ReadParts = ReadonlyMap<string, ReadPart>;

const NOTHING_READ: ReadParts = new Map();

export class Legs {
  readonly #resolver: ConfigResolver;
  readonly #buckets: BucketStore;
  readonly #clock: Clock;
  readonly #missingLimits: MissingLimits | undefined;
  /** Keyed by bucket: in the Python library, an entity may cascade for some resources only. */
  readonly #links = boundedMap<CachedLink>(LINKS_MAX);

  constructor(
    { resolver, buckets, clock }: Pick<RepositoryInternals, "resolver" | "buckets" | "clock">,
    missingLimits: MissingLimits | undefined,
  ) {
    this.#resolver = resolver;
    this.#buckets = buckets;
    this.#clock = clock;
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
   * Returns the legs of all resources of a call, its own first, or the parts that are missing.
   * `forced`: the limits were just read again, so they apply whatever version a bucket has.
   */
  now(target: ConsumeTarget, read = NOTHING_READ, forced = false): CallLegs | Missing {
    const call = new CallLegs(this.#resolver.cache.generation);
    const own = this.#addChain(call, target, read, forced);
    const { also } = target;
    if (also === undefined || also.length === 0) {
      return own === undefined ? call : { missing: [own] };
    }
    const others = also.map((part, at) =>
      this.#addChain(call, partOf(target, part, at), read, forced),
    );
    const missing = [own, ...others].filter((part) => part !== undefined);
    return missing.length === 0 ? call : { missing };
  }

  /** Returns the legs of a call, after reading what is missing. */
  async of(target: ConsumeTarget, deadline: Deadline, forced: boolean): Promise<CallLegs> {
    const read = new Map<string, ReadPart>();
    for (;;) {
      const legs = this.now(target, read, forced);
      if (!isMissing(legs)) return legs;
      await Promise.all(
        legs.missing.map(async (part) => {
          read.set(bucketId(part), await this.#read(part, deadline));
        }),
      );
    }
  }

  /** Caches the link of an entity. `isShown`: the store has just shown it. */
  see(entityId: string, resource: string, link: Link, isShown: boolean): void {
    const name = bucketId({ entityId, resource });
    const seenAtMs = this.#clock();
    const { relinks } = this.#buckets;
    const cached = this.#links.get(name);
    if (cached === undefined || !sameLink(cached.link, link)) {
      const shownAtMs = isShown ? seenAtMs : Number.NEGATIVE_INFINITY;
      this.#links.set(name, { link, seenAtMs, shownAtMs, relinks });
      return;
    }
    cached.seenAtMs = seenAtMs;
    if (isShown) cached.shownAtMs = seenAtMs;
    cached.relinks = relinks;
  }

  /**
   * Whether entities without a bucket cascade otherwise than the legs say. Their links come from
   * their records: one that was shown more than a second ago is read again before it refuses.
   */
  async haveMoved(legs: readonly Leg[], deadline: Deadline): Promise<boolean> {
    const links = await Promise.all(
      legs.map(({ entityId, resource, config }) => {
        const part = { entityId, resource, isFresh: true };
        return this.#readLink(part, deadline, async () => config.cascade);
      }),
    );
    return legs.some((leg, at) => !sameLink(leg.link, (links[at] as { link: Link }).link));
  }

  /**
   * Adds an entity and its ancestors; returns the first part that is missing, if any. An ancestor
   * without limits at any level is passed over, and the chain goes on behind it.
   */
  #addChain(
    call: CallLegs,
    target: ConsumeTarget,
    read: ReadParts,
    forced: boolean,
  ): MissingPart | undefined {
    const { resource } = target;
    const chain: string[] = [];
    let { entityId } = target;
    for (;;) {
      const found = this.#find(entityId, resource, read);
      if (found === undefined) return { entityId, resource, isFresh: false };
      const { stored, link } = found;
      if (stored.disabledAt !== undefined) {
        // An ancestor that is switched off refuses by links seen within the last second.
        const stale = chain.find((id) => !this.#isShown(id, resource, read));
        if (stale !== undefined) return { entityId: stale, resource, isFresh: true };
        throw new ResourceDisabled(entityId, resource, stored.disabledAt);
      }
      this.#addLeg(call, target, entityId, found, forced);
      chain.push(entityId);
      if (!link.cascade || link.parentId === undefined) return undefined;
      entityId = nextIn(chain, link.parentId);
    }
  }

  /** Finds what the call has read of an entity, or else what is cached. */
  #find(entityId: string, resource: string, read: ReadParts): Found | undefined {
    const name = bucketId({ entityId, resource });
    const part = read.get(name);
    if (part !== undefined) return part;
    const cached = this.#cachedLink(name);
    if (cached === undefined) return undefined;
    const stored = this.#resolver.cached(entityId, resource);
    return stored && { stored, link: cached.link, linkIsFresh: false };
  }

  #addLeg(
    call: CallLegs,
    target: ConsumeTarget,
    entityId: string,
    { stored, link, linkIsFresh }: Found,
    forced: boolean,
  ): void {
    const { resource, amounts, limits } = target;
    const isOwn = entityId === target.entityId;
    const own = configOf(stored, isOwn ? limits : undefined, forced);
    // Stored limits of an ancestor come before those of a call.
    const config = isOwn ? own : (own ?? configOf(stored, limits, forced));
    if (config !== undefined) refuseNames(entityId, resource, config, amounts);
    if (isOwn) this.#checkOwn(target, config);
    if (config === undefined) return;
    call.legs.push(legOf(entityId, resource, config, link, linkIsFresh, amounts));
    const isKnown = stored.generation === call.generation;
    call.untilMs = Math.min(call.untilMs, isKnown ? stored.expiresAtMs : 0);
  }

  #checkOwn(target: ConsumeTarget, config: BucketConfig | undefined): void {
    const { entityId, resource, amounts, field = "consume" } = target;
    if (config === undefined) {
      throw new ValidationError(
        "limits",
        `${entityId}/${resource}`,
        `${NO_LIMITS} for entity "${entityId}" and resource "${resource}" at any ` +
          "level; store some, for example with repository.limits.setSystem(['rpm:100'])",
      );
    }
    this.checkNames(target, field, amounts, config.limits);
  }

  /** Reads the stored limits of an entity and its link, both at the same time. */
  async #read(part: MissingPart, deadline: Deadline): Promise<ReadPart> {
    const resolved = this.#readLimits(part);
    const policy = async () => (await resolved).cascade;
    const reading = this.#readLink(part, deadline, policy);
    const [stored, { link, linkIsFresh }] = await Promise.all([resolved, reading]);
    return { stored, link, linkIsFresh, isShown: part.isFresh };
  }

  async #readLimits({ entityId, resource }: MissingPart): Promise<Resolved> {
    const resolver = this.#resolver;
    const resolved = await resolver.resolution(entityId, resource);
    // A live bucket takes limits only from a newer version. If one cached level is older than the
    // last change, a change of another level would go unnoticed: read all levels together.
    const isOld = resolved.limits !== undefined && resolved.limits.version < resolver.cache.version;
    if (!isOld) return resolved;
    resolver.cache.clear();
    return resolver.resolution(entityId, resource);
  }

  /** Returns a link, without a request where it is cached and need not be fresh. */
  async #readLink(
    { entityId, resource, isFresh }: MissingPart,
    deadline: Deadline,
    policy: () => Promise<boolean | undefined>,
  ): Promise<{ link: Link; linkIsFresh: boolean }> {
    const cached = this.#cachedLink(bucketId({ entityId, resource }));
    if (cached !== undefined && (!isFresh || this.#isRecent(cached))) {
      return { link: cached.link, linkIsFresh: false };
    }
    const options = { deadline, policy, fresh: isFresh };
    const link = await this.#buckets.linkOf(entityId, resource, options);
    this.see(entityId, resource, link, isFresh);
    return { link, linkIsFresh: true };
  }

  #isShown(entityId: string, resource: string, read: ReadParts): boolean {
    const name = bucketId({ entityId, resource });
    if (read.get(name)?.isShown === true) return true;
    const cached = this.#cachedLink(name);
    return cached !== undefined && this.#isRecent(cached);
  }

  #isRecent({ shownAtMs }: CachedLink): boolean {
    return this.#clock() - shownAtMs <= SHOWN_MS;
  }

  #cachedLink(name: string): CachedLink | undefined {
    const cached = this.#links.get(name);
    if (cached === undefined || cached.relinks !== this.#buckets.relinks) return undefined;
    return this.#clock() - cached.seenAtMs > LINK_LIFETIME_MS ? undefined : cached;
  }
}

/** Returns the parent as the next entity of a chain; refuses circles and too long chains. */
function nextIn(chain: readonly string[], parentId: string): string {
  if (!chain.includes(parentId) && chain.length <= ANCESTORS_MAX) return parentId;
  throw new ValidationError(
    "parent_id",
    parentId,
    `the ancestors of "${chain[0]}" form a circle or are more than ${ANCESTORS_MAX}: ` +
      [...chain, parentId].join(" < "),
  );
}

/** Returns another resource of a call as a target. */
function partOf(
  target: ConsumeTarget,
  { resource, amounts }: CheckedAlso,
  at: number,
): ConsumeTarget {
  const { entityId, missingLimits } = target;
  const field = `also[${at}].consume`;
  return { entityId, resource, amounts, field, limits: undefined, missingLimits };
}

/** Returns the limits of a call, if it has any, or else those that are stored. */
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

/** Refuses a limit that only the Python library can enforce, where the call names it. */
function refuseNames(
  entityId: string,
  resource: string,
  { unsupported }: BucketConfig,
  amounts: AmountsByName,
): void {
  if (unsupported === undefined || unsupported.length === 0) return;
  refuseUnsupported(amounts.keys(), unsupported, `"${entityId}" for "${resource}"`);
}

function legOf(
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
