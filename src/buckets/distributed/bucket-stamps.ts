/**
 * Stamps on live buckets: what the levels say about them, for clients of the Python library, which
 * follow the bucket and not the config. Ours follow the config, so a stamp that is missing or old
 * changes nothing for them.
 */

import type { RecordContext } from "../../records/record-context.ts";
import type { Item, Value } from "../../storage/item.ts";
import type { Change } from "../../storage/item-store.ts";
import type { FlagStamps, StampScope } from "../bucket-store.ts";
import type { BucketItems } from "./bucket-items.ts";
import type { CachedStates } from "./cached-states.ts";

const PASSES = 2;

/** As long as a bypass is stamped for; Python's clients renew it when they read the config. */
const BYPASS_MS = 60_000;
const BYPASS_MS_MIN = 48_000;

/** Returns the change that makes a bucket carry what the levels say; `undefined` when it does already. */
function stampChange(item: Item, stamps: FlagStamps, nowMs: number): Change | undefined {
  const set: Record<string, Value> = {};
  const remove: string[] = [];
  const has = (name: string) => Object.hasOwn(item, name);
  if (stamps.state === "disabled") {
    if (item.disabled !== true) set.disabled = true;
  } else if (has("disabled")) {
    remove.push("disabled");
  }
  if (stamps.state === "bypass") {
    const untilMs = typeof item.bypass === "number" ? item.bypass : 0;
    if (untilMs < nowMs + BYPASS_MS_MIN) set.bypass = nowMs + BYPASS_MS;
  } else if (has("bypass")) {
    remove.push("bypass");
  }
  const isSame = Object.keys(set).length === 0 && remove.length === 0;
  return isSame ? undefined : { set, remove };
}

export class BucketStamps {
  readonly #context: RecordContext;
  readonly #items: BucketItems;
  readonly #states: CachedStates;

  constructor(context: RecordContext, items: BucketItems, states: CachedStates) {
    this.#context = context;
    this.#items = items;
    this.#states = states;
  }

  /** Twice: a bucket that is made meanwhile may be missing in the index at first. */
  async apply(scope: StampScope): Promise<void> {
    for (let pass = 0; pass < PASSES; pass += 1) {
      for await (const item of this.#items.itemsOf(scope.entityId, scope.resource)) {
        if (item !== undefined && item.rf !== undefined) await this.#stamp(item, scope);
      }
    }
  }

  async #stamp(item: Item, { stampsOf, onStamped }: StampScope): Promise<void> {
    const { store, clock } = this.#context;
    const { PK, SK, entity_id: entityId, resource } = item;
    const stamps = await stampsOf(String(entityId), String(resource));
    const change = stampChange(item, stamps, clock());
    if (change === undefined) return;
    const { ok } = await store.update({ PK, SK }, change, [{ is: "exists", name: "rf" }]);
    this.#states.forget(PK);
    if (ok) onStamped();
  }
}
