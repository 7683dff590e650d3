import type { SnapshotItems } from "@zae-limiter/limiter/buckets/embedded/usage-book.ts";
import { applyChange } from "@zae-limiter/limiter/storage/evaluate.ts";
import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";

/** Returns items in a map, and the port by which books of usage read and write them. */
export function snapshotItems(): {
  readonly stored: ReadonlyMap<string, Item>;
  readonly items: SnapshotItems;
} {
  const stored = new Map<string, Item>();
  const idOf = ({ PK, SK }: Key) => `${PK} ${SK}`;
  const items: SnapshotItems = {
    read: (key) => stored.get(idOf(key)),
    update: (key, change) => {
      stored.set(idOf(key), applyChange(key, stored.get(idOf(key)), change));
    },
    remove: (key) => stored.delete(idOf(key)),
    count: ({ partition, prefix }) =>
      [...stored.values()].filter(
        ({ GSI2PK, GSI2SK }) => GSI2PK === partition && String(GSI2SK).startsWith(prefix),
      ).length,
  };
  return { stored, items };
}
