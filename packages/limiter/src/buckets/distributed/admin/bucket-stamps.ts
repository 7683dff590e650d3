/**
 * Stamps on live buckets: what the levels say about them, for clients of the Python library, which
 * follow the bucket and not the config. Ours follow the config, so a stamp that is missing or old
 * changes nothing for them.
 */

import { softStamp } from "../../../records/python-attributes.ts";
import type { RecordContext } from "../../../records/record-context.ts";
import type { Item, Value } from "../../../storage/item.ts";
import type { Change, Condition, Test } from "../../../storage/item-store.ts";
import { type Link, linkChange, NO_POLICY } from "../../leg.ts";
import type { FlagStamps, OwnerStamps, PythonStamps, StampScope } from "../../python-stamps.ts";
import { decoded } from "../plan/seen-bucket.ts";
import { BUCKET_EXISTS } from "../plan/write-plan.ts";
import type { BucketItems } from "../state/bucket-items.ts";
import type { CachedStates } from "../state/cached-states.ts";

const PASSES = 2;

/** How long a stamp that grants more is in force; Python's clients renew it from the config. */
const STAMP_MS = 60_000;
const STAMP_MS_MIN = 48_000;

/** Collects the stamps of one bucket that differ. */
class StampChange {
  readonly set: Record<string, Value> = {};
  readonly remove: string[] = [];
  readonly #item: Item;

  constructor(item: Item) {
    this.#item = item;
  }

  get isEmpty(): boolean {
    return Object.keys(this.set).length === 0 && this.remove.length === 0;
  }

  put(name: string, value: Value | undefined): void {
    if (value === undefined) {
      if (Object.hasOwn(this.#item, name)) this.remove.push(name);
    } else if (this.#item[name] !== value) {
      this.set[name] = value;
    }
  }
}

/** Returns the write that makes a bucket carry the stamps; `undefined` when it does already. */
function stampWrite(
  item: Item,
  { state, owner, soft = new Map() }: FlagStamps,
  nowMs: number,
): { readonly change: Change; readonly condition: Condition } | undefined {
  const change = new StampChange(item);
  const condition: Test[] = [{ is: "exists", name: "rf" }];
  if (state !== undefined) {
    change.put("disabled", state === "disabled" ? true : undefined);
    change.put("bypass", state === "bypass" ? bypassUntil(item, nowMs) : undefined);
  }
  for (const [limitName, isSoft] of soft) putSoft(change, item, limitName, isSoft, nowMs);
  if (owner !== undefined) {
    const { generation, incarnation } = owner;
    const isSame = item.pinc === incarnation;
    // A stamp of a later move stays.
    if (isSame && typeof item.pgen === "number" && item.pgen > generation) return undefined;
    if (isSame) condition.push({ is: "<=", name: "pgen", value: generation, orAbsent: true });
    putOwner(change, item, owner);
  }
  return change.isEmpty ? undefined : { change, condition };
}

/**
 * Stamps a limit as soft. Python's clients renew an expired stamp; they only miss an absent one.
 */
function putSoft(
  change: StampChange,
  item: Item,
  limitName: string,
  isSoft: boolean,
  nowMs: number,
): void {
  const name = softStamp(limitName);
  if (!Object.hasOwn(item, `b_${limitName}_tk`)) return;
  if (!isSoft) change.put(name, undefined);
  else if (item[name] === undefined) change.put(name, nowMs + STAMP_MS);
}

function putOwner(
  change: StampChange,
  item: Item,
  { link, generation, incarnation, isStamped }: OwnerStamps,
): void {
  change.put("cascade", link.cascade);
  change.put("parent_id", link.parentId);
  if (isStamped || Object.hasOwn(item, "pgen")) {
    change.put("pgen", generation);
    change.put("pinc", incarnation);
  }
}

function bypassUntil(item: Item, nowMs: number): number {
  const untilMs = typeof item.bypass === "number" ? item.bypass : 0;
  return untilMs < nowMs + STAMP_MS_MIN ? nowMs + STAMP_MS : untilMs;
}

export class BucketStamps implements PythonStamps {
  readonly #context: RecordContext;
  readonly #items: BucketItems;
  readonly #states: CachedStates;
  readonly #onRelinked: () => void;

  /** `onRelinked` is called when links of live buckets may have changed. */
  constructor(
    context: RecordContext,
    items: BucketItems,
    states: CachedStates,
    onRelinked: () => void,
  ) {
    this.#context = context;
    this.#items = items;
    this.#states = states;
    this.#onRelinked = onRelinked;
  }

  /** Visits the buckets twice: one that is created meanwhile may miss in the index at first. */
  async apply(scope: StampScope): Promise<void> {
    for (let pass = 0; pass < PASSES; pass += 1) {
      for await (const item of this.#items.itemsOf(scope.entityId, scope.resource)) {
        if (item !== undefined && item.rf !== undefined) await this.#stamp(item, scope);
      }
    }
    this.#onRelinked();
  }

  async relinkUnstamped(entityId: string, link: Link): Promise<boolean> {
    let isComplete = true;
    for (const key of await this.#items.allKeysOf(entityId)) {
      const condition = [BUCKET_EXISTS, NO_POLICY];
      const { ok, item } = await this.#context.store.update(key, linkChange(link), condition);
      this.#states.forget(key.PK);
      if (!ok && decoded(item) !== undefined) isComplete = false;
    }
    this.#onRelinked();
    return isComplete;
  }

  async #stamp(item: Item, { stampsOf, onStamped }: StampScope): Promise<void> {
    const { store, clock } = this.#context;
    const { PK, SK, entity_id: entityId, resource } = item;
    const stamps = await stampsOf(String(entityId), String(resource));
    const write = stampWrite(item, stamps, clock());
    if (write === undefined) return;
    const { ok } = await store.update({ PK, SK }, write.change, write.condition);
    this.#states.forget(PK);
    if (ok) onStamped();
  }
}
