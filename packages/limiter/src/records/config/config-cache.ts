/**
 * Cached limits.
 *
 * A slot holds one config item, or the fact that there is none. Each has the namespace's config
 * version it is at least as new as (`asOf`), because a live bucket must not replace newer limits by
 * older ones. When a newer version is seen, older slots are dropped, so that a change takes effect
 * within the lifetime of the system slot.
 */

import { boundedMap } from "../../base/bounded-map.ts";
import type { Clock } from "../../base/time.ts";
import type { OnUnavailable } from "../../domain/errors/unavailability.ts";
import type { UnsupportedLimit } from "../../domain/errors/unsupported-limit.ts";
import type { Limit } from "../../domain/limit.ts";
import type { InactiveNamespace } from "../namespaces/namespace-state.ts";
import type { DisabledFlag } from "../python-attributes.ts";
import type { Incompatibility } from "../version-record.ts";

/** Maximum number of slots; beyond it the least recently used are dropped. */
const SLOTS_MAX = 50_000;

/** One cached config item; no limits and no item are the same. */
export interface ConfigSlot {
  readonly limits: readonly Limit[];
  /** Limits of the same level that only the Python library can enforce. */
  readonly unsupported: readonly UnsupportedLimit[];
  /** Whether the level switches the resource off; `undefined`: the next level answers. */
  readonly disabled: DisabledFlag | undefined;
  /** Whether the level says that acquires cascade; `undefined`: the next level answers. */
  readonly cascade: boolean | undefined;
  readonly onUnavailable: OnUnavailable | undefined;
  readonly auditRetentionDays: number | undefined;
  /** In the slot of an entity's record: its parent. */
  readonly parentId: string | undefined;
  /** In the system slot: the resources for which some entity has limits for its children. */
  readonly childrenResources: readonly string[];
  /** In the system slot: why the namespace may not be used; `undefined` while it is active. */
  readonly inactive: InactiveNamespace | undefined;
  /** In the system slot: why this client must not use the table any more. */
  readonly incompatible: Incompatibility | undefined;
  /** The config version that this is at least as new as. */
  readonly asOf: number;
  readonly expiresAtMs: number;
}

/**
 * Figures of the limit cache.
 *
 * @example
 * ```ts
 * import { Repository, type CacheStats } from 'zae-limiter';
 * const repo = await Repository.open('memory:');
 * await repo.limits.resolve('key-1', 'gpt-4');
 * const stats: CacheStats = repo.limits.cacheStats();
 * console.log(stats.misses, stats.size, stats.ttlSeconds); // 4 4 60
 * await repo.close();
 * ```
 */
export interface CacheStats {
  /** Lookups that the cache answered. */
  readonly hits: number;
  /** Lookups that read the store. */
  readonly misses: number;
  /** Entries in the cache now. */
  readonly size: number;
  /** Seconds that an entry is kept. */
  readonly ttlSeconds: number;
}

export class ConfigCache {
  readonly ttlSeconds: number;
  /** The stored setting as it was last seen, however long ago. */
  lastOnUnavailable: OnUnavailable | undefined;
  readonly #clock: Clock;
  readonly #slots = boundedMap<ConfigSlot>(SLOTS_MAX);
  readonly #inFlight = new Map<string, Promise<ConfigSlot>>();
  #epoch = 0;
  #generation = 0;
  #version = 0;
  #hits = 0;
  #misses = 0;

  constructor(options: { ttlSeconds: number; clock: Clock }) {
    this.ttlSeconds = options.ttlSeconds;
    this.#clock = options.clock;
  }

  /** The newest config version that was seen. */
  get version(): number {
    return this.#version;
  }

  /** Incremented by every eviction: a read that began before it does not fill the cache. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Incremented whenever cached answers may be outdated for another reason than their age. */
  get generation(): number {
    return this.#generation;
  }

  /** Returns a fresh slot without counting a hit. */
  peek(name: string): ConfigSlot | undefined {
    const slot = this.#slots.get(name);
    if (slot === undefined || !this.isFresh(slot.expiresAtMs)) return undefined;
    // Slots that survived a change by this process were not affected by it: they are current.
    return slot.asOf === this.#version ? slot : { ...slot, asOf: this.#version };
  }

  isFresh(expiresAtMs: number): boolean {
    return this.#clock() <= expiresAtMs;
  }

  /** Counts hits that were found without `find`. */
  countHits(hits: number): void {
    this.#hits += hits;
  }

  /** Returns a fresh slot, and counts a hit or a miss. */
  find(name: string): ConfigSlot | undefined {
    const slot = this.peek(name);
    if (slot === undefined) this.#misses += 1;
    else this.#hits += 1;
    return slot;
  }

  /**
   * Returns the slots of `names`: waits for those that are being read, and reads the others by one
   * call of `fetch`. Nothing is locked while it waits.
   */
  async load(
    names: readonly string[],
    fetch: (names: readonly string[]) => Promise<readonly ConfigSlot[]>,
  ): Promise<Map<string, ConfigSlot>> {
    if (this.ttlSeconds <= 0) return new Map(zip(names, await fetch(names)));
    const missing = names.filter((name) => !this.#inFlight.has(name));
    if (missing.length > 0) this.#start(missing, fetch(missing));
    const pending = names.map((name) => this.#inFlight.get(name) as Promise<ConfigSlot>);
    return new Map(zip(names, await Promise.all(pending)));
  }

  /** Records that the namespace's config is at `version`, and drops older slots. */
  observe(version: number): void {
    if (version === this.#version) return;
    this.#generation += 1;
    for (const [name, slot] of this.#slots.entries()) {
      if (slot.asOf < version || version < this.#version) this.#slots.delete(name);
    }
    this.#version = version;
  }

  /** Records that this process has made `version` by changing these slots, and nothing else. */
  changed(version: number, names: readonly string[]): void {
    this.#epoch += 1;
    this.#generation += 1;
    if (version !== this.#version + 1) this.#slots.clear();
    for (const name of names) {
      this.#slots.delete(name);
      this.#inFlight.delete(name);
    }
    this.#version = version;
  }

  /** Drops a slot whose item has changed without a new version. */
  drop(name: string): void {
    const isKnown = this.#slots.get(name) !== undefined || this.#inFlight.has(name);
    if (!isKnown) return;
    this.#epoch += 1;
    this.#generation += 1;
    this.#slots.delete(name);
    this.#inFlight.delete(name);
  }

  /** Returns when a slot that is read now stops being fresh, in epoch milliseconds. */
  expiry(): number {
    return this.#clock() + this.ttlSeconds * 1000;
  }

  /** Drops all slots; counters stay. */
  clear(): void {
    this.#epoch += 1;
    this.#generation += 1;
    this.#slots.clear();
    this.#inFlight.clear();
  }

  stats(): CacheStats {
    return {
      hits: this.#hits,
      misses: this.#misses,
      size: this.#slots.size,
      ttlSeconds: this.ttlSeconds,
    };
  }

  #start(names: readonly string[], fetched: Promise<readonly ConfigSlot[]>): void {
    const epoch = this.#epoch;
    names.forEach((name, position) => {
      const slot = fetched.then((slots) => slots[position] as ConfigSlot);
      this.#inFlight.set(name, slot);
      const settled = () => {
        if (this.#inFlight.get(name) === slot) this.#inFlight.delete(name);
      };
      slot.then((value) => {
        settled();
        if (epoch === this.#epoch && value.asOf >= this.#version) this.#slots.set(name, value);
      }, settled);
    });
  }
}

function zip<A, B>(left: readonly A[], right: readonly B[]): [A, B][] {
  return left.map((value, position) => [value, right[position] as B]);
}
