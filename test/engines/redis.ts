/** Redis and Valkey for tests: one server for a run, and a prefix of its own for each test file. */

import { describe, inject } from "vitest";

/** Declares a suite on the server of the run, or a skip with the reason why it does not run. */
export function describeRedis(title: string, suite: (url: string) => void): void {
  const { url, skipped } = inject("redis");
  if (url === undefined) describe.skip(`${title} on redis: ${skipped}`, () => undefined);
  else describe(`${title} on redis`, () => suite(url));
}

/** Returns the address of a prefix that no other test uses. */
export function ownPrefix(url: string): { readonly prefix: string; readonly url: string } {
  const prefix = `t-${crypto.randomUUID()}:`;
  return { prefix, url: `${url}${url.includes("?") ? "&" : "?"}prefix=${prefix}` };
}
