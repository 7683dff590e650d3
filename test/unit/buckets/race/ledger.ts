/**
 * Follows every write to a bucket, as it lands, with an ideal bucket of its own, and counts for
 * each actor what it has taken. It knows the attributes of the items, and nothing of the code that
 * writes them.
 */

import type { Rate } from "../../../../src/core/bucket.ts";
import { shardRate } from "../../../../src/core/shares.ts";
import type { Item } from "../../../../src/storage/item.ts";
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
  /** By actor: what its writes have taken, net; those whose answer was lost are left out. */
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
  /** By actor, item and limit: net, as `taken`. */
  readonly #takenAt = new Map<string, { net: number; slot: string }>();
  /** What shards that do not exist yet will start with. */
  readonly #moved = new Map<string, ReadonlyMap<string, Fraction>>();

  /** `spreadMs`: how much the time may pass between planning a write and its landing. */
  constructor(world: World, spreadMs: number) {
    this.#world = world;
    this.#spreadMs = spreadMs;
  }

  readonly onLanded = (landed: Landed): void => {
    const { key, before, after, actor } = landed;
    if (!key.PK.includes("/BUCKET#")) return;
    if (landed.lost && takes(before, after)) {
      for (const one of actorsOf(actor)) this.unanswered.add(one);
    }
    const known = after ?? before;
    const entityId = String(known?.entity_id);
    if (after === undefined) this.#gone(key.PK, entityId);
    else this.#changed(key.PK, entityId, before, after, actor, landed.lost);
  };

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
    for (const [place, { net, slot: at }] of this.#takenAt) {
      if (net < 0 && !this.resets.has(at)) throw new Error(`${place} was given ${-net} too much`);
    }
  }

  /** Every bucket is complete, and where the ideal one says it is. */
  checkAll(items: Iterable<Item>): void {
    for (const item of items) this.#check(item);
  }

  #changed(
    id: string,
    entityId: string,
    before: Item | undefined,
    after: Item,
    actor: Landed["actor"],
    lost: boolean,
  ): void {
    const limits = this.#buckets.get(id) ?? new Map<string, IdealLimit>();
    this.#buckets.set(id, limits);
    const names = limitNames(after);
    this.#split(id, before, after);
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
   * A shard that splits keeps what it says it keeps, and the rest must be in the new one, which
   * lands next. A new shard that no split made has nothing.
   */
  #split(id: string, before: Item | undefined, after: Item): void {
    const place = id.lastIndexOf("#") + 1;
    if (before === undefined && !id.endsWith("#0") && !this.#moved.has(id)) {
      this.#moved.set(id, new Map(limitNames(after).map((name) => [name, ZERO])));
    }
    const count = Number(before?.shard_count ?? after.shard_count);
    if (after.shard_count === count) return;
    const moved = new Map<string, Fraction>();
    for (const [name, { level }] of heldIn(after, this.#world.nowMs)) {
      const ideal = this.#buckets.get(id)?.get(name);
      if (ideal === undefined) throw new Error(`no actor has written "${name}" of ${id}`);
      ideal.refill(this.#world.nowMs);
      moved.set(name, minus(ideal.level, level));
      ideal.level = level;
      ideal.rate = shareIn(after, name);
    }
    const other = id.slice(0, place) + String(Number(id.slice(place)) + count);
    this.#buckets.delete(other);
    this.#moved.set(other, moved);
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

function limitNames(item: Item): string[] {
  return Object.keys(item)
    .flatMap((attribute) => /^b_(.+)_tk$/.exec(attribute)?.[1] ?? [])
    .filter((name) => name !== "wcu");
}

/** What the shard has of the limit. */
function shareIn(item: Item, name: string): Rate {
  const shard = Number(item.PK.slice(item.PK.lastIndexOf("#") + 1));
  return shardRate(rateIn(item, name), shard, Number(item.shard_count));
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

/** What each actor has consumed by a write: together exactly what the write has consumed. */
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
