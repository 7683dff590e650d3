/** The rule of a limit with periods as text: in rows, and as a stamp that is compared. */

import { boundedMap } from "../base/bounded-map.ts";
import type { Carry, PeriodRule } from "../core/period-rule.ts";

const RULES_MAX = 1000;
const CALENDAR = /^q([nrdb])(\d*) (\S+) (.+)$/;
const SESSION = /^s(\d+)$/;
const CARRIES: Readonly<Record<string, Carry>> = { n: "none", d: "debt", r: "rest", b: "both" };

const known = boundedMap<PeriodRule>(RULES_MAX);

/** Returns the text of a rule: what is carried, the zone, and the cron fields; or seconds. */
export function ruleText(rule: PeriodRule): string {
  if (rule.kind === "session") return `s${rule.seconds}`;
  const { carry, carryMax, timeZone, cron } = rule;
  return `q${carry[0]}${carryMax ?? ""} ${timeZone} ${cron}`;
}

/** Returns the rule of a text, for equal texts the same object; throws for any other text. */
export function ruleOf(text: string): PeriodRule {
  const before = known.get(text);
  if (before !== undefined) return before;
  const rule = Object.freeze(parsed(text));
  known.set(text, rule);
  return rule;
}

function parsed(text: string): PeriodRule {
  const [, seconds] = SESSION.exec(text) ?? [];
  if (seconds !== undefined) return { kind: "session", seconds: Number(seconds) };
  const [, letter = "", most, timeZone, cron] = CALENDAR.exec(text) ?? [];
  const carry = CARRIES[letter];
  if (carry === undefined || timeZone === undefined || cron === undefined) throw new Error(text);
  const rule = { kind: "quota", cron, timeZone, carry } as const;
  return most === "" ? rule : { ...rule, carryMax: Number(most) };
}
