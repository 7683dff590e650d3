/** Random numbers that repeat: the same seed draws the same numbers, on every machine. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";

/**
 * Numbers in [0, 1) from a seed. Each label is a source of its own, so that drawing more from one
 * changes nothing in the others.
 *
 * @example
 * ```ts
 * import { seededRandom } from 'zae-limiter/testing';
 * const random = seededRandom(7);
 * const again = seededRandom(7);
 * console.log(random() === again(), random() === random()); // true false
 * ```
 */
export function seededRandom(seed: number, label = ""): Random {
  let [a, b, c, d] = [seed >>> 0, Math.floor(seed / 2 ** 32) >>> 0, hashOf(label), 1];
  // sfc32, by Chris Doty-Humphrey: small, fast, and good enough for everything but secrets.
  const next = () => {
    const sum = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + sum) | 0;
    return (sum >>> 0) / 4_294_967_296;
  };
  for (let warmUp = 0; warmUp < 16; warmUp += 1) next();
  return next;
}

/** Returns the FNV-1a hash of a text. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return hash >>> 0;
}
