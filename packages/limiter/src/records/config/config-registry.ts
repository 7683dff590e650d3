/**
 * How many entities have limits of their own, per resource: one number attribute per resource.
 *
 * Resources are named by users, and a name may be one that the item already uses for its keys.
 * Such a name is written with a `#` before it, which no resource can have.
 */

import { type Item, type Key, numberAt, textAt, valueAt } from "../../storage/item.ts";
import type { Change, Condition, Write } from "../../storage/item-store.ts";
import { inNamespace } from "../keys.ts";

const OWN_NAME_PATTERN = /^(PK|SK|ttl|GSI[1-4][PS]K|LSI[1-5]SK)$/;
const ESCAPE = "#";

/** Returns the resources with limits of their own, sorted. */
export function resourcesIn(registry: Item | undefined): string[] {
  const resources = valueAt(registry, "resources");
  return resources instanceof Set ? [...(resources as ReadonlySet<string>)].sort() : [];
}

/** Returns the resources that are counted, sorted. */
export function registeredResources(registry: Item | undefined): string[] {
  if (registry === undefined) return [];
  return Object.keys(registry)
    .filter((name) => !OWN_NAME_PATTERN.test(name) && (numberAt(registry, name) ?? 0) > 0)
    .map((name) => (name.startsWith(ESCAPE) ? name.slice(ESCAPE.length) : name))
    .sort();
}

/**
 * Whether the limits of an entity are counted. The Python library's declarative limits are not:
 * they are in no index either, which is how they are recognised.
 */
export function isCounted(config: Item | undefined): boolean {
  return textAt(config, "GSI3PK") !== undefined;
}

/** Returns the write that counts one more entity for a resource. */
export function registration(key: Key, namespaceId: string, resource: string): Write {
  return {
    update: key,
    change: {
      add: { [attributeOf(resource)]: 1 },
      setIfAbsent: inNamespace(namespaceId, key.PK),
    },
  };
}

/** Returns the write that counts one less for each resource; `undefined` when none was counted. */
export function deregistration(
  key: Key,
  registry: Item | undefined,
  resources: readonly string[],
): Write | undefined {
  if (registry === undefined) return undefined;
  const add: Record<string, number> = {};
  const remove: string[] = [];
  const condition: Condition[number][] = [];
  for (const name of resources.map(attributeOf)) {
    const count = numberAt(registry, name);
    if (count === undefined) continue;
    condition.push({ is: "=", name, value: count });
    if (count > 1) add[name] = -1;
    else remove.push(name);
  }
  if (condition.length === 0) return undefined;
  const change: Change = { add, remove };
  return { update: key, change, condition };
}

function attributeOf(resource: string): string {
  return OWN_NAME_PATTERN.test(resource) ? ESCAPE + resource : resource;
}
