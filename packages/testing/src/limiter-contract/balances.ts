/** Balances to the milli: what users read is rounded to tokens, and would hide a lost one. */

import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { Subject } from "./subject.ts";

/** One limit of one bucket, to the milli. */
export interface Milli {
  readonly balance: number;
  readonly consumed: number;
}

/** Reads balance and consumption of a limit in milli-tokens; `undefined` without a bucket. */
export async function milliOf(
  { repo }: Subject,
  entityId: string,
  resource: string,
  limitName: string,
): Promise<Milli | undefined> {
  const states = await repo[INTERNALS].buckets.list(entityId, resource);
  const found = states.find((state) => state.limitName === limitName);
  if (found === undefined) return undefined;
  return { balance: found.balanceMilli, consumed: Number(found.consumedMilli) };
}
