/** Deletes many items, a batch at a time. */

import { type Key, keyOf } from "../storage/item.ts";
import type { ItemStore } from "../storage/item-store.ts";

const DELETES_PER_BATCH = 500;

/** Deletes the items; `onDeleted` is called with the size of each batch when it is deleted. */
export async function deleteAll(
  store: Pick<ItemStore, "writeMany">,
  items: AsyncIterable<Key>,
  onDeleted: (count: number) => void,
): Promise<void> {
  let batch: Key[] = [];
  const flush = async () => {
    const deletes = batch;
    batch = [];
    if (deletes.length === 0) return;
    await store.writeMany({ deletes });
    onDeleted(deletes.length);
  };
  for await (const item of items) {
    batch.push(keyOf(item));
    if (batch.length === DELETES_PER_BATCH) await flush();
  }
  await flush();
}
