/** A name that no other change set of a stack has, however many are made at once. */

import type { Clock } from "../domain/clock.ts";
import { type Random, randomBytes } from "../domain/random.ts";

const SUFFIX_BYTES = 4;

export function changeSetName({ clock, random }: { clock: Clock; random: Random }): string {
  const suffix = Buffer.from(randomBytes(random, SUFFIX_BYTES)).toString("hex");
  return `zae-limiter-${clock()}-${suffix}`;
}
