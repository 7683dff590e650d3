/** Digests for the dashboard: hashes for its security policy, and comparison of secrets. */

import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/** Returns a source expression for a Content-Security-Policy: `'sha256-…'`. */
export function cspHash(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/** Returns a text that only a holder of the secret can make, for one purpose. */
export function derived(secret: string, purpose: string): string {
  return createHmac("sha256", secret).update(purpose).digest("base64url");
}

/** Compares in a time that does not depend on where the texts differ. */
export function sameSecret(left: string, right: string): boolean {
  const [a, b] = [left, right].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(a as Buffer, b as Buffer);
}
