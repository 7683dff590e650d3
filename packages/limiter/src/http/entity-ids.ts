/**
 * Entity ids from keys and addresses. A key that is a legal entity id stays as it is. Any other one
 * is written as `enc:` and its UTF-8 bytes, illegal ones as `@` and two hexadecimal digits, so that
 * two keys never become one id and the key can be read back. A key too long for that becomes
 * `sha256:` and its hash; one with half of a surrogate pair, which UTF-8 cannot hold, becomes
 * `sha256:utf16:` and a hash. Keys that begin like one of these forms are encoded too, and so are
 * those that begin like an entity of operators (`upstream:`, `gateway-key:`, `tag:`): no client can
 * name one.
 */

import { createHash } from "node:crypto";
import { ValidationError } from "../domain/errors/errors.ts";

const LEGAL_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_.\-:@]{0,255}$/;
const RESERVED_PATTERN = /^(?:enc|sha256|upstream|gateway-key|tag):/;
const KEPT_PATTERN = /[A-Za-z0-9_.\-:]/;
/** In UTF-8 all of them become the same character. */
const LONE_SURROGATE_PATTERN = /\p{Surrogate}/u;
const ID_LENGTH_MAX = 256;
const HASH_LENGTH = 32;

/** Returns a legal entity id for any key; equal for equal keys only. */
export function entityIdOf(key: string): string {
  if (LEGAL_PATTERN.test(key) && !RESERVED_PATTERN.test(key)) return key;
  if (LONE_SURROGATE_PATTERN.test(key))
    return `sha256:utf16:${hashOf(Buffer.from(key, "utf16le"))}`;
  let id = "enc:";
  for (const byte of Buffer.from(key, "utf8")) {
    const character = String.fromCharCode(byte);
    id += KEPT_PATTERN.test(character) ? character : `@${byte.toString(16).padStart(2, "0")}`;
  }
  if (id.length <= ID_LENGTH_MAX) return id;
  return `sha256:${hashOf(key)}`;
}

function hashOf(key: string | Buffer): string {
  return createHash("sha256").update(key).digest("hex");
}

/**
 * Returns the key behind an entity id that `entityIdOf` made; a hashed key stays an id.
 *
 * @example
 * ```ts
 * import { keyOfEntityId } from 'zae-limiter/express';
 * console.log(keyOfEntityId('enc:a@20b')); // a b
 * console.log(keyOfEntityId('key-1')); // key-1
 * ```
 */
export function keyOfEntityId(id: string): string {
  if (!id.startsWith("enc:")) return id;
  const bytes: number[] = [];
  const text = id.slice("enc:".length);
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] !== "@") bytes.push(text.charCodeAt(at));
    else {
      const byte = Number.parseInt(text.slice(at + 1, at + 3), 16);
      if (Number.isNaN(byte)) {
        throw new ValidationError("id", id, 'expected two hexadecimal digits after each "@"');
      }
      bytes.push(byte);
      at += 2;
    }
  }
  return Buffer.from(bytes).toString("utf8");
}

/**
 * Returns a name for an API key that does not reveal it: `key-` and 128 bits of its SHA-256 hash. A
 * whole `Authorization` header may be passed, without its scheme `Bearer` it is the key. No key is
 * an empty text, which `entityId` takes for a request without one.
 *
 * Keep the names of the keys that you handed out, and find the entity of a request there: the hash
 * of a made-up key would be an entity like any other. For keys that are random: a password can be
 * guessed from its hash.
 *
 * @example
 * ```ts
 * import { hashKey } from 'zae-limiter/express';
 * const customers = new Map([[hashKey('my-api-key'), 'customer-1']]);
 * console.log(customers.get(hashKey('Bearer my-api-key'))); // customer-1
 * console.log(customers.get(hashKey('made-up'))); // undefined
 * console.log(hashKey(undefined) === ''); // true
 * ```
 */
export function hashKey(key: string | readonly string[] | null | undefined): string {
  const text = typeof key === "string" ? key : (key?.join(", ") ?? "");
  const secret = text.replace(/^bearer /i, "").trim();
  if (secret === "") return "";
  return `key-${hashOf(secret).slice(0, HASH_LENGTH)}`;
}
