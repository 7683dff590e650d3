/**
 * Limits with periods that a bucket does not have any more, or has as another kind: one attribute
 * each, until the period ends. If such a limit comes back before, it goes on with its balance.
 */

import type { Rate } from "../../../core/bucket.ts";
import type { StoredLimit } from "../../../records/bucket-item.ts";
import { PAUSED } from "../../../records/bucket-shape.ts";
import { levelAttributes, ruleAttributes } from "../../../records/period-attributes.ts";
import type { Value } from "../../../storage/item.ts";
import { kindOf } from "../../config-match.ts";
import {
  type Allowance,
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

/** A limit that was stopped inside its period. */
export interface PausedLimit {
  readonly rate: Rate;
  readonly level: PeriodLevel;
  readonly toppedUpMilli: number;
}

/** Returns the name of the attribute of a limit. */
export function pausedName(limitName: string): string {
  return `${PAUSED}${limitName}`;
}

/** Returns the text of a limit that stops; `undefined` when its period is over. */
export function pausedText(
  { tokensMilli, rate, period }: StoredLimit,
  nowMs: number,
): string | undefined {
  if (period === undefined || rate.rule === undefined || nowMs >= period.endMs) return undefined;
  const { endMs, leftMilli, toppedUpMilli } = period;
  const numbers = [tokensMilli, endMs, leftMilli, toppedUpMilli, rate.capacityMilli];
  return `${numbers.join(" ")} ${ruleText(rate.rule)}`;
}

/** Returns the limit of that kind that waits in a bucket; none when its period is over. */
export function pausedOf(
  { paused }: SeenBucket,
  limitName: string,
  wanted: Rate,
  nowMs: number,
): PausedLimit | undefined {
  const found = paused?.get(limitName);
  if (found === undefined || nowMs >= found.level.endMs) return undefined;
  return kindOf(found.rate) === kindOf(wanted) ? found : undefined;
}

/** Reads the attributes of limits that wait; those that cannot be read count as absent. */
export function pausedIn(
  item: Readonly<Record<string, unknown>>,
): ReadonlyMap<string, PausedLimit> | undefined {
  let found: Map<string, PausedLimit> | undefined;
  for (const name in item) {
    if (!name.startsWith(PAUSED)) continue;
    const limit = readPaused(item[name]);
    if (limit === undefined) continue;
    found ??= new Map();
    found.set(name.slice(PAUSED.length), limit);
  }
  return found;
}

function readPaused(text: unknown): PausedLimit | undefined {
  const [, ...parts] = TEXT.exec(String(text)) ?? [];
  const rule = parts.at(-1);
  const numbers = parts.slice(0, -1).map(Number);
  if (rule === undefined || !numbers.every(Number.isSafeInteger)) return undefined;
  const [tokensMilli = 0, endMs = 0, leftMilli = 0, toppedUpMilli = 0, capacityMilli = 0] = numbers;
  try {
    const rate = { capacityMilli, refillMilli: 0, periodMs: 1000, rule: ruleOf(rule) };
    // What it has granted follows from its allowance once it is back.
    return { rate, level: { tokensMilli, endMs, grantedMilli: 0, leftMilli }, toppedUpMilli };
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
  if (paused !== undefined) plan.remove(pausedName(name));
  const { tokensMilli, endMs, leftMilli } =
    paused === undefined
      ? newLevel(allowance, takenMilli, nowMs)
      : withAllowance(paused.level, allowanceAt(bucket, paused.rate, rules), allowance, nowMs);
  const { rule } = allowance;
  const toppedUpMilli = paused?.toppedUpMilli ?? 0;
  const period = { endMs, leftMilli, toppedUpMilli, isStored: true };
  const attributes = {
    ...ruleAttributes(name, rule),
    ...levelAttributes(name, rule, period, bucket.shardCount),
  };
  return { tokensMilli, endMs, attributes };
}

/** Returns the level of a new limit: a session is opened by what is consumed. */
export function newLevel(allowance: Allowance, takenMilli: number, nowMs: number): PeriodLevel {
  const unused = unusedLevel(allowance, nowMs);
  return unused.endMs > 0 || takenMilli > 0 ? levelIn(unused, allowance, nowMs) : unused;
}
