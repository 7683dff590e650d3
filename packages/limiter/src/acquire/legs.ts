/**
 * Makes the legs of a call: for each of its parts the entity and the ancestors it cascades to, with
 * their limits for the resource, and, where totals count, with their limits over all resources.
 *
 * `now` makes them from cached limits and links, or returns what is missing; `of` reads that and
 * runs `now` again, until nothing is missing.
 */

import type { Deadline } from "../base/time.ts";
import { type BucketConfig, effectiveLink, type Leg, type Link, sameLink } from "../buckets/leg.ts";
import { ResourceDisabled } from "../domain/errors/errors.ts";
import type { Limit } from "../domain/limit.ts";
import { TOTAL } from "../domain/names.ts";
import type { ConfigResolver, Resolved } from "../records/config/config-resolver.ts";
import { bucketId } from "../records/keys.ts";
import type { RepositoryInternals } from "../repository/internals.ts";
import {
  type AmountsByName,
  type AmountsFor,
  type CheckedAlso,
  checkAmountNames,
  type MissingLimits,
} from "./acquire-request.ts";
import { CallLegs, configOf, legOf, nextIn, refuseNames, withoutLimits } from "./call-legs.ts";
import { KnownLinks, type LinkRequest } from "./known-links.ts";
import { moneyIn, withCounters } from "./total-counters.ts";

export interface ConsumeTarget {
  readonly entityId: string;
  readonly resource: string;
  readonly amounts: AmountsByName;
  /** Asked before the call consumes: amounts that depend on the limits. */
  readonly amountsFor?: AmountsFor | undefined;
  /** Name of the amounts in messages; `consume` when absent. */
  readonly field?: string;
  /** Limits given with the call, instead of the stored ones. */
  readonly limits: readonly Limit[] | undefined;
  /** Mode of this call; the setting of the limiter when absent. */
  readonly missingLimits?: MissingLimits | undefined;
  /** Other parts of the same call. */
  readonly also?: readonly CheckedAlso[];
  /** Whether the totals of the entities count too. */
  readonly totals: boolean;
  readonly maxWaitMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/** An entity whose limits or link are not cached. */
interface MissingPart extends LinkRequest {
  /** Read for a total: without limits the link is not needed. */
  readonly isTotal?: true;
}

/** The parts that a call lacks. */
type Missing = { readonly missing: readonly MissingPart[] };

const NOTHING_MISSING: readonly MissingPart[] = Object.freeze([]);

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
interface ReadPart {
  readonly stored: Resolved;
  /** `undefined` where it was not needed. */
  readonly link: Link | undefined;
  readonly linkIsFresh: boolean;
  /** Whether the store has shown the link within the last second. */
  readonly isShown: boolean;
}

/** The parts that a call has read, and how limits apply to it. */
interface Reading {
  readonly read: ReadonlyMap<string, ReadPart>;
  /** The limits were just read again, so they apply whatever version a bucket has. */
  readonly forced: boolean;
}

const NOTHING_READ: Reading = { read: new Map(), forced: false };

/** One part of a call on its way to legs. */
interface Walk {
  readonly call: CallLegs;
  readonly target: ConsumeTarget;
  readonly part: number;
  /** The entity, then the ancestors it cascades to. */
  readonly chain: string[];
  /** The part that the chain lacks. */
  next: MissingPart | undefined;
  /** Limits that the entity itself has for the resource. */
  own: BucketConfig | undefined;
  /** Limits that the entities of the chain have over all resources. */
  readonly totals: BucketConfig[];
}

export class Legs {
  readonly #resolver: ConfigResolver;
  readonly #missingLimits: MissingLimits | undefined;
  readonly #links: KnownLinks;

  constructor(
    internals: Pick<RepositoryInternals, "resolver" | "buckets" | "clock">,
    missingLimits: MissingLimits | undefined,
  ) {
    const { resolver, buckets, clock } = internals;
    this.#resolver = resolver;
    this.#missingLimits = missingLimits;
    this.#links = new KnownLinks(buckets, clock);
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

  /** Returns the legs of all parts of a call, its own first, or the parts that are missing. */
  now(target: ConsumeTarget, reading = NOTHING_READ): CallLegs | Missing {
    const { also = [], totals } = target;
    const call = new CallLegs(this.#resolver.cache.generation, also.length > 0, totals);
    const walks = [walkOf(call, target, also, 0)];
    for (let at = 0; at < also.length; at += 1) {
      walks.push(walkOf(call, partOf(target, also[at] as CheckedAlso, at), also, at + 1));
    }
    for (const walk of walks) walk.next = this.#addChain(walk, reading);
    const missing = walks.flatMap((walk) => this.#addTotals(walk, reading));
    if (missing.length > 0) return { missing };
    for (const walk of walks) this.#checkPart(walk);
    return call;
  }

  /** Returns the legs of a call, after reading what is missing. */
  async of(target: ConsumeTarget, deadline: Deadline, forced: boolean): Promise<CallLegs> {
    const read = new Map<string, ReadPart>();
    let asked = target;
    for (;;) {
      const legs = this.now(asked, { read, forced });
      if (!isMissing(legs)) {
        const amounts = asked === target ? await target.amountsFor?.(namesIn(legs)) : undefined;
        if (amounts === undefined) return legs;
        asked = { ...target, amounts };
        continue;
      }
      await Promise.all(
        legs.missing.map(async (part) => {
          read.set(bucketId(part), await this.#read(part, deadline));
        }),
      );
    }
  }

  /** Caches the link of an entity. `isShown`: the store has just shown it. */
  see(entityId: string, resource: string, link: Link, isShown: boolean): void {
    this.#links.see(entityId, resource, link, isShown);
  }

  /**
   * Whether entities without a bucket cascade otherwise than the legs say. Their links come from
   * their records: one that was shown more than a second ago is read again before it refuses.
   */
  async haveMoved(legs: readonly Leg[], deadline: Deadline): Promise<boolean> {
    const links = await Promise.all(
      legs.map(({ entityId, resource, config }) => {
        const part = { entityId, resource, isFresh: true };
        return this.#links.read(part, deadline, async () => config.cascade);
      }),
    );
    return legs.some((leg, at) => !sameLink(leg.link, (links[at] as { link: Link }).link));
  }

  /**
   * Adds an entity and its ancestors; returns the first part that is missing, if any. An ancestor
   * without limits at any level is passed over, and the chain goes on behind it.
   */
  #addChain(walk: Walk, reading: Reading): MissingPart | undefined {
    const { target, chain } = walk;
    const { resource } = target;
    let { entityId } = target;
    for (;;) {
      const found = this.#find(entityId, target, reading);
      if (found === undefined) return { entityId, resource, isFresh: false };
      const { link } = found;
      const { disabledAt } = found.stored;
      if (disabledAt !== undefined) {
        const stale = this.#staleIn(chain, resource, reading);
        if (stale !== undefined) return stale;
        throw new ResourceDisabled(entityId, resource, disabledAt);
      }
      this.#addLeg(walk, entityId, found, reading);
      chain.push(entityId);
      if (!link.cascade || link.parentId === undefined) return undefined;
      entityId = nextIn(chain, link.parentId);
    }
  }

  /**
   * Adds the totals of the entities of the chain, where they count, as far as it is known; returns
   * what is missing of the part. The total of the entity that the chain lacks is read with it.
   */
  #addTotals(walk: Walk, reading: Reading): readonly MissingPart[] {
    const { chain, target, next } = walk;
    const missing = next === undefined ? NOTHING_MISSING : [next];
    if (!target.totals) return missing;
    const entities = next === undefined ? chain : [...chain, next.entityId];
    const lacking = entities.flatMap(
      (entityId, at) => this.#addTotal(walk, entityId, chain.slice(0, at), reading) ?? [],
    );
    return lacking.length === 0 ? missing : [...missing, ...lacking];
  }

  /** Adds the total of one entity, if it has one; returns what is missing. */
  #addTotal(
    walk: Walk,
    entityId: string,
    below: readonly string[],
    reading: Reading,
  ): MissingPart | undefined {
    const { amounts, resource } = walk.target;
    const name = bucketId({ entityId, resource: TOTAL });
    const part = reading.read.get(name);
    const stored = part?.stored ?? this.#resolver.cached(entityId, TOTAL);
    const link = part?.link ?? this.#links.get(name);
    if (stored === undefined || (stored.limits !== undefined && link === undefined)) {
      return { entityId, resource: TOTAL, isFresh: false, isTotal: true };
    }
    if (stored.disabledAt !== undefined) {
      const stale = this.#staleIn(below, resource, reading);
      if (stale !== undefined) return stale;
      throw new ResourceDisabled(entityId, TOTAL, stored.disabledAt);
    }
    keepUntil(walk.call, stored);
    const config = configOf(stored, undefined, reading.forced);
    if (config === undefined || link === undefined) return undefined;
    refuseNames(entityId, TOTAL, config, amounts);
    walk.totals.push(config);
    const linkIsFresh = part?.linkIsFresh === true;
    walk.call.add(legOf(entityId, TOTAL, config, link, linkIsFresh, amounts), walk.part);
    return undefined;
  }

  /** Returns a link that is too old: a switch above it refuses by links shown just now. */
  #staleIn(chain: readonly string[], resource: string, { read }: Reading): MissingPart | undefined {
    const stale = chain.find((entityId) => {
      const name = bucketId({ entityId, resource });
      return read.get(name)?.isShown !== true && !this.#links.isShown(name);
    });
    return stale === undefined ? undefined : { entityId: stale, resource, isFresh: true };
  }

  /** Finds what the call has read of an entity, or else what is cached. */
  #find(entityId: string, target: ConsumeTarget, reading: Reading): Found | undefined {
    const { resource } = target;
    const name = bucketId({ entityId, resource });
    const part = reading.read.get(name);
    if (part?.link !== undefined) return part as Found;
    const cached = this.#links.get(name);
    if (cached === undefined && !target.totals) return undefined;
    const stored = this.#resolver.cached(entityId, resource);
    if (stored === undefined) return undefined;
    const link = cached ?? this.#linkOfTotal(entityId, target, stored, reading);
    return link && { stored, link, linkIsFresh: false };
  }

  /** Returns the link that the total has shown, for an entity that has no other leg. */
  #linkOfTotal(
    entityId: string,
    target: ConsumeTarget,
    stored: Resolved,
    reading: Reading,
  ): Link | undefined {
    if (stored.limits !== undefined || target.limits !== undefined) return undefined;
    if (this.#moneyOf(entityId, target, reading).length > 0) return undefined;
    const link = this.#links.get(bucketId({ entityId, resource: TOTAL }));
    return link && effectiveLink(link, stored.cascade);
  }

  /** Returns the names of money that the total of an entity counts and the call consumes. */
  #moneyOf(entityId: string, target: ConsumeTarget, { read }: Reading): readonly string[] {
    const { totals, amounts } = target;
    if (!totals) return moneyIn(undefined, amounts);
    const part = read.get(bucketId({ entityId, resource: TOTAL }));
    return moneyIn((part?.stored ?? this.#resolver.cached(entityId, TOTAL))?.limits, amounts);
  }

  #addLeg(
    walk: Walk,
    entityId: string,
    { stored, link, linkIsFresh }: Found,
    reading: Reading,
  ): void {
    const { forced } = reading;
    const { target, call } = walk;
    const { resource, amounts, limits } = target;
    const isOwn = walk.chain.length === 0;
    const own = configOf(stored, isOwn ? limits : undefined, forced);
    // Stored limits of an ancestor come before those of a call.
    const stated = isOwn ? own : (own ?? configOf(stored, limits, forced));
    if (isOwn) walk.own = stated;
    const money = this.#moneyOf(entityId, target, reading);
    const config = withCounters(stated, money, stored, forced);
    keepUntil(call, stored);
    if (config === undefined) return;
    refuseNames(entityId, resource, config, amounts);
    call.add(legOf(entityId, resource, config, link, linkIsFresh, amounts), walk.part);
  }

  /** Refuses a part without limits, and names that neither the resource nor a total has. */
  #checkPart({ target, own, totals }: Walk): void {
    const { entityId, resource, amounts, field = "consume" } = target;
    if (own === undefined && totals.length === 0) {
      throw withoutLimits(entityId, resource);
    }
    const limits = own?.limits ?? [];
    const known = totals.length === 0 ? limits : limits.concat(...totals.map(limitsOf));
    this.checkNames(target, field, amounts, known);
  }

  /** Reads the stored limits of an entity and its link, both at the same time. */
  async #read(part: MissingPart, deadline: Deadline): Promise<ReadPart> {
    const resolved = this.#readLimits(part);
    const { isFresh: isShown, isTotal } = part;
    if (isTotal === true && (await resolved).limits === undefined) {
      return { stored: await resolved, link: undefined, linkIsFresh: false, isShown };
    }
    const policy = async () => (await resolved).cascade;
    const reading = this.#links.read(part, deadline, policy);
    const [stored, { link, linkIsFresh }] = await Promise.all([resolved, reading]);
    return { stored, link, linkIsFresh, isShown };
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
}

function walkOf(
  call: CallLegs,
  given: ConsumeTarget,
  also: readonly CheckedAlso[],
  part: number,
): Walk {
  const target = hasTotal(given, also) ? { ...given, totals: false } : given;
  return { call, target, part, chain: [], next: undefined, own: undefined, totals: [] };
}

/** Whether a call names the total of an entity itself; it then consumes only what it says. */
function hasTotal({ entityId, resource }: ConsumeTarget, also: readonly CheckedAlso[]): boolean {
  if (resource === TOTAL) return true;
  return also.some((part) => part.resource === TOTAL && part.entityId === entityId);
}

/** Returns another part of a call as a target. */
function partOf(
  { missingLimits, totals }: ConsumeTarget,
  { entityId, resource, amounts, limits }: CheckedAlso,
  at: number,
): ConsumeTarget {
  const field = `also[${at}].consume`;
  const counts = totals && limits === undefined;
  return { entityId, resource, amounts, field, limits, missingLimits, totals: counts };
}

/** Lets a call be known for as long as these limits are, at most. */
function keepUntil(call: CallLegs, { generation, expiresAtMs }: Resolved): void {
  const isKnown = generation === call.generation;
  call.untilMs = Math.min(call.untilMs, isKnown ? expiresAtMs : 0);
}

/** Returns the names of the limits of all legs. */
function namesIn({ legs }: CallLegs): ReadonlySet<string> {
  return new Set(legs.flatMap(({ config }) => config.limits.map(({ name }) => name)));
}

function limitsOf({ limits }: BucketConfig): readonly Limit[] {
  return limits;
}
