/** Removes everything that is stored under a namespace's id. */

import { NamespaceStateError } from "../../domain/errors/errors.ts";
import type { Key } from "../../storage/item.ts";
import type { Query } from "../../storage/item-store.ts";
import { deleteAll } from "../delete-all.ts";
import { systemPartition } from "../keys.ts";
import { queryRecords } from "../query-records.ts";
import type { RecordContext } from "../record-context.ts";
import { unindexedPartitions } from "./namespace-items.ts";

/** Items that keep appearing mean a client that does not know of the deletion yet. */
const ROUNDS_MAX = 10;

/**
 * Deletes until a round finds nothing: GSI4 lags, and a write that was on its way when the purge
 * began may arrive after the first round.
 */
export async function purgeNamespace(
  context: RecordContext,
  onProgress?: (progress: { deleted: number }) => void,
): Promise<void> {
  let deleted = 0;
  const tell = (count: number) => {
    deleted += count;
    onProgress?.({ deleted });
  };
  for (let round = 1; round <= ROUNDS_MAX; round += 1) {
    const before = deleted;
    await purgeRound(context, tell);
    if (deleted === before) return;
  }
  throw new NamespaceStateError(
    `The namespace ${context.namespaceId} is still written to while it is purged. ` +
      "Stop its limiters and purge it again",
    { namespaceName: "", state: "purging" },
  );
}

/**
 * Deletes what GSI4 leads to: everything that has its keys. Some writers left them out: the
 * declarative limits of the Python library, their configs and their own record. Those are found
 * through the registries, which therefore go last.
 */
async function purgeRound(context: RecordContext, tell: (deleted: number) => void): Promise<void> {
  const { namespaceId, store } = context;
  const system = systemPartition(namespaceId);
  const purge = (query: Query) => deleteAll(store, queryRecords(context, query), tell);
  await deleteAll(store, indexedItems(context, system), tell);
  for (const partition of await unindexedPartitions(context)) await purge({ partition });
  await purge({ partition: system });
}

async function* indexedItems(context: RecordContext, except: string): AsyncGenerator<Key> {
  const query = { index: "GSI4", partition: context.namespaceId } as const;
  for await (const item of queryRecords(context, query)) if (item.PK !== except) yield item;
}
