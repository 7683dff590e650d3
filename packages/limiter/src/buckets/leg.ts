/**
 * The parts of a call, as all stores of buckets understand them.
 *
 * A *leg* is one entity's part of a call: an acquire that cascades has a leg for the entity and
 * one for each ancestor. Amounts and balances are in milli-tokens and aligned with the limits of
 * their leg. A limit is a gate unless it is soft: a soft one is consumed into debt. Under bypass no
 * limit is a gate, and balances stay as they are: only what was consumed in total is counted.
 *
 * A *link* leads from an entity to its parent; it is in the record of the entity, and in its
 * buckets.
 */

import { invariant } from "../domain/check.ts";
import type { UnsupportedLimit } from "../domain/errors/unsupported-limit.ts";
import type { Limit } from "../domain/limit.ts";
import type { ConfigSource } from "../domain/precedence.ts";
import type { StoredBucket } from "../records/bucket-item.ts";
import { flagAt, type Item, numberAt, textAt, type Value } from "../storage/item.ts";
import type { Test } from "../storage/item-store.ts";

/** The parent that an entity cascades to. */
export interface Link {
  readonly cascade: boolean;
  readonly parentId: string | undefined;
}

/** The source of the limits of a leg: a stored level, or the call itself. */
export type LimitSource = ConfigSource | "override";

/** The limits an entity has for a resource. */
export interface BucketConfig {
  readonly limits: readonly Limit[];
  readonly source: LimitSource;
  /** The config version that the limits are at least as new as. */
  readonly version: number;
  /** Apply even to a bucket with a higher version: these limits were just read. */
  readonly forced?: boolean;
  /** Limits of the same level that only the Python library can enforce. */
  readonly unsupported?: readonly UnsupportedLimit[];
  /** Whether a stored level lets acquires cascade; absent: the entity record decides. */
  readonly cascade?: boolean;
  /** Everything is granted: what is consumed is counted, and balances stay as they are. */
  readonly bypass?: true;
}

export interface Leg {
  readonly entityId: string;
  readonly resource: string;
  readonly config: BucketConfig;
  /** Milli-tokens, aligned with `config.limits`; `gatesOf` returns those that can be refused. */
  readonly amountsMilli: readonly number[];
  readonly link: Link;
  /** The link was read in the course of this call, so a new bucket may be created with it. */
  readonly linkIsFresh: boolean;
}

/** The period of a limit that a balance was seen in. */
export interface SeenPeriod {
  /** Epoch milliseconds at which it ends. */
  readonly endMs: number;
  /** Milli-tokens that it has granted: the allowance, what was carried, and top-ups. */
  readonly grantedMilli: number;
  /** Epoch milliseconds at which it was seen. */
  readonly atMs: number;
  /** Whether it is no period: windows of the limit are open until then, and it goes on filling. */
  readonly isWindow?: true;
}

/** The periods of the limits of a leg, aligned with them; absent where none of them has periods. */
export type SeenPeriods = readonly (SeenPeriod | undefined)[];

/** The ends of the periods that a leg consumed in, aligned with its limits. */
export type PeriodEnds = readonly (number | undefined)[];

/** Returns the ends of periods; `undefined` where no limit has any. */
export function endsOf(periods: SeenPeriods | undefined): PeriodEnds | undefined {
  if (periods?.some((period) => period !== undefined && period.isWindow !== true) !== true) {
    return undefined;
  }
  return periods.map((period) => (period?.isWindow === true ? undefined : period?.endMs));
}

export function sameEnds(left: PeriodEnds | undefined, right: PeriodEnds | undefined): boolean {
  if (left === right) return true;
  if (left === undefined || right === undefined) return false;
  return left.every((endMs, at) => endMs === right[at]);
}

/** The amounts that were consumed from one shard; several where no single one had enough. */
export interface ShardPart {
  readonly shard: number;
  /** Milli-tokens, aligned with the limits of the leg. */
  readonly amountsMilli: readonly number[];
  /** The entry of this process that has its slots; absent where none were taken. */
  readonly entry?: string | undefined;
  /** The periods of this shard, where several gave a part; absent: those of the outcome. */
  readonly endsMs?: PeriodEnds | undefined;
}

export interface LegOutcome {
  /** The shards that were consumed from; adjustments go to them. Nearly always one part. */
  readonly parts: readonly ShardPart[];
  /** As stored; it may have changed since the leg was made. */
  readonly link: Link;
  /** Right after the consume, shards summed; of shards it did not touch, as last seen. */
  readonly balancesMilli: readonly number[];
  readonly periods?: SeenPeriods | undefined;
  /** When the store showed the oldest of them; absent: just now. */
  readonly shownAtMs?: number | undefined;
}

/** A change of consumed amounts after the grant. Positive: consumed more; negative: refunded. */
export interface Adjustment {
  readonly entityId: string;
  readonly resource: string;
  readonly shard: number;
  readonly config: BucketConfig;
  /** Milli-tokens, aligned with `config.limits`. */
  readonly deltasMilli: readonly number[];
  /** -1 for a refund that makes an acquire void, so that usage does not count it. */
  readonly acquires?: number;
  /** The periods that were consumed in; absent where no limit has any. */
  readonly endsMs?: PeriodEnds | undefined;
  /** The entry that slots are given back from: nothing is where it is gone, or has less. */
  readonly entry?: string | undefined;
}

/** Whether any of it is returned: then it may be repeated under its token. */
export function isRefund({ deltasMilli }: Adjustment): boolean {
  return deltasMilli.some((delta) => delta < 0);
}

/** Returns the adjustments that refund all that was consumed for a leg. */
export function refundOf(
  leg: Leg,
  parts: readonly ShardPart[],
  periods?: SeenPeriods,
): Adjustment[] {
  const ends = endsOf(periods);
  return parts.map(({ shard, amountsMilli, entry, endsMs = ends }, at) => ({
    entityId: leg.entityId,
    resource: leg.resource,
    shard,
    config: leg.config,
    deltasMilli: amountsMilli.map((amount) => -amount),
    acquires: at === 0 && amountsMilli.some((amount) => amount > 0) ? -1 : 0,
    endsMs,
    ...(entry === undefined ? {} : { entry }),
  }));
}

/** Milli-tokens by the name of the limit. */
export type AmountsByName = ReadonlyMap<string, number>;

export const NO_AMOUNTS: AmountsByName = new Map();

type Gated = Pick<BucketConfig, "limits" | "bypass">;

/** Returns the amounts that need a balance; the given ones, unless some limit is no gate. */
export function gatesOf(config: Gated, amountsMilli: readonly number[]): readonly number[] {
  if (config.bypass === true) return amountsMilli.map(() => 0);
  const { limits } = config;
  for (let at = 0; at < limits.length; at += 1) {
    if (limits[at]?.soft === true) {
      return amountsMilli.map((amount, place) => (limits[place]?.soft === true ? 0 : amount));
    }
  }
  return amountsMilli;
}

/** Returns the amounts that balances lose: nothing under bypass. */
export function takenOf(config: Gated, amountsMilli: readonly number[]): readonly number[] {
  return config.bypass === true ? amountsMilli.map(() => 0) : amountsMilli;
}

/** Returns the limits that an acquire may bring into debt; `undefined` when there is none. */
export function softNames({
  limits,
}: Pick<BucketConfig, "limits">): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  for (const { name, soft } of limits) {
    if (!soft) continue;
    names ??= new Set();
    names.add(name);
  }
  return names;
}

/** Whether a limit of a leg has alerts. Under bypass nothing is used. */
export function isWatched({ config: { limits, bypass } }: Pick<Leg, "config">): boolean {
  if (bypass === true) return false;
  for (const { alerts } of limits) if (alerts.length > 0) return true;
  return false;
}

/** Returns the soft limits that were consumed from and are below zero now, each once. */
export function overdrawnOf(
  config: Gated,
  amountsMilli: readonly number[],
  balancesMilli: readonly number[],
): ReadonlyMap<string, number> | undefined {
  if (config.bypass === true || softNames(config) === undefined) return undefined;
  const overdrawn = config.limits.filter(
    ({ soft }, at) => soft && (amountsMilli[at] ?? 0) > 0 && (balancesMilli[at] as number) < 0,
  );
  return overdrawn.length === 0 ? undefined : new Map(overdrawn.map(({ name }) => [name, 1]));
}

/** Returns the amounts by the names of their limits. */
export function amountsByName(
  { limits }: Pick<BucketConfig, "limits">,
  amountsMilli: readonly number[],
): AmountsByName {
  const amounts = new Map<string, number>();
  for (let at = 0; at < limits.length; at += 1) {
    amounts.set((limits[at] as (typeof limits)[number]).name, amountsMilli[at] ?? 0);
  }
  return amounts;
}

/** Whether an amount above zero is more than there is. */
export function exceeds(
  amountsMilli: readonly number[],
  balancesMilli: readonly number[],
): boolean {
  return amountsMilli.some((amount, at) => amount > 0 && amount > (balancesMilli[at] as number));
}

/** Whether there is enough of what can be refused. */
export function fits(
  config: Gated,
  amountsMilli: readonly number[],
  balancesMilli: readonly number[],
): boolean {
  return !exceeds(gatesOf(config, amountsMilli), balancesMilli);
}

/** Whether anything is consumed. */
export function consumes(amountsMilli: readonly number[]): boolean {
  return amountsMilli.some((amount) => amount > 0);
}

/** Returns what all parts consume together; there is one at least. */
export function sumOf(
  parts: readonly { readonly amountsMilli: readonly number[] }[],
): readonly number[] {
  const [first] = parts;
  invariant(first !== undefined, "a sum has a part");
  if (parts.length === 1) return first.amountsMilli;
  const sums = first.amountsMilli.map(() => 0);
  for (const { amountsMilli } of parts) {
    for (let at = 0; at < sums.length; at += 1) {
      sums[at] = (sums[at] as number) + (amountsMilli[at] ?? 0);
    }
  }
  return sums;
}

/** The link of an entity that does not cascade. */
export const UNLINKED: Link = Object.freeze({ cascade: false, parentId: undefined });

/** Returns the link with the `cascade` of a stored level; without a parent it never cascades. */
export function byPolicy({ parentId }: Link, cascade: boolean): Link {
  return { cascade: cascade && parentId !== undefined, parentId };
}

/** Returns the link that applies: the stored one, unless a level decides about cascading. */
export function effectiveLink(link: Link, policy: boolean | undefined): Link {
  return policy === undefined ? link : byPolicy(link, policy);
}

/** Returns the stamps by which the Python library knows that a bucket's link is the policy. */
export function ownerStamps(record: Item | undefined): Record<string, Value> {
  const generation = record === undefined ? undefined : numberAt(record, "pgen");
  const incarnation =
    record === undefined ? undefined : (textAt(record, "pinc") ?? textAt(record, "created_at"));
  return { pgen: generation ?? 0, pinc: incarnation ?? "-" };
}

/** Returns the link of a record. An entity that was never created does not cascade. */
export function linkInRecord(record: Item | undefined): Link {
  if (record === undefined) return UNLINKED;
  return { cascade: flagAt(record, "cascade"), parentId: textAt(record, "parent_id") };
}

export function sameLink(left: Link, right: Link): boolean {
  return left.cascade === right.cascade && left.parentId === right.parentId;
}

/** Returns the links that buckets have shown, when one is not what the legs were made from. */
export function changedLinks(
  legs: readonly { readonly link: Link }[],
  shown: readonly { readonly link: Link }[],
): readonly Link[] | undefined {
  const isSame = legs.every(({ link }, at) => sameLink(link, (shown[at] as { link: Link }).link));
  return isSame ? undefined : shown.map(({ link }) => link);
}

export function linkIn({ cascade, parentId }: Link): Link {
  return { cascade, parentId };
}

/** Returns the change that writes a link into a bucket. */
export function linkChange({ cascade, parentId }: Link) {
  return parentId === undefined
    ? { set: { cascade }, remove: ["parent_id"] }
    : { set: { cascade, parent_id: parentId } };
}

/**
 * Whether the Python library has stamped the bucket with its resolved cascade policy, which may
 * differ from the record of the entity.
 */
export function hasPolicy({ python }: StoredBucket): boolean {
  return python?.stamps.pgen !== undefined;
}

export const NO_POLICY: Test = { is: "absent", name: "pgen" };

/** Tests that the bucket still has the link that was seen. */
export function linkTests({ cascade, parentId }: Link): Test[] {
  const parent = "parent_id";
  return [
    { is: "=", name: "cascade", value: cascade, orAbsent: !cascade },
    parentId === undefined
      ? { is: "absent", name: parent }
      : { is: "=", name: parent, value: parentId },
  ];
}
