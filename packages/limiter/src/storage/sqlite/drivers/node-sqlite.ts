/** The SQLite inside Node: without a flag since 22.13. */

import type { Connect, Connection } from "../driver.ts";

interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => Connection;
}

export async function loadNodeSqlite(): Promise<Connect> {
  // Absent before Node 20.16, where there is no SQLite either.
  const load: ((name: string) => unknown) | undefined = process.getBuiltinModule;
  const module = withoutExperimentalWarning(() => load?.("node:sqlite")) as NodeSqlite | undefined;
  if (module === undefined) throw new Error(`Node ${process.versions.node} has no node:sqlite`);
  return (path) => new module.DatabaseSync(path);
}

/**
 * Loads the module without its warning that it is experimental. Users of a rate limiter cannot act
 * on that, so this one warning is left out; the load is synchronous, and no other passes meanwhile.
 */
function withoutExperimentalWarning<T>(load: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return load();
  } finally {
    process.emitWarning = emitWarning;
  }
}
