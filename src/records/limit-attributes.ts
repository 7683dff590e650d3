/** Limits as attributes of a config item: `l_{name}_cp|ra|rp`, in whole tokens and seconds. */

import { InfrastructureError } from "../domain/errors.ts";
import { Limit } from "../domain/limit.ts";
import type { OnUnavailable } from "../domain/unavailability.ts";
import type { Item } from "../storage/item.ts";
import { numberAt, textAt } from "./fields.ts";

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

/**
 * The limits of a config item, by name, so that the answer does not depend on the store. What
 * cannot be a limit is no fault of whoever asks: it was stored by somebody else.
 */
export function decodeLimits(item: Item): readonly Limit[] {
  return limitNames(item).map((name) => {
    try {
      return Limit.custom({
        name,
        capacity: numberAt(item, `${PREFIX}${name}_cp`) ?? 0,
        refillAmount: numberAt(item, `${PREFIX}${name}_ra`) ?? 0,
        refillPeriodSeconds: numberAt(item, `${PREFIX}${name}_rp`) ?? 0,
      });
    } catch (cause) {
      throw new InfrastructureError(
        `The limit "${name}" that is stored at ${item.PK} ${item.SK} cannot be: ` +
          `${(cause as Error).message}. Set the limits there anew, or delete them`,
        { cause },
      );
    }
  });
}

/** The names of the limits of a config item, sorted. */
export function limitNames(item: Item): string[] {
  return Object.keys(item)
    .filter((name) => name.startsWith(PREFIX) && name.endsWith(CAPACITY_SUFFIX))
    .map((name) => name.slice(PREFIX.length, -CAPACITY_SUFFIX.length))
    .sort();
}

/** What the namespace's config says about times when the store is down; unknown words say nothing. */
export function onUnavailableIn(item: Item | undefined): OnUnavailable | undefined {
  const mode = item === undefined ? undefined : textAt(item, "on_unavailable");
  return mode === "allow" || mode === "block" ? mode : undefined;
}

/** The names of all attributes that belong to limits. */
export function limitAttributeNames(item: Item): string[] {
  return Object.keys(item).filter((name) => name.startsWith(PREFIX));
}
