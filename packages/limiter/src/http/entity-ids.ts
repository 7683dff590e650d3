/**
 * Entity ids from keys and addresses. A key that is a legal entity id stays as it is. Any other one
 * is written as `enc:` and its UTF-8 bytes, illegal ones as `@` and two hexadecimal digits, so that
 * two keys never become one id and the key can be read back. A key too long for that becomes
 * `sha256:` and its hash; one with half of a surrogate pair, which UTF-8 cannot hold, becomes
 * `sha256:utf16:` and a hash. Keys that begin like one of these forms are encoded too.
 */

import { createHash } from "node:crypto";
import { ValidationError } from "../domain/errors/errors.ts";

const LEGAL_PATTERN = /^[A-Za-z0-9][A-Za-z0-9_.\-:@]{0,255}$/;
const FORM_PATTERN = /^(?:enc|sha256):/;
const KEPT_PATTERN = /[A-Za-z0-9_.\-:]/;
/** In UTF-8 all of them become the same character. */
const LONE_SURROGATE_PATTERN = /\p{Surrogate}/u;
const ID_LENGTH_MAX = 256;

/** Returns a legal entity id for any key; equal for equal keys only. */
export function entityIdOf(key: string): string {
  if (LEGAL_PATTERN.test(key) && !FORM_PATTERN.test(key)) return key;
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
