/**
 * How a declared limit comes back, where it does not refill evenly: `quota` or `session_seconds`,
 * the fields of the Python library, `reset_schedule` and `reset_after_seconds`, or `concurrent`.
 */

import { defined } from "../base/defined.ts";
import type { PeriodRule } from "../core/period-rule.ts";
import { checkFields, show } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { Limit } from "../domain/limit.ts";
import { quotaJson, ruleOfJson } from "../domain/limit-json.ts";
import { NO_REFILL } from "../domain/limit-spec.ts";
import { checkRule, quotaRule } from "../domain/quota.ts";

/** The fields of a limit that make it another kind than a rate; at most one of them is given. */
export const RESET_FIELDS = [
  "quota",
  "session_seconds",
  "reset_schedule",
  "reset_after_seconds",
  "concurrent",
] as const;

const QUOTA_FIELDS = ["amount", "every", "on", "at", "cron", "time_zone", "carry", "carry_max"];
/** The fields of a quota that options in code have under other names. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  capacity: "amount",
  timeZone: "time_zone",
  carryMax: "carry_max",
};

/** The amount of a limit that does not refill evenly, and when it comes back. */
interface DeclaredReset {
  readonly capacity: unknown;
  /** Absent where slots are declared. */
  readonly rule?: PeriodRule;
}

/** Returns a quota, a session or slots. Throws `ValidationError`. */
export function declaredLimit(
  name: string,
  fields: Readonly<Record<string, unknown>>,
  soft: boolean | undefined,
): Limit {
  const { capacity, rule } = declaredReset(fields) ?? {};
  const kind = rule?.kind ?? "concurrency";
  const alerts = fields.alerts as readonly number[] | undefined;
  return Limit.custom({
    name,
    capacity: capacity as number,
    ...NO_REFILL,
    kind,
    ...defined({ rule, soft, alerts }),
  });
}

/** Returns the place in a declaration that an error is about; empty: all of it. */
export function placeOf({ field }: ValidationError, fields: object): readonly string[] {
  const name = OTHER_NAMES[field] ?? field;
  if ("quota" in fields && QUOTA_FIELDS.includes(name)) return ["quota", name];
  return field in fields ? [field] : [];
}

/** Returns the reset that a limit declares; `undefined` for a rate. */
function declaredReset(fields: Readonly<Record<string, unknown>>): DeclaredReset | undefined {
  const [given, second] = RESET_FIELDS.filter((name) => fields[name] !== undefined);
  if (given === undefined) return undefined;
  if (second !== undefined) refuse(second, fields[second], `it has ${given} already`);
  for (const name of ["refill_period", "burst", "schedule"]) {
    if (fields[name] !== undefined)
      refuse(name, fields[name], `a limit with ${given} has no ${name}`);
  }
  // The Python library writes 0, and nothing else means anything.
  if (fields.refill_amount !== undefined && fields.refill_amount !== 0) {
    refuse("refill_amount", fields.refill_amount, `a limit with ${given} refills nothing evenly`);
  }
  const { capacity } = fields;
  if (given !== "quota" && capacity === undefined) {
    refuse("capacity", capacity, "the capacity is missing; write capacity: and a whole number");
  }
  if (given === "quota") return quotaOf(fields.quota, capacity);
  const value = fields[given];
  if (given === "concurrent") {
    if (value !== true) refuse(given, value, `concurrent is true or absent, got ${show(value)}`);
    return { capacity };
  }
  if (given === "reset_schedule") return { capacity, rule: scheduleOf(value) };
  return { capacity, rule: checkRule({ kind: "session", seconds: value as number }) };
}

/** Returns the fields of a limit that resets, as a file declares it. */
export function resetData({ kind, capacity, rule }: Limit): object | undefined {
  if (kind === "concurrency") return { capacity, concurrent: true };
  if (rule === undefined) return undefined;
  const { quota, session_seconds } = quotaJson(rule);
  if (quota === undefined) return { capacity, session_seconds };
  return { quota: { amount: capacity, ...quota } };
}

function quotaOf(quota: unknown, capacity: unknown): DeclaredReset {
  checkFields("quota", quota, QUOTA_FIELDS);
  const { amount, ...rule } = quota as Record<string, unknown>;
  if (capacity !== undefined) refuse("quota", capacity, "the quota has an amount instead");
  if (amount === undefined) refuse("quota", quota, "the amount is missing; write amount: in it");
  const read = ruleOfJson({ quota: rule });
  if (read === undefined) throw new ValidationError("quota", quota, "expected when it resets");
  return { capacity: amount, rule: read };
}

/** Reads a list of expressions in one zone. */
function scheduleOf(value: unknown): PeriodRule {
  const entries: readonly unknown[] = Array.isArray(value) ? value : [value];
  const crons: string[] = [];
  const zones = new Set<unknown>();
  for (const entry of entries) {
    checkFields("reset_schedule", entry, ["cron", "tz"]);
    const { cron, tz } = entry as { readonly cron?: unknown; readonly tz?: unknown };
    if (typeof cron !== "string") {
      refuse("reset_schedule", cron, `expected cron: "0 0 * * *", got ${show(cron)}`);
    }
    crons.push(cron);
    zones.add(tz);
  }
  if (zones.size !== 1) {
    refuse("reset_schedule", value, "expected entries like { cron, tz } that all have one zone");
  }
  const [timeZone] = zones;
  return quotaRule({
    cron: crons.join(";"),
    ...defined({ timeZone: timeZone as string | undefined }),
  });
}

function refuse(field: string, value: unknown, reason: string): never {
  throw new ValidationError(field, value, reason);
}
