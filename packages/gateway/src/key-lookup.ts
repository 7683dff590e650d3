/**
 * Finds the entity of a key. Clients choose what they send, so the store's cost of keys that were
 * never valid here is bounded: a wrong checksum costs nothing, and keys without one, which older
 * versions made, are bounded per client address and in number.
 */

import type { Clock } from "@zae-limiter/limiter/base/time.ts";
import { addressId } from "@zae-limiter/limiter/http/client-address.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { LRUCache } from "lru-cache";
import { idOf, isChecksum, partsOf, readSecret, type StoredKey, storedKey } from "./keys.ts";

/** How long a revoked key may go on working in a gateway that has seen it. */
const CACHE_MS = 30_000;
const CACHED_MAX = 10_000;
const SECRET_RETRY_MS = 1000;
/** Lookups of keys that nothing speaks for, at a time in this process. */
const STRANGERS_MAX = 16;
/** Lookups that find nothing, per client address and window. */
const MISSES_MAX = 30;
const WINDOW_MS = 60_000;
const ADDRESSES_MAX = 10_000;
/** Prefix length of the subnet that one IPv6 client usually owns. */
const IPV6_SUBNET = 56;

/** A valid key. */
export interface FoundKey {
  readonly id: string;
  /** The beginning of the key. */
  readonly hint: string;
  readonly name: string | undefined;
  /** The entity that its calls count for. */
  readonly entityId: string;
  /** Whether the entity is switched off for every resource. */
  readonly isDisabled: boolean;
}

export interface KeyLookupOptions {
  /** The clock of the repository when absent. */
  readonly clock?: Clock;
}

/** A key that was valid when it was read. */
interface ValidKey {
  readonly found: FoundKey;
  /** Epoch milliseconds; Infinity: never. */
  readonly expiresMs: number;
  readonly cachedUntilMs: number;
}

/** Finds keys, and remembers the answers for half a minute. */
export class KeyLookup {
  readonly #repository: Repository;
  readonly #clock: Clock;
  readonly #misses: Misses;
  /** Keyed by the key itself: hashing costs more than an acquire in memory. */
  readonly #valid = new LRUCache<string, ValidKey>({ max: CACHED_MAX });
  /** Keys that were not found, and until when they are not read again. */
  readonly #unknown = new LRUCache<string, number>({ max: CACHED_MAX });
  readonly #reads = new Map<string, Promise<FoundKey | undefined>>();
  #strangers = 0;
  #secret: string | undefined;
  #secretRead: Promise<string | undefined> | undefined;
  #secretAgainMs = Number.NEGATIVE_INFINITY;

  constructor(repository: Repository, { clock }: KeyLookupOptions = {}) {
    this.#repository = repository;
    this.#clock = clock ?? repository[INTERNALS].clock;
    this.#misses = new Misses(this.#clock);
  }

  /** Reads the secret of the checksums, so that no call has to wait for it. */
  async start(): Promise<void> {
    await this.#readSecret(this.#clock());
  }

  /**
   * Returns the key; "unknown" when it is invented, revoked or expired, or when its entity was
   * deleted; "too many" when the address has asked for too many of these, or too many are read.
   */
  async find(key: string, address: string): Promise<FoundKey | "unknown" | "too many"> {
    const nowMs = this.#clock();
    const valid = this.#valid.get(key);
    if (valid !== undefined && valid.cachedUntilMs > nowMs) {
      return valid.expiresMs > nowMs ? valid.found : "unknown";
    }
    if ((this.#unknown.get(key) ?? 0) > nowMs) return "unknown";
    if (valid !== undefined || this.#reads.has(key)) return (await this.#read(key)) ?? "unknown";
    const parts = partsOf(key);
    if (parts === undefined) return "unknown";
    const { body, checksum } = parts;
    const secret = checksum === undefined ? undefined : await this.#readSecret(nowMs);
    if (checksum === undefined || secret === undefined) return this.#findStranger(key, address);
    return (isChecksum(checksum, body, secret) && (await this.#read(key))) || "unknown";
  }

  /** Reads a key that nothing speaks for, unless there are too many of them; none waits. */
  async #findStranger(key: string, address: string): Promise<FoundKey | "unknown" | "too many"> {
    const client = addressId(address, IPV6_SUBNET);
    if (this.#strangers >= STRANGERS_MAX || !this.#misses.add(client)) return "too many";
    this.#strangers += 1;
    let isMiss = false;
    try {
      const found = await this.#read(key);
      isMiss = found === undefined;
      return found ?? "unknown";
    } finally {
      this.#strangers -= 1;
      if (!isMiss) this.#misses.remove(client);
    }
  }

  /** Reads a key from the store; calls that ask for the same key meanwhile share the answer. */
  #read(key: string): Promise<FoundKey | undefined> {
    const underWay = this.#reads.get(key);
    if (underWay !== undefined) return underWay;
    const read = this.#readNow(key).finally(() => this.#reads.delete(key));
    this.#reads.set(key, read);
    return read;
  }

  async #readNow(key: string): Promise<FoundKey | undefined> {
    const nowMs = this.#clock();
    const cachedUntilMs = nowMs + CACHE_MS;
    const stored = await this.#stored(key);
    const expiresMs = stored?.expiresMs ?? Number.POSITIVE_INFINITY;
    if (stored === undefined || expiresMs <= nowMs) {
      this.#valid.delete(key);
      this.#unknown.set(key, cachedUntilMs);
      return undefined;
    }
    const { id, hint, name, entityId } = stored;
    const isDisabled = await isSwitchedOff(this.#repository, entityId);
    const found = { id, hint, name, entityId, isDisabled };
    this.#valid.set(key, { found, expiresMs, cachedUntilMs });
    return found;
  }

  /** Returns a key whose entity exists. */
  async #stored(key: string): Promise<StoredKey | undefined> {
    const { entities } = this.#repository;
    const entity = await entities.get(idOf(key));
    const isOwned =
      entity?.parentId !== undefined && (await entities.get(entity.parentId)) !== undefined;
    return isOwned ? storedKey(entity) : undefined;
  }

  /** Returns the secret of the checksums. Where there is none yet, it is read once a second. */
  async #readSecret(nowMs: number): Promise<string | undefined> {
    if (this.#secret === undefined && nowMs >= this.#secretAgainMs) {
      this.#secretAgainMs = nowMs + SECRET_RETRY_MS;
      this.#secretRead = readSecret(this.#repository).finally(() => {
        this.#secretRead = undefined;
      });
    }
    this.#secret ??= await this.#secretRead;
    return this.#secret;
  }
}

/** Counts lookups that find nothing, per client and window of a minute. */
class Misses {
  readonly #clock: Clock;
  readonly #windows = new LRUCache<string, { count: number; untilMs: number }>({
    max: ADDRESSES_MAX,
  });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts one more; false, with nothing counted: there are too many. */
  add(client: string): boolean {
    const nowMs = this.#clock();
    const known = this.#windows.get(client);
    const window =
      known !== undefined && known.untilMs > nowMs
        ? known
        : { count: 0, untilMs: nowMs + WINDOW_MS };
    if (window.count >= MISSES_MAX) return false;
    window.count += 1;
    this.#windows.set(client, window);
    return true;
  }

  /** Takes one off: the lookup has found something, or nothing is known of it. */
  remove(client: string): void {
    const window = this.#windows.get(client);
    if (window !== undefined) window.count = Math.max(0, window.count - 1);
  }
}

/** Returns whether an entity is switched off, and for no resource on again. */
async function isSwitchedOff({ limits }: Repository, entityId: string): Promise<boolean> {
  const { state } = await limits.level({ entityId });
  if (state !== "disabled") return false;
  const resources = await limits.listEntityResources();
  const levels = await Promise.all(
    resources.map((resource) => limits.level({ entityId, resource })),
  );
  return levels.every(({ state: own }) => own === undefined || own === "disabled");
}
