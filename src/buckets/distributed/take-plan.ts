/** What comes of planning a take, and what all takes share. */

import type { StoredBucket } from "../../records/bucket-item.ts";
import type { Leg } from "../bucket-store.ts";
import { bucketTtl } from "../bucket-ttl.ts";
import type { WritePlan } from "./write-plan.ts";

export type TakePlan =
  | { readonly kind: "outdated" }
  | { readonly kind: "refused"; readonly balancesMilli: readonly number[] }
  /** Nothing is asked for, so nothing is written. */
  | { readonly kind: "nothing"; readonly balancesMilli: readonly number[] }
  | {
      readonly kind: "write";
      readonly plan: WritePlan;
      readonly guesses: readonly Guess[];
    };

/** How a limit that is asked for was judged. */
export interface Guess {
  readonly limitName: string;
  readonly full: boolean;
  /** The stored balance after the write, if the guess is right and nobody else writes. */
  readonly tokensMilli: number;
}

export interface TakeContext {
  readonly nowMs: number;
  readonly ttlMultiplier: number;
  /** Whether a limit that looks full is to be taken for full: others may have taken since. */
  readonly trustFull: (limitName: string) => boolean;
  /** An adjustment: never refused, may go into debt, and an amount below zero gives back. */
  readonly force?: boolean;
}

/** Renews the time to live where that is due. */
export function planTtl(
  plan: WritePlan,
  bucket: StoredBucket,
  leg: Pick<Leg, "config">,
  balancesMilli: readonly number[],
  context: Pick<TakeContext, "nowMs" | "ttlMultiplier">,
): void {
  const { ttlMultiplier, nowMs } = context;
  const ttl = bucketTtl(bucket.ttl, leg.config, ttlMultiplier, balancesMilli, nowMs);
  if (ttl === bucket.ttl) return;
  if (ttl === undefined) plan.remove("ttl");
  else plan.set("ttl", ttl);
}

/** Whether an amount above zero is more than there is. */
export function exceeds(
  amountsMilli: readonly number[],
  balancesMilli: readonly number[],
): boolean {
  return amountsMilli.some((amount, at) => amount > 0 && amount > (balancesMilli[at] as number));
}
