/**
 * Keys of a gateway. A key is an entity whose id has the hash of the key, below the entity that its
 * calls count for; the key itself is shown once and stored nowhere.
 */

import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Clock } from "../../domain/clock.ts";
import type { Entity } from "../../domain/entity.ts";
import { randomBytes, systemRandom } from "../../domain/random.ts";
import type { Repository } from "../../repository/repository.ts";

const ID_PREFIX = "gateway-key:";
const KEY_PREFIX = "zael-";
const KEY_BYTES = 32;
/** How much of a key is shown later, so that people can tell keys apart. */
const HINT_LENGTH = 10;
/** How long a revoked key may go on working in a gateway that has seen it. */
const CACHE_MS = 30_000;
const CACHED_MAX = 10_000;
const REMEMBERED_LENGTH_MAX = 256;

/** A key as it is stored. */
export interface StoredKey {
  readonly id: string;
  /** The entity that its calls count for. */
  readonly entityId: string;
  readonly hint: string;
  /** Epoch milliseconds; absent: never. */
  readonly expiresMs: number | undefined;
  readonly createdAt: string | undefined;
}

/** Makes a key for an entity, which is created where it does not exist. */
export async function createKey(
  repository: Repository,
  entityId: string,
  expiresMs: number | undefined,
  more: { principal?: string } = {},
): Promise<{ key: string; stored: StoredKey }> {
  await repository.entities.ensure({ id: entityId, ...more });
  const bytes = randomBytes(systemRandom, KEY_BYTES);
  const key = KEY_PREFIX + Buffer.from(bytes).toString("base64url");
  const entity = await repository.entities.create({
    id: idOf(key),
    parentId: entityId,
    metadata: {
      hint: key.slice(0, HINT_LENGTH),
      ...(expiresMs === undefined ? {} : { expires_ms: expiresMs }),
    },
    ...more,
  });
  return { key, stored: storedKey(entity) };
}

/** Returns all keys, or those of one entity. */
export async function listKeys(repository: Repository, entityId?: string): Promise<StoredKey[]> {
  const keys: StoredKey[] = [];
  let cursor: string | undefined;
  do {
    const from = cursor === undefined ? {} : { cursor };
    const page = await repository.entities.list({ prefix: ID_PREFIX, ...from });
    keys.push(...page.entities.map(storedKey));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return entityId === undefined ? keys : keys.filter((key) => key.entityId === entityId);
}

/** Returns the id of a key: hashed, unless it is such an id already. */
export function idOf(key: string): string {
  if (key.startsWith(ID_PREFIX)) return key;
  return ID_PREFIX + hashOf(key);
}

/** Returns the hash of a text, in hexadecimal digits. */
export function hashOf(key: string): string {
  return hash("sha256", key);
}

/** Remembers the hashes of keys that came lately: hashing costs more than an acquire in memory. */
export class KeyHashes {
  readonly #known = new LRUCache<string, string>({ max: CACHED_MAX });

  of(key: string): string {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const hashed = hashOf(key);
    // Clients choose what they send, so the memory it takes is bounded.
    if (key.length <= REMEMBERED_LENGTH_MAX) this.#known.set(key, hashed);
    return hashed;
  }
}

/** Looks keys up, and remembers the answers for half a minute. */
export class KeyLookup {
  readonly #repository: Repository;
  readonly #clock: Clock;
  readonly #hashes = new KeyHashes();
  readonly #cache: LRUCache<string, { key: StoredKey | undefined; untilMs: number }>;

  constructor(repository: Repository, clock: Clock) {
    this.#repository = repository;
    this.#clock = clock;
    this.#cache = new LRUCache({ max: CACHED_MAX });
  }

  /** Returns the entity of a key; `undefined` when it is unknown, revoked or expired. */
  entityOf(key: string): string | undefined | Promise<string | undefined> {
    // A client that knows only a stored id must not pass with it.
    if (!key.startsWith(KEY_PREFIX)) return undefined;
    const nowMs = this.#clock();
    const id = ID_PREFIX + this.#hashes.of(key);
    const known = this.#cache.get(id);
    if (known !== undefined && known.untilMs > nowMs) return entityAt(nowMs, known.key);
    return this.#read(id, nowMs);
  }

  async #read(id: string, nowMs: number): Promise<string | undefined> {
    const entity = await this.#repository.entities.get(id);
    const key = entity && storedKey(entity);
    this.#cache.set(id, { key, untilMs: nowMs + CACHE_MS });
    return entityAt(nowMs, key);
  }
}

/** The entity of a key that has not expired. */
function entityAt(nowMs: number, key: StoredKey | undefined): string | undefined {
  return (key?.expiresMs ?? Number.POSITIVE_INFINITY) > nowMs ? key?.entityId : undefined;
}

function storedKey({ id, parentId, metadata, createdAt }: Entity): StoredKey {
  const { hint, expires_ms } = metadata;
  return {
    id,
    entityId: parentId ?? "",
    hint: typeof hint === "string" ? hint : "",
    expiresMs: typeof expires_ms === "number" ? expires_ms : undefined,
    createdAt,
  };
}
