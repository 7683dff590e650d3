/**
 * The records of processes that hold slots: one item per process, for the slots of all buckets and
 * namespaces. A process renews its own; any client reads it to learn whether a holder is dead.
 */

import { defined } from "../base/defined.ts";
import type { ProcessMark } from "../base/process-mark.ts";
import { RESERVED_NAMESPACE } from "../domain/names.ts";
import { type Item, type Key, keyOf, numberAt, textAt } from "../storage/item.ts";
import type { ItemStore } from "../storage/item-store.ts";
import { META_SK } from "./keys.ts";

const HOLDER_PREFIX = "HOLDER#";
/** A record that is over is kept so long that no clock takes it for one that was never there. */
const KEPT_SECONDS = 86_400;

/** The record of a process that holds slots. */
export interface HolderRecord {
  readonly id: string;
  /** Epoch milliseconds at which it is over, unless it is renewed. */
  readonly untilMs: number;
  /** Absent where processes of one machine do not share a store. */
  readonly process?: ProcessMark | undefined;
}

/** Returns the key of the record of a holder. */
export function holderKey(id: string): Key {
  return { PK: `${RESERVED_NAMESPACE}/${HOLDER_PREFIX}${id}`, SK: META_SK };
}

function encodeHolder({ id, untilMs, process }: HolderRecord): Item {
  const ttl = Math.ceil(untilMs / 1000) + KEPT_SECONDS;
  const mark = process && { ...process };
  return { ...holderKey(id), until: untilMs, ttl, ...mark };
}

/** Returns the record of an item; `undefined` without one. */
export function decodeHolder(item: Item | undefined): HolderRecord | undefined {
  const untilMs = numberAt(item, "until");
  if (item === undefined || untilMs === undefined) return undefined;
  const id = keyOf(item).PK.slice(RESERVED_NAMESPACE.length + 1 + HOLDER_PREFIX.length);
  const [machine, pid, started] = [
    textAt(item, "machine"),
    numberAt(item, "pid"),
    textAt(item, "started"),
  ];
  const isMarked = machine !== undefined && pid !== undefined && started !== undefined;
  return { id, untilMs, ...(isMarked ? { process: { machine, pid, started } } : {}) };
}

export class HolderRecords {
  readonly #store: Pick<ItemStore, "put" | "delete" | "getMany">;

  constructor(store: Pick<ItemStore, "put" | "delete" | "getMany">) {
    this.#store = store;
  }

  /** Writes the record of this process; a repetition does no harm. */
  async write(record: HolderRecord, timeoutMs?: number): Promise<void> {
    await this.#store.put(encodeHolder(record), undefined, defined({ timeoutMs }));
  }

  /** Removes the record of a process that holds nothing any more. */
  async remove(id: string): Promise<void> {
    await this.#store.delete(holderKey(id));
  }

  /** Reads records, in the order of the ids. */
  async read(ids: readonly string[], timeoutMs?: number): Promise<(HolderRecord | undefined)[]> {
    const options = { consistent: true, ...defined({ timeoutMs }) };
    const items = await this.#store.getMany(ids.map(holderKey), options);
    return items.map(decodeHolder);
  }
}
