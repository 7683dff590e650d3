/** Mutants of arithmetic, buckets and their adjustments. */

import type { Mutant } from "./mutant.ts";

const UNIT = "packages/limiter/test/unit";

export const BUCKETS: readonly Mutant[] = [
  {
    name: "cap-rounds-up",
    breaks: "A bucket keeps a part of a milli-token beyond full before the time of its level.",
    file: "packages/limiter/src/core/bucket.ts",
    from: "capacityMilli - quotient - (remainder > 0 ? 1 : 0)",
    to: "capacityMilli - quotient + 0 * remainder",
    caughtBy: [`${UNIT}/core/bucket-properties.test.ts`],
  },
  {
    name: "ttl-from-balance",
    breaks: "A bucket may expire before it is full, if other clients consume what is left.",
    file: "packages/limiter/src/buckets/bucket-ttl.ts",
    from: "const missing = rate.capacityMilli - Math.min(0, balanceMilli);",
    to: "const missing = rate.capacityMilli - balanceMilli;",
    caughtBy: [`${UNIT}/buckets/bucket-ttl.test.ts`],
  },
  {
    name: "top-up-by-last-write",
    breaks: "A top-up adds and reports what was missing at the last write.",
    file: "packages/limiter/src/buckets/embedded/row-operation.ts",
    from: "capacityMilli - row.balanceMilli(at, nowMs)",
    to: "capacityMilli - row.balanceMilli(at, Number(row.numbers[at * 5 + 1]) + 0 * nowMs)",
    caughtBy: [`${UNIT}/buckets/embedded/row-operation.test.ts`],
  },
  {
    name: "ordinary-by-old-limits",
    breaks: "Calls go on by the limits of an earlier generation after a change of limits.",
    file: "packages/limiter/src/buckets/embedded/ordinary-call.ts",
    from: "    terms.generation === generation &&\n    terms.given",
    to: "    terms.given",
    caughtBy: [`${UNIT}/buckets/embedded/ordinary-call.test.ts`],
  },
  {
    name: "version-of-bucket-goes-back",
    breaks: "A client with older limits takes the version of a bucket back, and old limits return.",
    file: "packages/limiter/src/buckets/distributed/plan/rebase.ts",
    from: 'source !== "override" && version > bucket.configVersion',
    to: 'source !== "override"',
    caughtBy: [`${UNIT}/buckets/distributed/plan/rebase.test.ts`],
  },
  {
    name: "shared-refunds-count-one-acquire",
    breaks: "Refunds that share a write make only one of their acquires void.",
    file: "packages/limiter/src/buckets/distributed/consume/adjustments.ts",
    from: "acquires += adjustment.acquires ?? 0;",
    to: "acquires = adjustment.acquires ?? 0;",
    caughtBy: [`${UNIT}/buckets/distributed/shared-writes.test.ts`],
  },
];
