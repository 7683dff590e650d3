/** States of a bucket, set by hand, for tables of decisions. */

import { newHistory } from "@zae-limiter/limiter/buckets/distributed/consume/group.ts";
import type {
  History,
  Request,
  Situation,
} from "@zae-limiter/limiter/buckets/distributed/consume/step.ts";
import { newBucket } from "@zae-limiter/limiter/buckets/distributed/plan/new-bucket.ts";
import type { SeenBucket } from "@zae-limiter/limiter/buckets/distributed/plan/seen-bucket.ts";
import { BucketStates } from "@zae-limiter/limiter/buckets/distributed/state/bucket-states.ts";
import { CachedStates } from "@zae-limiter/limiter/buckets/distributed/state/cached-states.ts";
import { DYNAMODB_TRAITS } from "@zae-limiter/limiter/buckets/distributed/table-traits.ts";
import { UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { configOf } from "@zae-limiter/test-support/table.ts";

export const NOW = 1_800_000_000_000;
export const RULES = { ...DYNAMODB_TRAITS, ttlMultiplier: 7 };
const NAME = { entityId: "e", resource: "r" };
const CONFIG = configOf(["a:10/day"]);

/** A shard with this balance, in tokens, as of now. */
export function shardOf(tokens: number, more: Partial<SeenBucket> = {}): SeenBucket {
  const made = newBucket({
    name: NAME,
    config: CONFIG,
    link: UNLINKED,
    amountsMilli: [10_000 - Math.round(tokens * 1000)],
    nowMs: NOW,
    rules: RULES,
  });
  return { ...made, ...more };
}

function member(tokens: number) {
  return { amountsMilli: [tokens * 1000], link: UNLINKED, linkIsFresh: true };
}

export function requestOf(...tokens: readonly number[]): Request {
  return { name: NAME, config: CONFIG, members: tokens.map(member) };
}

export function historyOf(more: Partial<History> = {}): History {
  return { ...newHistory(NOW), ...more };
}

export function situationOf(
  shown: readonly (SeenBucket | undefined)[],
  more: Partial<Situation> & { readonly shownMs?: number } = {},
): Situation {
  const { shownMs = NOW, ...rest } = more;
  const nowMs = rest.nowMs ?? NOW;
  const clock = () => nowMs;
  const shards = new CachedStates();
  const states = new BucketStates({ namespaceId: "ns", clock }, shards, RULES);
  shown.forEach((bucket, shard) => {
    shards.observe(states.idOf(NAME, shard))(bucket, shownMs);
  });
  return {
    states,
    nowMs,
    random: () => 0,
    rules: RULES,
    throttledPauseMs: () => 2,
    isProbed: () => false,
    needsRepair: () => false,
    ...rest,
  };
}
