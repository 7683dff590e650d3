/** PostgreSQL for tests: one server for a run, and a schema of its own for each test file. */

import { describe, inject } from "vitest";

/** Declares a suite on PostgreSQL, or a skip with the reason why it does not run. */
export function describePostgres(title: string, suite: (url: string) => void): void {
  const { url, skipped } = inject("postgres");
  if (url === undefined) describe.skip(`${title} on postgres: ${skipped}`, () => undefined);
  else describe(`${title} on postgres`, () => suite(url));
}

/** Returns the address of a schema that no other test uses; nothing is created. */
export function ownSchema(url: string): { readonly schema: string; readonly url: string } {
  const schema = `t_${crypto.randomUUID().replaceAll("-", "")}`;
  return { schema, url: `${url}${url.includes("?") ? "&" : "?"}schema=${schema}` };
}
