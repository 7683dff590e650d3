/**
 * Limits with periods that a bucket does not have any more, or has as another kind: one attribute
 * each, until the period ends. If such a limit comes back before, it goes on with its balance.
 */

import type { Rate } from "../../../core/bucket.ts";
import type { PeriodRule } from "../../../core/period-rule.ts";
import type { StoredLimit } from "../../../records/bucket-item.ts";
import { PAUSED } from "../../../records/bucket-shape.ts";
import {
  levelAttributes,
  ruleAttributes,
  type StoredPeriod,
} from "../../../records/period-attributes.ts";
import type { Value } from "../../../storage/item.ts";
import { kindOf } from "../../config-match.ts";
import {
  type Allowance,
  addedTo,
  carriedInto,
  levelIn,
  type PeriodLevel,
  unusedLevel,
  withAllowance,
} from "../../periods.ts";
import { ruleOf, ruleText } from "../../rule-text.ts";
import type { BucketRules } from "../table-traits.ts";
import { allowanceAt } from "./period-plan.ts";
import type { SeenBucket } from "./seen-bucket.ts";
import type { WritePlan } from "./write-plan.ts";

const TEXT = /^(-?\d+) (\d+) (-?\d+) (-?\d+) (\d+) (.+)$/;

/** Ends the name of a session's attribute: a quota of the same name may wait next to it. */
const OF_SESSION = "#session";

/** A limit that was stopped inside its period. */
export interface PausedLimit {
  readonly limitName: string;
  readonly rate: Rate;
  readonly level: PeriodLevel;
  readonly toppedUpMilli: number;
}

/** The limits that wait in a bucket, by the names of their attributes; absent: none. */
export type PausedLimits = ReadonlyMap<string, PausedLimit> | undefined;

/** Returns the name of the attribute of a limit. */
export function pausedName(limitName: string, { rule }: Rate): string {
  return `${PAUSED}${limitName}${rule?.kind === "session" ? OF_SESSION : ""}`;
}

/** Returns the text of a limit that stops; `undefined` when its period is over. */
export function pausedText(
  { tokensMilli, rate, period }: StoredLimit,
  nowMs: number,
): string | undefined {
  if (period === undefined || rate.rule === undefined || nowMs >= period.endMs) return undefined;
  return textOf(tokensMilli, period, rate);
}

function textOf(
  tokensMilli: number,
  { endMs, leftMilli, toppedUpMilli }: Omit<StoredPeriod, "isStored">,
  { capacityMilli, rule }: Rate,
): string {
  const numbers = [tokensMilli, endMs, leftMilli, toppedUpMilli, capacityMilli];
  return `${numbers.join(" ")} ${ruleText(rule as PeriodRule)}`;
}

/** Returns the limit of that kind that waits in a bucket; none when its period is over. */
export function pausedOf(
  { paused }: SeenBucket,
  limitName: string,
  wanted: Rate,
  nowMs: number,
): PausedLimit | undefined {
  const found = paused?.get(pausedName(limitName, wanted));
  if (found === undefined || nowMs >= found.level.endMs) return undefined;
  return kindOf(found.rate) === kindOf(wanted) ? found : undefined;
}

/**
 * Returns the limits that wait in the new shards of a split. The old one keeps all that is left of
 * them, because nothing can be moved of what may come back.
 */
export function pausedAside(paused: PausedLimits): PausedLimits {
  if (paused === undefined) return undefined;
  return new Map(
    [...paused].map(([name, limit]) => {
      const level = { ...limit.level, tokensMilli: 0, leftMilli: 0 };
      return [name, { ...limit, level, toppedUpMilli: 0 }];
    }),
  );
}

/** Returns the attributes of limits that wait. */
export function pausedAttributes(paused: PausedLimits): Record<string, string> {
  const entries = [...(paused ?? [])].map(([name, { rate, level, toppedUpMilli }]) => {
    const { tokensMilli, endMs, leftMilli } = level;
    return [name, textOf(tokensMilli, { endMs, leftMilli, toppedUpMilli }, rate)] as const;
  });
  return Object.fromEntries(entries);
}

/**
 * Reads the limits that wait, by the names of their attributes; those that cannot be read count as
 * absent.
 */
export function pausedIn(item: Readonly<Record<string, unknown>>): PausedLimits {
  let found: Map<string, PausedLimit> | undefined;
  for (const name in item) {
    if (!name.startsWith(PAUSED)) continue;
    const limitName = name.slice(PAUSED.length).replace(OF_SESSION, "");
    const limit = readPaused(limitName, item[name]);
    if (limit === undefined || pausedName(limitName, limit.rate) !== name) continue;
    found ??= new Map();
    found.set(name, limit);
  }
  return found;
}

function readPaused(limitName: string, text: unknown): PausedLimit | undefined {
  const [, ...parts] = TEXT.exec(String(text)) ?? [];
  const rule = parts.at(-1);
  const numbers = parts.slice(0, -1).map(Number);
  if (rule === undefined || !numbers.every(Number.isSafeInteger)) return undefined;
  const [tokensMilli = 0, endMs = 0, leftMilli = 0, toppedUpMilli = 0, capacityMilli = 0] = numbers;
  try {
    const rate = { capacityMilli, refillMilli: 0, periodMs: 1000, rule: ruleOf(rule) };
    // The grant of its period follows from its allowance once it is back.
    const level = { tokensMilli, endMs, grantedMilli: 0, leftMilli };
    return { limitName, rate, level, toppedUpMilli };
  } catch {
    return undefined;
  }
}

/** A limit with periods that a bucket gets. */
interface StartedLimit {
  readonly name: string;
  readonly rate: Rate;
  readonly takenMilli: number;
  readonly nowMs: number;
}

/** Returns the level of a limit that starts or goes on where it was stopped, and attributes. */
export function startPeriod(
  plan: WritePlan,
  bucket: SeenBucket,
  { name, rate, takenMilli, nowMs }: StartedLimit,
  rules: BucketRules,
): { tokensMilli: number; endMs: number; attributes: Record<string, Value> } {
  const allowance = allowanceAt(bucket, rate, rules);
  const paused = pausedOf(bucket, name, rate, nowMs);
  if (paused !== undefined) plan.remove(pausedName(name, rate));
  const level =
    paused === undefined
      ? newLevel(allowance, takenMilli, nowMs)
      : resumed(paused, allowanceAt(bucket, paused.rate, rules), allowance, nowMs);
  const { tokensMilli, endMs, leftMilli } = level;
  const { rule } = allowance;
  const toppedUpMilli = addedTo(level, allowance);
  const period = { endMs, leftMilli, toppedUpMilli, isStored: true };
  const attributes = {
    ...ruleAttributes(name, rule),
    ...levelAttributes(name, rule, period, bucket.shardCount),
  };
  return { tokensMilli, endMs, attributes };
}

/** Returns the level that a limit which comes back goes on with. */
export function resumed(
  { level, toppedUpMilli }: Pick<PausedLimit, "level" | "toppedUpMilli">,
  before: Allowance,
  after: Allowance,
  nowMs: number,
): PeriodLevel {
  const grantedMilli = before.amountMilli + carriedInto(level, before) + toppedUpMilli;
  return withAllowance({ ...level, grantedMilli }, before, after, nowMs);
}

/** Returns the level of a new limit: a session is opened by what is consumed. */
export function newLevel(allowance: Allowance, takenMilli: number, nowMs: number): PeriodLevel {
  const unused = unusedLevel(allowance, nowMs);
  return unused.endMs > 0 || takenMilli > 0 ? levelIn(unused, allowance, nowMs) : unused;
}
