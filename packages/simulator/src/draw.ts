/** Random draws of the simulator. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";

/** Returns a whole number from `low` to `high`, both included. */
export function between(random: Random, low: number, high: number): number {
  return low + Math.floor(random() * (high - low + 1));
}

/** Returns one of the choices; each is as likely as the others. */
export function pick<T>(random: Random, choices: readonly T[]): T {
  return choices[Math.floor(random() * choices.length)] as T;
}
