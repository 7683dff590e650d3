/** What an entity leaves behind: its usage, and the records of resets and top-ups. */

import type { Key } from "../storage/item.ts";
import { ENTITY_CONFIG_PREFIX, entityPartition, META_SK } from "./keys.ts";
import { operationsOf } from "./operation-record.ts";
import { queryRecords } from "./query-records.ts";
import type { RecordContext } from "./record-context.ts";

const DELETES_PER_BATCH = 500;

/** Deletes all of it, page by page; returns how many records there were. */
export async function deleteLeftovers(context: RecordContext, id: string): Promise<number> {
  const { store } = context;
  let deleted = 0;
  let batch: Key[] = [];
  const flush = async () => {
    if (batch.length > 0) await store.writeMany({ deletes: batch });
    deleted += batch.length;
    batch = [];
  };
  for await (const key of leftovers(context, id)) {
    batch.push(key);
    if (batch.length === DELETES_PER_BATCH) await flush();
  }
  await flush();
  return deleted;
}

async function* leftovers(context: RecordContext, id: string): AsyncGenerator<Key> {
  const { store, namespaceId } = context;
  const query = { partition: entityPartition(namespaceId, id), consistent: true };
  for await (const { PK, SK } of store.query(query)) {
    // Limits that were set meanwhile are counted, and go only together with their count.
    if (SK !== META_SK && !SK.startsWith(ENTITY_CONFIG_PREFIX)) yield { PK, SK };
  }
  const sort = { beginsWith: operationsOf(id) };
  for await (const { PK, SK } of queryRecords(context, {
    index: "GSI4",
    partition: namespaceId,
    sort,
  })) {
    yield { PK, SK };
  }
}
