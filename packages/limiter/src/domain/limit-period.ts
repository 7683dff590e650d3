/** The period of a rate: its units, the period that a name states, and its text. */

import { show } from "./check.ts";
import type { LimitSpec } from "./limit-spec.ts";

const [SECOND, MINUTE, HOUR, DAY] = [1, 60, 3600, 86_400] as const;

/** From coarse to fine: printing takes the first that divides the period evenly. */
const UNITS: readonly (readonly [seconds: number, ...words: string[]])[] = [
  [DAY, "day", "days", "d"],
  [HOUR, "hour", "hours", "h"],
  [MINUTE, "min", "minute", "minutes"],
  [SECOND, "sec", "second", "seconds", "s"],
];

const SECONDS_OF_WORD: ReadonlyMap<string, number> = new Map(
  UNITS.flatMap(([seconds, ...words]) => words.map((word) => [word, seconds] as const)),
);

const SECONDS_OF_LETTER: ReadonlyMap<string, number> = new Map([
  ["s", SECOND],
  ["m", MINUTE],
  ["h", HOUR],
  ["d", DAY],
]);

/** Names that state their period: `rps`, `rpm`, `tph`, `rpd`, `itpm`. */
const TELLING_NAME = /^[a-z]?[rt]p([smhd])$/;
const COUNT_AND_UNIT = /^([0-9]*)([a-z]+)$/;

/** A period in seconds, or what is wrong with its text. */
type ReadPeriod = { readonly seconds: number } | { readonly problem: string };

/** Returns the seconds that a limit has without a period: those its name states, else a minute. */
export function defaultPeriodSeconds(name: string): number {
  return statedSeconds(name) ?? MINUTE;
}

/** Reads `min`, `10sec`, `24hours`. */
export function readPeriod(text: string): ReadPeriod {
  const [, count, unit = ""] = COUNT_AND_UNIT.exec(text) ?? [];
  if (unit === "m") return { problem: "m may be a minute or a month: which? Write min or month" };
  const unitSeconds = SECONDS_OF_WORD.get(unit);
  if (count === undefined || unitSeconds === undefined) {
    const rates = "sec, min, hour or day, with an optional count before it (10sec)";
    const quotas = "week, month, quarter, year, session:5hour or cron(…)";
    return { problem: `the period must be ${rates}, or of a quota ${quotas}, got ${show(text)}` };
  }
  const seconds = unitSeconds * Number(count === "" ? 1 : count);
  return seconds > 0 ? { seconds } : { problem: `the period must be positive, got ${show(text)}` };
}

/** Prints `min`, `5min`, `day`: the coarsest unit that divides the seconds evenly. */
export function printPeriod(seconds: number): string {
  const [unitSeconds, word] = UNITS.find(([unit]) => seconds % unit === 0) ?? [SECOND, "sec"];
  return seconds === unitSeconds ? String(word) : `${seconds / unitSeconds}${word}`;
}

/**
 * Returns a sentence about a limit whose name states another period; else `undefined`. A limit that
 * refills its capacity in that period, in smaller steps (`tpm:500/30sec:1000`), is as it says.
 */
export function periodDisagreement(limit: LimitSpec): string | undefined {
  const { name, capacity, refillAmount, refillPeriodSeconds } = limit;
  const stated = statedSeconds(name);
  if (refillAmount === 0) return undefined;
  if (stated === undefined || stated === refillPeriodSeconds) return undefined;
  if (refillAmount * stated === capacity * refillPeriodSeconds) return undefined;
  const [said, given] = [printPeriod(stated), printPeriod(refillPeriodSeconds)];
  return (
    `the limit ${name} refills per ${given}, and its name says per ${said}: ` +
    `write /${said}, or give it another name`
  );
}

function statedSeconds(name: string): number | undefined {
  const [, letter = ""] = TELLING_NAME.exec(name) ?? [];
  return SECONDS_OF_LETTER.get(letter);
}
