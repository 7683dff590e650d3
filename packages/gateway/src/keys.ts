/**
 * Keys of a gateway. A key is an entity whose id has the hash of the key, below the entity that its
 * calls count for; the key itself is shown once and stored nowhere. It ends with a checksum by a
 * secret of the namespace, so that a gateway recognises invented keys without asking the store.
 */

import { createHmac, hash, timingSafeEqual } from "node:crypto";
import { randomToken, systemRandom } from "@zae-limiter/limiter/base/random.ts";
import { show } from "@zae-limiter/limiter/domain/check.ts";
import type { Entity } from "@zae-limiter/limiter/domain/entity.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { GATEWAY_KEY_PREFIX, isGatewayKey } from "@zae-limiter/limiter/domain/names.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Repository } from "@zae-limiter/limiter/repository/repository.ts";

const KEY_PREFIX = "zael-";
const KEY_BYTES = 32;
/** Keys that were made before there were checksums end after 43 characters. */
const KEY_PATTERN = /^zael-([A-Za-z0-9_-]{43})([A-Za-z0-9_-]{8})?$/;
const CHECKSUM_BYTES = 6;
/** Characters of a key that are shown later, so that people can distinguish keys. */
export const HINT_LENGTH = 10;
const NAME_PATTERN = /^[A-Za-z0-9][A-Za-z0-9 ._@:/+-]{0,63}$/;
/** The note with the secret of the checksums. */
const SECRET_NOTE = "gateway/key-secret";

export interface StoredKey {
  readonly id: string;
  /** The entity that its calls count for. */
  readonly entityId: string;
  /** The beginning of the key. */
  readonly hint: string;
  /** The name that people have given it. */
  readonly name: string | undefined;
  /** Epoch milliseconds; absent: never. */
  readonly expiresMs: number | undefined;
  readonly createdAt: string | undefined;
}

/** Makes a key for an entity, which is created where it does not exist. */
export async function createKey(
  repository: Repository,
  entityId: string,
  expiresMs: number | undefined,
  { name, ...more }: { name?: string; principal?: string } = {},
): Promise<{ key: string; stored: StoredKey }> {
  const named = name === undefined ? {} : { name: checkKeyName(name) };
  await repository.entities.ensure({ id: entityId, ...more });
  const body = randomToken(systemRandom, KEY_BYTES);
  const key = KEY_PREFIX + body + checksumOf(body, await ensureSecret(repository));
  const entity = await repository.entities.create({
    id: idOf(key),
    parentId: entityId,
    metadata: {
      hint: key.slice(0, HINT_LENGTH),
      ...(expiresMs === undefined ? {} : { expires_ms: expiresMs }),
    },
    ...named,
    ...more,
  });
  return { key, stored: storedKey(entity) };
}

/** Checks the name of a key, which can be neither a key nor an id: those find keys, too. */
function checkKeyName(name: string): string {
  const isTaken = [KEY_PREFIX, GATEWAY_KEY_PREFIX].some((prefix) => name.startsWith(prefix));
  if (NAME_PATTERN.test(name) && !isTaken) return name;
  // A key that was given by mistake must not appear in a message.
  const came = isTaken ? `one that begins like a key` : show(name);
  const form =
    "1 to 64 letters, digits, spaces and . _ @ : / + -, beginning with a letter or digit";
  throw new ValidationError("name", isTaken ? "…" : name, `expected ${form}, got ${came}`);
}

/** Returns the secret of the checksums; `undefined` before the first key was made with one. */
export async function readSecret(repository: Repository): Promise<string | undefined> {
  const secret = await repository[INTERNALS].notes.get(SECRET_NOTE);
  return typeof secret === "string" ? secret : undefined;
}

/** Returns the secret, which the first caller of all makes. */
async function ensureSecret(repository: Repository): Promise<string> {
  const { notes } = repository[INTERNALS];
  const known = await readSecret(repository);
  if (known !== undefined) return known;
  const secret = randomToken(systemRandom, KEY_BYTES);
  if (await notes.create(SECRET_NOTE, secret)) return secret;
  const made = await readSecret(repository);
  if (made !== undefined) return made;
  // There is one, and it is no text: another program has damaged it.
  await notes.set(SECRET_NOTE, secret);
  return secret;
}

/** The parts of a text that could be a key; older keys have no checksum. */
export interface KeyParts {
  readonly body: string;
  readonly checksum: string | undefined;
}

/** Returns the parts of a key; `undefined` for a text that cannot be one, such as a stored id. */
export function partsOf(key: string): KeyParts | undefined {
  const [, body, checksum] = KEY_PATTERN.exec(key) ?? [];
  return body === undefined ? undefined : { body, checksum };
}

/** Whether a checksum was made with the secret. */
export function isChecksum(checksum: string, body: string, secret: string): boolean {
  return timingSafeEqual(Buffer.from(checksum), Buffer.from(checksumOf(body, secret)));
}

function checksumOf(body: string, secret: string): string {
  const digest = createHmac("sha256", secret).update(body).digest();
  return digest.subarray(0, CHECKSUM_BYTES).toString("base64url");
}

/** Returns all keys, or those of one entity. */
export async function listKeys(repository: Repository, entityId?: string): Promise<StoredKey[]> {
  const keys: StoredKey[] = [];
  let cursor: string | undefined;
  do {
    const from = cursor === undefined ? {} : { cursor };
    const page = await repository.entities.list({ prefix: GATEWAY_KEY_PREFIX, ...from });
    keys.push(...page.entities.map(storedKey));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return entityId === undefined ? keys : keys.filter((key) => key.entityId === entityId);
}

/** Returns the keys that a text means: the key itself, its id, its name, or its beginning. */
export async function findKeys(repository: Repository, text: string): Promise<StoredKey[]> {
  if (isGatewayKey(text) || partsOf(text) !== undefined) {
    const entity = await repository.entities.get(idOf(text));
    return entity === undefined ? [] : [storedKey(entity)];
  }
  // As `gateway key list` shows it.
  const hint = text.replace(/(?:…|\.\.\.)$/, "");
  const keys = await listKeys(repository);
  return keys.filter((key) => key.name === text || key.hint === hint);
}

/** Whether there is any key. */
export async function hasKeys(repository: Repository): Promise<boolean> {
  const { entities } = await repository.entities.list({ prefix: GATEWAY_KEY_PREFIX, limit: 1 });
  return entities.length > 0;
}

/** Returns the ids of the keys of an entity, which need not exist. */
export async function keyIdsOf(repository: Repository, entityId: string): Promise<string[]> {
  const children = await repository.entities.children(entityId);
  return children.map(({ id }) => id).filter(isGatewayKey);
}

/** Returns the id of a key: hashed, unless it is such an id already. */
export function idOf(key: string): string {
  return isGatewayKey(key) ? key : GATEWAY_KEY_PREFIX + hashOf(key);
}

/** Returns the hash of a text, in hexadecimal digits. */
export function hashOf(key: string): string {
  return hash("sha256", key);
}

/** Reads a key from its entity. */
export function storedKey({ id, name, parentId, metadata, createdAt }: Entity): StoredKey {
  const { hint, expires_ms } = metadata;
  return {
    id,
    entityId: parentId ?? "",
    hint: typeof hint === "string" ? hint : "",
    name: name === id ? undefined : name,
    expiresMs: typeof expires_ms === "number" ? expires_ms : undefined,
    createdAt,
  };
}
