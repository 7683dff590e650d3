/**
 * What the names of the attributes of a bucket item say: which limits it has, and whether the
 * Python library has added anything. Nearly all items have the same few lists of names, so a list
 * is looked through once and recognised afterwards.
 */

import { isLimitName, RESERVED_LIMIT } from "../domain/names.ts";
import { isPythonAttribute, type SchedulingAttributes } from "./python-attributes.ts";

/** The names of the attributes of one limit. */
export interface LimitAttributes extends SchedulingAttributes {
  readonly limit: string;
  readonly tokens: string;
  readonly capacity: string;
  readonly period: string;
  readonly consumed: string;
  readonly remainder: string;
}

export interface BucketShape {
  /** The limits that have a balance; their parameters may be missing. */
  readonly limits: readonly LimitAttributes[];
  /** Whether an attribute has a name that only the Python library gives. */
  readonly hasPython: boolean;
}

const BALANCE_PATTERN = /^b_(.+)_tk$/;
/** Buckets with and without a parent, of a few kinds of entities. */
const SHAPES_MAX = 8;

interface KnownShape extends BucketShape {
  readonly names: readonly string[];
}

/** The shapes that were seen last, the newest first. */
let known: readonly KnownShape[] = [];

/** Returns the shape of an item with these names, in this order. */
export function shapeOf(names: readonly string[]): BucketShape {
  for (const shape of known) if (areSame(shape.names, names)) return shape;
  const shape = { names, limits: names.flatMap(limitOf), hasPython: names.some(isPythonAttribute) };
  known = [shape, ...known.slice(0, SHAPES_MAX - 1)];
  return shape;
}

/** Compares from the end: items that differ by a limit or a parent begin alike. */
function areSame(left: readonly string[], right: readonly string[]): boolean {
  if (left.length !== right.length) return false;
  for (let at = left.length - 1; at >= 0; at -= 1) if (left[at] !== right[at]) return false;
  return true;
}

/** Returns nothing for an attribute that is not a balance. */
function limitOf(balance: string): readonly LimitAttributes[] {
  const limit = BALANCE_PATTERN.exec(balance)?.[1];
  if (limit === undefined || !(limit === RESERVED_LIMIT || isLimitName(limit))) return [];
  return [attributesOf(limit)];
}

const knownAttributes = new Map<string, LimitAttributes>();
/** Limits have few names in practice; beyond this many all are dropped. */
const KNOWN_MAX = 1000;

/** The names of the attributes of a limit: the same texts each time, which need no new hash. */
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
  };
  if (knownAttributes.size >= KNOWN_MAX) knownAttributes.clear();
  knownAttributes.set(limit, names);
  return names;
}
