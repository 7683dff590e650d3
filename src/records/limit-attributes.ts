/** Limits as attributes of a config item: `l_{name}_cp|ra|rp`, in whole tokens and seconds. */

import { Limit } from "../domain/limit.ts";
import type { Item } from "../storage/item.ts";
import { numberAt } from "./fields.ts";

const PREFIX = "l_";
const CAPACITY_SUFFIX = "_cp";

export function encodeLimits(limits: readonly Limit[]): Record<string, number> {
  const attributes: Record<string, number> = {};
  for (const limit of limits) {
    attributes[`${PREFIX}${limit.name}_cp`] = limit.capacity;
    attributes[`${PREFIX}${limit.name}_ra`] = limit.refillAmount;
    attributes[`${PREFIX}${limit.name}_rp`] = limit.refillPeriodSeconds;
  }
  return attributes;
}

/** The limits of a config item, by name, so that the answer does not depend on the store. */
export function decodeLimits(item: Item): readonly Limit[] {
  return Object.keys(item)
    .filter((name) => name.startsWith(PREFIX) && name.endsWith(CAPACITY_SUFFIX))
    .map((name) => name.slice(PREFIX.length, -CAPACITY_SUFFIX.length))
    .sort()
    .map((name) =>
      Limit.custom({
        name,
        capacity: numberAt(item, `${PREFIX}${name}_cp`) ?? 0,
        refillAmount: numberAt(item, `${PREFIX}${name}_ra`) ?? 0,
        refillPeriodSeconds: numberAt(item, `${PREFIX}${name}_rp`) ?? 0,
      }),
    );
}

/** The names of all attributes that belong to limits. */
export function limitAttributeNames(item: Item): string[] {
  return Object.keys(item).filter((name) => name.startsWith(PREFIX));
}
