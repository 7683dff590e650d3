/** The names of a bucket's attributes: which limits they show, and those of each limit. */

import { isLimitName, RESERVED_LIMIT } from "../domain/names.ts";
import { type PeriodAttributes, periodAttributesOf } from "./period-attributes.ts";
import { isPythonAttribute, type SchedulingAttributes } from "./python-attributes.ts";
import { isEntry, slotLimitIn } from "./slot-attributes.ts";

/** The names of the attributes of one limit. */
export interface LimitAttributes extends SchedulingAttributes {
  readonly limit: string;
  readonly tokens: string;
  readonly capacity: string;
  readonly period: string;
  readonly consumed: string;
  readonly remainder: string;
  readonly periods: PeriodAttributes;
}

/**
 * The limits that the names of attributes show. Nearly all items have the same few lists of names,
 * so each list is read once and recognised afterwards.
 */
export interface BucketShape {
  /** The limits that have a balance; their parameters may be missing. */
  readonly limits: readonly LimitAttributes[];
  /** The limits of slots. */
  readonly slots: readonly string[];
  /** Whether an attribute has a name that only the Python library gives. */
  readonly hasPython: boolean;
  /** Whether an attribute is of a limit that waits for the end of its period. */
  readonly hasPaused: boolean;
}

/** The names of attributes of limits that wait for the end of their period begin so. */
export const PAUSED = "pq_";
const BALANCE_PATTERN = /^b_(.+)_tk$/;
/** Buckets with and without a parent, of a few kinds of entities. */
const SHAPES_MAX = 8;

interface KnownShape extends BucketShape {
  readonly names: readonly string[];
}

/** The shapes that were seen last, the newest first. */
let knownShapes: readonly KnownShape[] = [];

/** Returns the shape of an item with these names, in this order. */
export function shapeOf(names: readonly string[]): BucketShape {
  return knownShape(names) ?? shapeWithout(names);
}

function knownShape(names: readonly string[]): BucketShape | undefined {
  for (const shape of knownShapes) if (areSame(shape.names, names)) return shape;
  return undefined;
}

/** Returns the shape without the entries of slots, which come and go with those that hold them. */
function shapeWithout(all: readonly string[]): BucketShape {
  const names = all.filter((name) => !isEntry(name));
  const known = names.length === all.length ? undefined : knownShape(names);
  if (known !== undefined) return known;
  const shape = {
    names,
    limits: names.flatMap(limitOf),
    slots: names.flatMap((name) => slotLimitIn(name) ?? []),
    hasPython: names.some(isPythonAttribute),
    hasPaused: names.some((name) => name.startsWith(PAUSED)),
  };
  knownShapes = [shape, ...knownShapes.slice(0, SHAPES_MAX - 1)];
  return shape;
}

/** Compares lists from the end: items that differ by a limit or a parent begin alike. */
function areSame(left: readonly string[], right: readonly string[]): boolean {
  if (left.length !== right.length) return false;
  for (let at = left.length - 1; at >= 0; at -= 1) if (left[at] !== right[at]) return false;
  return true;
}

/** Returns the limit of a balance; nothing for any other attribute. */
function limitOf(balance: string): readonly LimitAttributes[] {
  const limit = BALANCE_PATTERN.exec(balance)?.[1];
  if (limit === undefined || !(limit === RESERVED_LIMIT || isLimitName(limit))) return [];
  return [attributesOf(limit)];
}

const knownAttributes = new Map<string, LimitAttributes>();
/** Limits have few names in practice; beyond this many all are dropped. */
const KNOWN_MAX = 1000;

/** Returns names of attributes of a limit: each time the same texts, which need no new hash. */
export function attributesOf(limit: string): LimitAttributes {
  const known = knownAttributes.get(limit);
  if (known !== undefined) return known;
  const names: LimitAttributes = {
    limit,
    tokens: `b_${limit}_tk`,
    capacity: `b_${limit}_cp`,
    refill: `b_${limit}_ra`,
    period: `b_${limit}_rp`,
    consumed: `b_${limit}_tc`,
    remainder: `b_${limit}_rr`,
    sessionSeconds: `b_${limit}_rsa`,
    resets: `b_${limit}_rsched`,
    windows: `b_${limit}_sched`,
    periods: periodAttributesOf(limit),
  };
  if (knownAttributes.size >= KNOWN_MAX) knownAttributes.clear();
  knownAttributes.set(limit, names);
  return names;
}
