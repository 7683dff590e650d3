/** Buckets of the embedded stores, set by hand. */

import type {
  EmbeddedBucket,
  EmbeddedLimit,
} from "@zae-limiter/limiter/buckets/embedded/embedded-bucket.ts";
import { hourOf } from "@zae-limiter/limiter/buckets/embedded/usage-hour.ts";
import { UNLINKED } from "@zae-limiter/limiter/buckets/link.ts";

export const NOW = 1_800_000_000_000;

/** Ten tokens a minute. */
export function limitWith(tokensMilli: number, more: Partial<EmbeddedLimit> = {}): EmbeddedLimit {
  return {
    name: "a",
    rate: { capacityMilli: 10_000, refillMilli: 10_000, periodMs: 60_000 },
    level: { tokensMilli, refilledAtMs: NOW, remainder: 0 },
    consumedMilli: 0,
    countedMilli: 0,
    ...more,
  };
}

export function bucketWith(
  limits: readonly EmbeddedLimit[],
  more: Partial<EmbeddedBucket> = {},
): EmbeddedBucket {
  return {
    ...{ link: UNLINKED, version: 1, source: "resource", ttl: undefined, limits },
    ...{ usageHour: hourOf(NOW), events: 0 },
    ...more,
  };
}
