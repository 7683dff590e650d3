/**
 * How the limits of a config item are replaced and deleted. The Python library keeps flags,
 * schedules and quotas there that this version does not know: they stay.
 */

import { ValidationError } from "../../domain/errors/errors.ts";
import { refuseUnsupported } from "../../domain/errors/unsupported-limit.ts";
import type { Limit } from "../../domain/limit.ts";
import { type Item, type Key, keyOf, type Value, valueAt } from "../../storage/item.ts";
import type { Write } from "../../storage/item-store.ts";
import { inNamespace } from "../keys.ts";
import { cascadeIn, disabledIn } from "../python-attributes.ts";
import { CONFIG_VERSION, configVersion, unchanged } from "./config-change.ts";
import {
  encodeLimits,
  limitAttributeNames,
  limitKinds,
  outdatedAttributes,
  unsupportedLimits,
} from "./limit-attributes.ts";

/** Replaces the limits of a config item; `attributes` are what else it has at this level. */
export function replaceLimits(
  namespaceId: string,
  key: Key,
  before: Item | undefined,
  limits: readonly Limit[],
  attributes: Readonly<Record<string, Value>>,
): Write {
  return {
    update: key,
    change: {
      set: {
        ...inNamespace(namespaceId, key.PK),
        ...attributes,
        [CONFIG_VERSION]: configVersion(before) + 1,
        ...encodeLimits(limits, before),
      },
      remove: replacedAttributes(before, limits),
    },
    condition: unchanged(before),
  };
}

/**
 * Returns the attributes that a level loses when these limits replace those that it has. Refuses to
 * replace a limit that this version cannot express.
 */
export function replacedAttributes(before: Item | undefined, limits: readonly Limit[]): string[] {
  if (before === undefined) return [];
  const names = limits.map(({ name }) => name);
  refuseUnsupported(names, unsupportedLimits(before), `${before.PK} ${before.SK}`);
  return outdatedAttributes(before, limits);
}

/** Refuses to replace a stored limit by one of another kind, unless the caller says so. */
export function refuseOtherKinds(
  before: Item | undefined,
  limits: readonly Limit[],
  replaceKind = false,
): void {
  if (before === undefined || replaceKind) return;
  const kinds = limitKinds(before);
  for (const limit of limits) {
    const stored = kinds.get(limit.name);
    if (stored === undefined || stored === limit.kind) continue;
    throw new ValidationError(
      "limits",
      String(limit),
      `the stored limit "${limit.name}" is a ${stored}, and ${limit} is a ${limit.kind}; ` +
        "say replaceKind (--replace-kind, replace_kind: true) to replace it",
    );
  }
}

/** Whether an item has these attributes already, and none of those that would go. */
export function saysAlready(
  item: Item | undefined,
  set: Readonly<Record<string, Value>>,
  remove: readonly string[],
): boolean {
  if (item === undefined || remove.length > 0) return false;
  return Object.entries(set).every(([name, value]) => valueAt(item, name) === value);
}

/** Whether a level has limits, those of the Python library included. */
export function hasLimits(item: Item | undefined): boolean {
  return limitAttributeNames(item).length > 0;
}

/** Deletes a config item, or only its limits where the level also has flags. */
export function deleteLimits(item: Item): Write {
  const key = keyOf(item);
  const condition = unchanged(item);
  if (!hasFlags(item)) return { delete: key, condition };
  const remove = [...limitAttributeNames(item), CONFIG_VERSION];
  return { update: key, change: { remove }, condition };
}

/** Whether a level says more than limits: that a resource is switched off, or cascades. */
function hasFlags(item: Item): boolean {
  return disabledIn(item) !== undefined || cascadeIn(item) !== undefined;
}

/** Whether a level has flags and no limits, so that there is nothing to delete. */
export function isFlagsOnly(item: Item): boolean {
  return hasFlags(item) && !hasLimits(item);
}
