/**
 * To 0.8.0: all limits of one level in one item.
 *
 * Earlier, each stored limit was an item: `#LIMIT#{limit}` of the system or a resource,
 * `#LIMIT#{resource}#{limit}` of an entity. A burst above the capacity was an attribute of its own;
 * now the capacity is the most that a bucket can hold.
 */

import { numberAt, textAt } from "@zae-limiter/limiter/records/fields.ts";
import type { Item, Key } from "@zae-limiter/limiter/storage/item.ts";
import type { Write } from "@zae-limiter/limiter/storage/item-store.ts";
import type { Migration, Rule } from "./migration.ts";
import { entityOf, isOurs, partitionOf, removal } from "./old-keys.ts";

const LIMIT_PATTERN = /^#LIMIT#(?:([^#]+)#)?([^#]+)$/;
const RESOURCE_PREFIX = "RESOURCE#";

/** The item and the attributes that a limit moves to. */
interface Target {
  readonly key: Key;
  readonly attributes: Readonly<Record<string, string | number>>;
}

const limitItems: Rule = {
  name: "stored limits",
  concerns: (item) => targetOf(item) !== undefined,
  writes: (item) => {
    const { key, attributes } = targetOf(item) as Target;
    return [
      // The limits that the item of the level already has are newer.
      { update: key, change: { setIfAbsent: { ...attributes, config_version: 1 } } },
      removal(item),
      ...listed(item),
    ];
  },
};

export const toCompositeLimits: Migration = {
  version: "0.8.0",
  description: "all stored limits of a system, a resource or an entity in one item",
  rules: [limitItems],
};

function targetOf(item: Item): Target | undefined {
  const partition = partitionOf(item.PK);
  const [, resource, last] = LIMIT_PATTERN.exec(item.SK) ?? [];
  if (last === undefined || !isOurs(partition)) return undefined;
  const name = textAt(item, "limit_name") ?? last;
  const capacity = Math.max(numberAt(item, "burst") ?? 0, numberAt(item, "capacity") ?? 0);
  const amount = numberAt(item, "refill_amount") ?? 0;
  const seconds = numberAt(item, "refill_period_seconds") ?? 0;
  if (capacity <= 0 || amount <= 0 || seconds <= 0) return undefined;
  const entityId = entityOf(partition);
  const ofEntity = entityId !== undefined && resource !== undefined;
  const ofResource = resourceOf(item);
  return {
    key: { PK: item.PK, SK: ofEntity ? `#CONFIG#${resource}` : "#CONFIG" },
    attributes: {
      [`l_${name}_cp`]: capacity,
      [`l_${name}_ra`]: amount,
      [`l_${name}_rp`]: seconds,
      ...(ofEntity ? { entity_id: entityId, resource } : {}),
      ...(ofResource === undefined ? {} : { resource: ofResource }),
    },
  };
}

/** The list of resources with limits is as old as the items of limits, but not all are in it. */
function listed(item: Item): Write[] {
  const resource = resourceOf(item);
  if (resource === undefined) return [];
  const prefix = item.PK.slice(0, -(RESOURCE_PREFIX.length + resource.length));
  const key = { PK: `${prefix}SYSTEM#`, SK: "#RESOURCES" };
  return [{ update: key, change: { addToSet: { resources: [resource] } } }];
}

function resourceOf(item: Item): string | undefined {
  const { rest } = partitionOf(item.PK);
  return rest.startsWith(RESOURCE_PREFIX) ? rest.slice(RESOURCE_PREFIX.length) : undefined;
}
