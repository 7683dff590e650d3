/** The package better-sqlite3, where the user installed it. */

import { createRequire } from "node:module";
import type { Connect, Connection } from "../driver.ts";

type Constructor = new (path: string, options: { timeout: number }) => Connection;
interface Manifest {
  readonly version: string;
  readonly engines?: { readonly node?: string };
}

export async function loadBetterSqlite3(): Promise<Connect> {
  const require = createRequire(import.meta.url);
  refuseTooOldNode(require("better-sqlite3/package.json") as Manifest);
  const Database = require("better-sqlite3") as Constructor;
  // The binary is only loaded by the first database: one that is missing must be noticed here,
  // while there is another driver to fall back to.
  new Database(":memory:", { timeout: 0 }).close();
  return (path) => new Database(path, { timeout: 0 });
}

/** Refuses a release made for a newer Node: loading it does not throw, it ends the process. */
function refuseTooOldNode(manifest: Manifest): void {
  const least = Number(/^>=\s*([0-9]+)/.exec(manifest.engines?.node ?? "")?.[1] ?? 0);
  if (Number.parseInt(process.versions.node, 10) >= least) return;
  throw new Error(
    `better-sqlite3 ${manifest.version} needs Node ${least}, this is ${process.versions.node}`,
  );
}
