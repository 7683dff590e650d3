/** Limits as attributes of a config item: `l_{name}_cp|ra|rp`, in whole tokens and seconds. */

import { InfrastructureError } from "../../domain/errors/errors.ts";
import type { OnUnavailable } from "../../domain/errors/unavailability.ts";
import type { UnsupportedLimit } from "../../domain/errors/unsupported-limit.ts";
import { Limit } from "../../domain/limit.ts";
import { flagAt, type Item, numberAt, textAt } from "../../storage/item.ts";
import { sessionQuotas, unsupportedInConfig } from "../python-attributes.ts";

const PREFIX = "l_";
/** Session quotas of the Python library. */
const SESSION_PREFIX = "w_";
const CAPACITY_SUFFIX = "_cp";
const LIMIT_SUFFIXES = ["cp", "ra", "rp", "soft"] as const;

export function encodeLimits(limits: readonly Limit[]): Record<string, number | true> {
  const attributes: Record<string, number | true> = {};
  for (const limit of limits) {
    attributes[`${PREFIX}${limit.name}_cp`] = limit.capacity;
    attributes[`${PREFIX}${limit.name}_ra`] = limit.refillAmount;
    attributes[`${PREFIX}${limit.name}_rp`] = limit.refillPeriodSeconds;
    if (limit.soft) attributes[`${PREFIX}${limit.name}_soft`] = true;
  }
  return attributes;
}

/**
 * Returns the limits of a config item sorted by name, so that the order does not depend on the
 * store. An invalid stored limit is not an error of the caller's input.
 */
export function decodeLimits(item: Item | undefined): readonly Limit[] {
  if (item === undefined) return [];
  const names = limitNames(item).filter((name) => unsupportedInConfig(item, name) === undefined);
  return names.map((name) => {
    try {
      return Limit.custom({
        name,
        capacity: numberAt(item, `${PREFIX}${name}_cp`) ?? 0,
        refillAmount: numberAt(item, `${PREFIX}${name}_ra`) ?? 0,
        refillPeriodSeconds: numberAt(item, `${PREFIX}${name}_rp`) ?? 0,
        soft: flagAt(item, `${PREFIX}${name}_soft`),
      });
    } catch (cause) {
      throw new InfrastructureError(
        `Stored limit "${name}" at ${item.PK} ${item.SK} is invalid: ` +
          `${(cause as Error).message}. Overwrite or delete the limits there`,
        { cause },
      );
    }
  });
}

/** Returns the limits of a config item that only the Python library can enforce, by name. */
export function unsupportedLimits(item: Item | undefined): readonly UnsupportedLimit[] {
  if (item === undefined) return [];
  const limits = limitNames(item).flatMap((name): UnsupportedLimit[] => {
    const kind = unsupportedInConfig(item, name);
    return kind === undefined ? [] : [{ name, kind }];
  });
  const sessions = sessionQuotas(item).map((name) => ({ name, kind: "session quota" as const }));
  return [...limits, ...sessions].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Whether a limit is soft, of those that are stored or of those that replace them. */
export function touchesSoft(item: Item | undefined, limits: readonly Limit[]): boolean {
  if (limits.some(({ soft }) => soft)) return true;
  return limitNames(item).some((name) => flagAt(item, `${PREFIX}${name}_soft`));
}

/** Returns the names of the limits of a config item, sorted. */
export function limitNames(item: Item | undefined): string[] {
  return Object.keys(item ?? {})
    .filter((name) => name.startsWith(PREFIX) && name.endsWith(CAPACITY_SUFFIX))
    .map((name) => name.slice(PREFIX.length, -CAPACITY_SUFFIX.length))
    .sort();
}

/** Returns `onUnavailable` of the namespace's config; an unknown word counts as absent. */
export function onUnavailableIn(item: Item | undefined): OnUnavailable | undefined {
  const mode = textAt(item, "on_unavailable");
  return mode === "allow" || mode === "block" ? mode : undefined;
}

/**
 * Returns the names of all attributes that belong to limits, those of the Python library included.
 */
export function limitAttributeNames(item: Item | undefined): string[] {
  return Object.keys(item ?? {}).filter(
    (name) => name.startsWith(PREFIX) || name.startsWith(SESSION_PREFIX) || name === "sched_tz",
  );
}

/**
 * Returns the attributes that a level loses when these limits replace those that it has. Limits
 * that this version cannot express stay, and so does everything else that it does not know.
 */
export function outdatedAttributes(item: Item, limits: readonly Limit[]): string[] {
  const stays = new Set(Object.keys(encodeLimits(limits)));
  return limitNames(item)
    .filter((name) => unsupportedInConfig(item, name) === undefined)
    .flatMap((name) => LIMIT_SUFFIXES.map((suffix) => `${PREFIX}${name}_${suffix}`))
    .filter((attribute) => Object.hasOwn(item, attribute) && !stays.has(attribute));
}
