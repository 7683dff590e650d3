/** The rule of a quota or a session in JSON, with the field names of the limits file. */

import { defined } from "../base/defined.ts";
import type { Carry, PeriodRule } from "../core/period-rule.ts";
import { checkFields } from "./check.ts";
import { ValidationError } from "./errors/errors.ts";
import { type QuotaOptions, type QuotaUnit, quotaRule, wordsOf } from "./quota.ts";

/** When a quota resets: a calendar in words, or a cron expression. */
export type QuotaRuleJson = {
  readonly every?: QuotaUnit;
  readonly on?: number | string;
  readonly at?: string;
  readonly cron?: string;
  readonly time_zone?: string;
  readonly carry?: Carry;
  readonly carry_max?: number;
};

/** The fields that the JSON of a limit has for its rule. */
export type QuotaJson = {
  /** Present for a quota. */
  readonly quota?: QuotaRuleJson;
  /** Present for a session: its length. */
  readonly session_seconds?: number;
};

const FIELDS = ["every", "on", "at", "cron", "time_zone", "carry", "carry_max"] as const;

/** Returns the fields that a rule adds to the JSON of a limit. */
export function quotaJson(rule: PeriodRule | undefined): QuotaJson {
  if (rule === undefined) return {};
  if (rule.kind === "session") return { session_seconds: rule.seconds };
  const { cron, timeZone, carry, carryMax } = rule;
  return {
    quota: {
      ...(wordsOf(rule) ?? { cron }),
      time_zone: timeZone,
      ...(carry === "none" ? {} : { carry }),
      ...defined({ carry_max: carryMax }),
    },
  };
}

/** Returns the rule of the JSON of a limit; `undefined` for a rate. */
export function ruleOfJson({ quota, session_seconds }: QuotaJson): PeriodRule | undefined {
  if (quota === undefined) {
    return session_seconds === undefined
      ? undefined
      : quotaRule({ after: { seconds: session_seconds } });
  }
  if (session_seconds !== undefined) {
    const reason = "a limit has a quota or session_seconds, not both";
    throw new ValidationError("session_seconds", session_seconds, reason);
  }
  checkFields("quota", quota, FIELDS);
  for (const name of ["every", "on", "at"] as const) {
    if (quota.cron === undefined || quota[name] === undefined) continue;
    throw new ValidationError(name, quota[name], `a quota with cron has no ${name}`);
  }
  const { time_zone, carry_max, ...same } = quota;
  return quotaRule({
    ...same,
    ...defined({ timeZone: time_zone, carryMax: carry_max }),
  } as QuotaOptions);
}
