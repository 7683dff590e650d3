/**
 * Limits as attributes of a config item, in whole tokens and seconds: `l_{name}_cp|ra|rp`, and
 * `w_{name}_cp|ra|rp` for sessions; slots have `s_{name}_cp` alone. `rule-attributes.ts` has the
 * rules of quotas and sessions.
 */

import { InfrastructureError } from "../../domain/errors/errors.ts";
import type { OnUnavailable } from "../../domain/errors/unavailability.ts";
import type { UnsupportedLimit } from "../../domain/errors/unsupported-limit.ts";
import { Limit } from "../../domain/limit.ts";
import type { LimitKind } from "../../domain/limit-spec.ts";
import { flagAt, type Item, numberAt, textAt } from "../../storage/item.ts";
import { ZONE } from "../period-attributes.ts";
import {
  decodeRule,
  encodeRule,
  LIMIT_SUFFIXES,
  prefixOf,
  RATE_PREFIX,
  type ReadRule,
  SESSION_PREFIX,
  SLOTS_PREFIX,
  zoneOf,
} from "./rule-attributes.ts";

const CAPACITY_SUFFIX = "_cp";
const PREFIXES = [RATE_PREFIX, SESSION_PREFIX, SLOTS_PREFIX] as const;

/**
 * Returns the attributes of limits. `before`: the item that they are written to, whose zone stays
 * while a limit there needs it that this version cannot express.
 */
export function encodeLimits(
  limits: readonly Limit[],
  before?: Item,
): Record<string, number | string | true> {
  const attributes: Record<string, number | string | true> = {};
  const isZoneKept = unsupportedLimits(before).length > 0;
  const zone = isZoneKept ? textAt(before, ZONE) : zoneOf(limits);
  for (const limit of limits) {
    const prefix = prefixOf(limit);
    attributes[`${prefix}${limit.name}_cp`] = limit.capacity;
    if (limit.soft) attributes[`${prefix}${limit.name}_soft`] = true;
    if (limit.kind === "concurrency") continue;
    attributes[`${prefix}${limit.name}_ra`] = limit.refillAmount;
    attributes[`${prefix}${limit.name}_rp`] = limit.refillPeriodSeconds;
    if (limit.alerts.length > 0) attributes[`${prefix}${limit.name}_alerts`] = limit.alerts.join();
    Object.assign(attributes, encodeRule(limit, zone));
  }
  if (zone !== undefined && zoneOf(limits) !== undefined) attributes[ZONE] = zone;
  return attributes;
}

/**
 * Returns the limits of a config item sorted by name, so that the order does not depend on the
 * store. An invalid stored limit is not an error of the caller's input.
 */
export function decodeLimits(item: Item | undefined): readonly Limit[] {
  return namesIn(item).flatMap((found): readonly Limit[] => {
    const read = ruleIn(item as Item, found);
    return typeof read === "string" ? [] : [limitIn(item as Item, found, read)];
  });
}

/** Returns the limits of a config item that only the Python library can enforce, by name. */
export function unsupportedLimits(item: Item | undefined): readonly UnsupportedLimit[] {
  return namesIn(item).flatMap((found): readonly UnsupportedLimit[] => {
    const read = ruleIn(item as Item, found);
    return typeof read === "string" ? [{ name: found.name, kind: read }] : [];
  });
}

/** A limit of an item: its name, and the prefix of its attributes. */
interface FoundLimit {
  readonly prefix: string;
  readonly name: string;
}

/** Returns the rule of a limit, or its kind when this version cannot enforce it. */
function ruleIn(item: Item, { prefix, name }: FoundLimit): ReadRule {
  return decodeRule(item, prefix, name);
}

function limitIn(
  item: Item,
  { prefix, name }: FoundLimit,
  { rule, schedule }: Exclude<ReadRule, string>,
): Limit {
  // Python's provisioner stores the period of a rate, 60 seconds, for quotas and sessions as well.
  const areSlots = prefix === SLOTS_PREFIX;
  const isRate = rule === undefined && !areSlots;
  try {
    return Limit.custom({
      name,
      capacity: numberAt(item, `${prefix}${name}_cp`) ?? 0,
      refillAmount: numberAt(item, `${prefix}${name}_ra`) ?? 0,
      refillPeriodSeconds: isRate ? (numberAt(item, `${prefix}${name}_rp`) ?? 0) : 1,
      soft: flagAt(item, `${prefix}${name}_soft`),
      rule,
      schedule,
      ...(areSlots ? { kind: "concurrency" } : {}),
      alerts: textAt(item, `${prefix}${name}_alerts`)?.split(",").map(Number),
    });
  } catch (cause) {
    throw new InfrastructureError(
      `Stored limit "${name}" at ${item.PK} ${item.SK} is invalid: ` +
        `${(cause as Error).message}. Overwrite or delete the limits there`,
      { cause },
    );
  }
}

function namesIn(item: Item | undefined): FoundLimit[] {
  const found: FoundLimit[] = [];
  for (const attribute of Object.keys(item ?? {})) {
    if (!attribute.endsWith(CAPACITY_SUFFIX)) continue;
    for (const prefix of PREFIXES) {
      if (!attribute.startsWith(prefix)) continue;
      found.push({ prefix, name: attribute.slice(prefix.length, -CAPACITY_SUFFIX.length) });
    }
  }
  return found.sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Whether a limit is soft, of those that are stored or of those that replace them. */
export function touchesSoft(item: Item | undefined, limits: readonly Limit[]): boolean {
  if (limits.some(({ soft }) => soft)) return true;
  return namesIn(item).some(({ prefix, name }) => flagAt(item, `${prefix}${name}_soft`));
}

/** Returns the names of the limits of a config item, sorted. */
export function limitNames(item: Item | undefined): string[] {
  return namesIn(item).map(({ name }) => name);
}

/** Returns the kinds of the limits of a config item that this version can enforce, by name. */
export function limitKinds(item: Item): ReadonlyMap<string, LimitKind> {
  return new Map(
    namesIn(item).flatMap((found): [string, LimitKind][] => {
      const read = ruleIn(item, found);
      if (typeof read === "string") return [];
      const kind = found.prefix === SLOTS_PREFIX ? "concurrency" : "rate";
      return [[found.name, read.rule?.kind ?? kind]];
    }),
  );
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
    (name) => name === ZONE || PREFIXES.some((prefix) => name.startsWith(prefix)),
  );
}

/**
 * Returns the attributes that a level loses when these limits replace those that it has. Limits
 * that this version cannot express stay, and so does everything else that it does not know.
 */
export function outdatedAttributes(item: Item, limits: readonly Limit[]): string[] {
  const stays = new Set(Object.keys(encodeLimits(limits, item)));
  const replaced = namesIn(item).filter((found) => typeof ruleIn(item, found) !== "string");
  const isZoneKept = replaced.length < namesIn(item).length;
  return [
    ...replaced.flatMap(({ prefix, name }) =>
      LIMIT_SUFFIXES.map((suffix) => `${prefix}${name}_${suffix}`),
    ),
    ...(isZoneKept ? [] : [ZONE]),
  ].filter((attribute) => Object.hasOwn(item, attribute) && !stays.has(attribute));
}
