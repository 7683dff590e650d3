/**
 * Follows every write to a bucket, as it lands, with an ideal bucket of its own, and counts for
 * each actor what it has taken. It knows the attributes of the items, and nothing of the code that
 * writes them.
 */

import { type Rate, shardRate } from "@zae-limiter/limiter/core/bucket.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { compare, type Fraction, fraction, minus, plus, show, smaller, ZERO } from "../fraction.ts";
import { IdealLimit } from "../ideal-bucket.ts";
import { heldIn } from "../subject.ts";
import type { Landed } from "./scheduled-store.ts";
import type { Shares, World } from "./world.ts";

const KEYS = ["rf", "entity_id", "resource", "shard_count", "cascade", "GSI2PK", "GSI2SK"] as const;
const OTHER_KEYS = ["GSI3PK", "GSI3SK", "GSI4PK", "GSI4SK"] as const;

/** Milli-tokens by entity and limit. */
export type Sums = Map<string, number>;

export function slot(entityId: string, limitName: string): string {
  return `${entityId} ${limitName}`;
}

export class Ledger {
  /** Net amounts of the writes of each actor; those whose answer was lost are left out. */
  readonly taken = new Map<number, Sums>();
  /** Actors one of whose writes was done without an answer. */
  readonly unanswered = new Set<number>();
  /** Limits that were removed, and those of buckets that went: their sums started again. */
  readonly resets = new Set<string>();
  /** How deep in debt adjustments may have brought a limit. */
  readonly debts: Sums = new Map();
  readonly #world: World;
  readonly #spreadMs: number;
  readonly #buckets = new Map<string, Map<string, IdealLimit>>();
  /** Keyed by actor, item and limit; net, as `taken`. */
  readonly #takenAt = new Map<string, { net: number; slot: string }>();
  /** Buckets that were merged: what their shards gave may be refunded to any of them. */
  readonly #merged = new Set<string>();
  /** Levels that shards that do not exist yet will start with. */
  readonly #moved = new Map<string, ReadonlyMap<string, Fraction>>();

  /** `spreadMs`: how much the time may pass between planning a write and its landing. */
  constructor(world: World, spreadMs: number) {
    this.#world = world;
    this.#spreadMs = spreadMs;
  }

  /** Takes in the writes that one request has done at once. */
  readonly onLanded = (all: readonly Landed[]): void => {
    const buckets = all.filter(({ key }) => key.PK.includes("/BUCKET#"));
    for (const landed of buckets) this.#landed(landed, buckets);
  };

  #landed(landed: Landed, all: readonly Landed[]): void {
    const { key, actor } = landed;
    const [before, after] = [bucketIn(landed.before), bucketIn(landed.after)];
    if (landed.after !== undefined && after === undefined) {
      refuseStub(landed, all);
      return;
    }
    if (landed.lost && takes(before, after)) {
      for (const one of actorsOf(actor)) this.unanswered.add(one);
    }
    const entityId = String((after ?? before)?.entity_id);
    const gone = takenIn(landed, all);
    if (after === undefined) this.#gone(key.PK, entityId);
    else if (before !== undefined && gone !== undefined) this.#merge(before, after, gone);
    else this.#changed(entityId, { ...landed, before, after }, all);
  }

  /** Both together hold and have consumed what they did: a merge creates and loses nothing. */
  #merge(kept: Item, after: Item, gone: Item): void {
    const { nowMs } = this.#world;
    const limits = new Map<string, IdealLimit>();
    for (const name of limitNames(after)) {
      const sum = totalIn(kept, name) + totalIn(gone, name);
      const found = totalIn(after, name);
      if (found !== sum) throw new Error(`"${name}" of ${after.PK} counts ${found}, not ${sum}`);
      const merged = new IdealLimit(shareIn(after, name), nowMs, this.#spreadMs);
      let level = ZERO;
      // Half of the least part that is stored may be lost.
      merged.slack = fraction(1, merged.rate.periodMs);
      for (const half of [kept, gone]) {
        // A limit that a shard does not have would start full in it.
        const rate = shardRate(rateIn(after, name), shardIn(half), Number(kept.shard_count));
        const fresh = new IdealLimit(rate, nowMs, this.#spreadMs);
        const ideal = this.#buckets.get(half.PK)?.get(name) ?? fresh;
        ideal.refill(nowMs);
        level = plus(level, ideal.level);
        merged.slack = plus(merged.slack, ideal.slack);
      }
      merged.level = smaller(merged.full, level);
      limits.set(name, merged);
    }
    this.#buckets.set(kept.PK, limits);
    this.#buckets.delete(gone.PK);
    this.#merged.add(bucketOf(kept.PK));
    this.#check(after);
  }

  /** A store has dropped an item whose time was over: it must have been full. */
  expired(item: Item): void {
    for (const [name, ideal] of this.#buckets.get(item.PK) ?? []) {
      ideal.refill(this.#world.nowMs);
      if (!ideal.isFull) throw new Error(`"${name}" of ${item.PK} expired before it was full`);
    }
    this.#gone(item.PK, String(item.entity_id));
  }

  /** No actor has refunded more to a shard than it consumed there. */
  checkPlaces(): void {
    const sums = new Map<string, { net: number; slot: string }>();
    for (const [place, { net, slot: at }] of this.#takenAt) {
      const [actor = "", id = "", name = ""] = place.split(" ");
      const whole = this.#merged.has(bucketOf(id)) ? `${actor} ${bucketOf(id)} ${name}` : place;
      sums.set(whole, { net: (sums.get(whole)?.net ?? 0) + net, slot: at });
    }
    for (const [place, { net, slot: at }] of sums) {
      if (net < 0 && !this.resets.has(at)) throw new Error(`${place} was given ${-net} too much`);
    }
  }

  /** Every bucket is complete, and where the ideal one says it is. */
  checkAll(items: Iterable<Item>): void {
    for (const item of items) this.#check(item);
  }

  #changed(
    entityId: string,
    { key: { PK: id }, before, after, actor, lost }: Landed & { readonly after: Item },
    all: readonly Landed[],
  ): void {
    const limits = this.#buckets.get(id) ?? new Map<string, IdealLimit>();
    this.#buckets.set(id, limits);
    const names = limitNames(after);
    this.#split(id, before, after, all);
    for (const name of limits.keys()) {
      if (names.includes(name)) continue;
      limits.delete(name);
      this.resets.add(slot(entityId, name));
    }
    const totals = (item: Item | undefined, name: string) =>
      item === undefined ? 0 : totalIn(item, name);
    // What a group sets off in the background, such as a check of links, consumes nothing.
    const consumes = names.some((name) => totals(after, name) !== totals(before, name));
    for (const name of names) {
      const ideal = this.#follow(limits, name, shareIn(after, name), id);
      const consumed = totals(after, name) - totals(before, name);
      ideal.take(consumed);
      if (actor === undefined || lost || !consumes) continue;
      for (const [one, part] of partsOf(actor, name, consumed)) {
        this.#count(one, slot(entityId, name), part);
        const place = `${one} ${id} ${name}`;
        const net = (this.#takenAt.get(place)?.net ?? 0) + part;
        this.#takenAt.set(place, { net, slot: slot(entityId, name) });
      }
    }
    this.#moved.delete(id);
    this.#check(after);
  }

  /** The ideal of a limit, filled up to now, with the parameters it has from now on. */
  #follow(limits: Map<string, IdealLimit>, name: string, rate: Rate, id: string): IdealLimit {
    const { nowMs } = this.#world;
    const ideal = limits.get(name) ?? new IdealLimit(rate, nowMs, this.#spreadMs);
    const moved = this.#moved.get(id)?.get(name);
    if (moved !== undefined) ideal.level = moved;
    limits.set(name, ideal);
    ideal.refill(nowMs);
    ideal.change(rate);
    return ideal;
  }

  /**
   * A shard that splits keeps what it says it keeps, and the rest must be in the new ones, which
   * land next. A new shard that no split made has nothing.
   */
  #split(id: string, before: Item | undefined, after: Item, all: readonly Landed[]): void {
    const { nowMs } = this.#world;
    if (before === undefined && !id.endsWith("#0") && !this.#moved.has(id)) {
      this.#moved.set(id, new Map(limitNames(after).map((name) => [name, ZERO])));
    }
    const count = Number(before?.shard_count ?? after.shard_count);
    if (after.shard_count === count) return;
    const rest = new Map<string, Fraction>();
    for (const [name, { level }] of heldIn(after, nowMs)) {
      const ideal = this.#buckets.get(id)?.get(name);
      if (ideal === undefined) throw new Error(`no actor has written "${name}" of ${id}`);
      ideal.refill(nowMs);
      rest.set(name, minus(ideal.level, level));
      ideal.level = level;
      ideal.rate = shareIn(after, name);
    }
    const made = madeBy(after, count, all);
    if (made.length !== Number(after.shard_count) / count - 1) {
      throw new Error(`${id} counts ${after.shard_count} shards, and ${made.length} were made`);
    }
    made.forEach((item, at) => {
      this.#buckets.delete(item.PK);
      const held = [...heldIn(item, nowMs)].map(([name, { level }]) => [name, level] as const);
      const isLast = at === made.length - 1;
      this.#moved.set(item.PK, isLast ? rest : new Map(held));
      if (isLast) return;
      for (const [name, level] of held) rest.set(name, minus(rest.get(name) ?? ZERO, level));
    });
  }

  #gone(id: string, entityId: string): void {
    for (const name of this.#buckets.get(id)?.keys() ?? []) this.resets.add(slot(entityId, name));
    this.#buckets.delete(id);
    this.#moved.delete(id);
  }

  #count(actor: number, at: string, amount: number): void {
    const sums = this.taken.get(actor) ?? new Map<string, number>();
    this.taken.set(actor, sums);
    sums.set(at, (sums.get(at) ?? 0) + amount);
  }

  #check(item: Item): void {
    for (const name of [...KEYS, ...OTHER_KEYS]) {
      if (item[name] === undefined) throw new Error(`a ghost: ${item.PK} has no ${name}`);
    }
    const { nowMs } = this.#world;
    const ideals = this.#buckets.get(item.PK);
    for (const [name, { level }] of heldIn(item, nowMs)) {
      const ideal = ideals?.get(name);
      if (ideal === undefined) throw new Error(`no actor has written "${name}" of ${item.PK}`);
      ideal.refill(nowMs);
      const held = smaller(ideal.full, level);
      const seen = `"${name}" of ${item.PK} holds ${show(level)}, the ideal ${show(ideal.level)}`;
      if (compare(held, ideal.level) > 0) throw new Error(`above: ${seen}`);
      const debt = this.debts.get(slot(String(item.entity_id), name)) ?? 0;
      if (compare(level, fraction(-debt)) < 0) throw new Error(`in debt: ${seen}`);
      if (this.#spreadMs > 0) continue;
      if (compare(plus(held, ideal.slack), ideal.level) < 0) throw new Error(`below: ${seen}`);
    }
  }
}

/** A merge leaves a stub without a base time, which is no bucket. */
function bucketIn(item: Item | undefined): Item | undefined {
  return item?.rf === undefined ? undefined : item;
}

function bucketOf(id: string): string {
  return id.slice(0, id.lastIndexOf("#"));
}

function shardIn({ PK }: Item): number {
  return Number(PK.slice(PK.lastIndexOf("#") + 1));
}

/** The shards that a split of `origin`, which was one of `count`, has made. */
function madeBy(origin: Item, count: number, all: readonly Landed[]): readonly Item[] {
  return all.flatMap(({ after }) => {
    const made = bucketIn(after);
    if (made === undefined || bucketOf(made.PK) !== bucketOf(origin.PK)) return [];
    const apart = shardIn(made) - shardIn(origin);
    return apart > 0 && apart % count === 0 ? [made] : [];
  });
}

/** The shard that `kept` takes in by a merge; `undefined` when it takes none in. */
function takenIn(kept: Landed, all: readonly Landed[]): Item | undefined {
  const [before, after] = [bucketIn(kept.before), bucketIn(kept.after)];
  if (before?.shard_count !== 2 * Number(after?.shard_count ?? Number.NaN)) return undefined;
  for (const { before: item, after: stub } of all) {
    const gone = stub === undefined || bucketIn(stub) !== undefined ? undefined : bucketIn(item);
    if (gone === undefined || bucketOf(gone.PK) !== bucketOf(before.PK)) continue;
    if (shardIn(gone) - shardIn(before) === Number(after?.shard_count)) return gone;
  }
  throw new Error(`${before.PK} counts ${after?.shard_count} shards, and none was merged into it`);
}

/** Only a merge makes a stub of a shard. */
function refuseStub({ key, before }: Landed, all: readonly Landed[]): void {
  const gone = bucketIn(before);
  if (gone === undefined || all.some((kept) => takenIn(kept, all) === gone)) return;
  throw new Error(`a ghost: ${key.PK} has no rf, and was not merged`);
}

function limitNames(item: Item): string[] {
  return Object.keys(item)
    .flatMap((attribute) => /^b_(.+)_tk$/.exec(attribute)?.[1] ?? [])
    .filter((name) => name !== "wcu");
}

/** The share of the limit that the shard has. */
function shareIn(item: Item, name: string): Rate {
  return shardRate(rateIn(item, name), shardIn(item), Number(item.shard_count));
}

function rateIn(item: Item, name: string): Rate {
  const at = (suffix: string) => {
    const value = item[`b_${name}_${suffix}`];
    if (typeof value !== "number") throw new Error(`a ghost: ${item.PK} has no ${name} ${suffix}`);
    return value;
  };
  return { capacityMilli: at("cp"), refillMilli: at("ra"), periodMs: at("rp") };
}

function totalIn(item: Item, name: string): number {
  const total = item[`b_${name}_tc`];
  return typeof total === "number" ? total : 0;
}

/** Whether a write takes or gives back anything; one that corrects a link does not. */
function takes(before: Item | undefined, after: Item | undefined): boolean {
  if (before === undefined || after === undefined) return true;
  return limitNames(after).some((name) => totalIn(before, name) !== totalIn(after, name));
}

function actorsOf(actor: Landed["actor"]): Iterable<number> {
  if (actor === undefined) return [];
  return typeof actor === "number" ? [actor] : actor.keys();
}

/** Amounts that each actor has consumed by a write: their sum is what the write consumed. */
function partsOf(
  actor: number | Shares,
  limitName: string,
  consumed: number,
): readonly (readonly [number, number])[] {
  if (typeof actor === "number") return [[actor, consumed]];
  const parts = [...actor].map(([one, amounts]) => [one, amounts.get(limitName) ?? 0] as const);
  const sum = parts.reduce((total, [, part]) => total + part, 0);
  if (sum === consumed) return parts;
  throw new Error(`a write consumed ${consumed} of "${limitName}", and its calls ask for ${sum}`);
}
