/** The texts of limits in what a reader types. */

import type { BalanceJson } from "../src/wire.ts";

/**
 * Splits at spaces, and at commas outside of a cron expression; a word without a name, such as
 * `soft` or a time zone, belongs to its limit.
 */
export function limitsIn(text: string): string[] {
  const limits: string[] = [];
  for (const word of text.split(/(?:\s|,(?![^()]*\)))+/).filter((part) => part !== "")) {
    const isLimit = /^[A-Za-z][A-Za-z0-9_.-]*:/.test(word) || limits.length === 0;
    if (isLimit) limits.push(word);
    else limits.push(`${limits.pop()} ${word}`);
  }
  return limits;
}

/** Processes that hold slots and are named; a bucket may have many. */
const HOLDERS_SHOWN = 3;

/** Returns how many slots are in flight, by process: `3 in flight: 2 by p7x2k9, 1 by q4m1z8`. */
export function heldText(holders: NonNullable<BalanceJson["holders"]>): string {
  const held = Object.entries(holders).sort(([, one], [, other]) => other - one);
  const sum = held.reduce((total, [, slots]) => total + slots, 0);
  if (sum === 0) return "none in flight";
  const shown = held.slice(0, HOLDERS_SHOWN).map(([id, slots]) => `${slots} by ${id}`);
  const more = held.length - shown.length;
  return `${sum} in flight: ${shown.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
