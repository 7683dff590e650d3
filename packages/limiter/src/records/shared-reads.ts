/**
 * Consistent reads for one bucket that are asked for at once share a request: a call that meets a
 * bucket for the first time needs limits, the entity and the bucket. Reads for different buckets
 * do not, so that a throttled one holds up no other.
 */

import type { Item, Key } from "../storage/item.ts";
import type { ItemStore } from "../storage/item-store.ts";

type Reader = Pick<ItemStore, "getMany">;
type Items = readonly (Item | undefined)[];

interface Asked {
  readonly keys: readonly Key[];
  readonly timeoutMs: number | undefined;
  readonly resolve: (items: Items) => void;
  readonly reject: (error: unknown) => void;
}

/** Reads that were requested in the same turn of the event loop, by bucket. */
const turns = new WeakMap<Reader, Map<string, Asked[]>>();

/** Reads keys, all of them consistently. Reads that share a request share the longer time. */
export function readShared(
  store: Reader,
  bucketName: string,
  keys: readonly Key[],
  timeoutMs?: number,
): Promise<Items> {
  return new Promise((resolve, reject) => {
    const turn = turns.get(store) ?? new Map<string, Asked[]>();
    turns.set(store, turn);
    const asked = turn.get(bucketName);
    const one = { keys, timeoutMs, resolve, reject };
    if (asked !== undefined) {
      asked.push(one);
      return;
    }
    turn.set(bucketName, [one]);
    // A call requests all that it needs before it waits for any of it.
    queueMicrotask(() => {
      const all = turn.get(bucketName) ?? [];
      turn.delete(bucketName);
      void send(store, all);
    });
  });
}

async function send(store: Reader, asked: readonly Asked[]): Promise<void> {
  const keys = new Map<string, Key>();
  for (const one of asked) for (const key of one.keys) keys.set(nameOf(key), key);
  try {
    const items = await store.getMany([...keys.values()], {
      consistent: true,
      ...timeOf(asked),
    });
    const found = new Map([...keys.keys()].map((name, at) => [name, items[at]]));
    for (const one of asked) one.resolve(one.keys.map((key) => found.get(nameOf(key))));
  } catch (error) {
    for (const one of asked) one.reject(error);
  }
}

/** Returns the longest timeout; none, which is the store's own, if one read has none. */
function timeOf(asked: readonly Asked[]): { readonly timeoutMs?: number } {
  const times = asked.map(({ timeoutMs }) => timeoutMs);
  if (times.includes(undefined)) return {};
  return { timeoutMs: Math.max(...(times as number[])) };
}

function nameOf({ PK, SK }: Key): string {
  return `${PK}\u0000${SK}`;
}
