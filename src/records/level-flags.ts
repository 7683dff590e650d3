/** Flags of config levels: whether a resource is switched off or bypassed, whether it cascades. */

import type { Item, Value } from "../storage/item.ts";
import type { Write } from "../storage/item-store.ts";
import { unchanged } from "./config-change.ts";
import { type ConfigLevel, unlisting } from "./config-level.ts";
import { valueAt } from "./fields.ts";
import { inNamespace } from "./keys.ts";

/** Writes a flag into the item of its level, which is made and registered where it is missing. */
export function setFlag(
  namespaceId: string,
  level: ConfigLevel,
  item: Item | undefined,
  name: string,
  value: Value,
): readonly Write[] {
  const { key, attributes } = level;
  const set = { ...inNamespace(namespaceId, key.PK), ...attributes, [name]: value };
  return [{ update: key, change: { set }, condition: unchanged(item) }, ...level.register(item)];
}

/** Removes a flag; an item that says nothing else goes with it. */
export function clearFlag(
  level: ConfigLevel,
  item: Item,
  registry: Item | undefined,
  name: string,
): readonly Write[] {
  const key = { PK: item.PK, SK: item.SK };
  const condition = unchanged(item);
  const write: Write = saysMore(item, name)
    ? { update: key, change: { remove: [name] }, condition }
    : { delete: key, condition };
  return unlisting(level, write, item, registry);
}

const IDENTITY = ["PK", "SK", "entity_id", "resource", "config_version"];

/** Whether an item has anything besides its keys and a flag. */
function saysMore(item: Item, flag: string): boolean {
  return Object.keys(item).some(
    (name) =>
      name !== flag &&
      !IDENTITY.includes(name) &&
      !name.startsWith("GSI") &&
      valueAt(item, name) !== undefined,
  );
}
