/** Mutants of acquiring, leases and waiting. */

import type { Mutant } from "./mutant.ts";

export const ACQUIRE: readonly Mutant[] = [
  {
    name: "disabled-ancestor-passes",
    breaks: "A call passes under an ancestor that is switched off.",
    file: "packages/limiter/src/acquire/legs.ts",
    from: "if (disabledAt !== undefined) {",
    to: "if (disabledAt !== undefined && chain.length === 0) {",
    caughtBy: ["packages/limiter/test/contract/limiter/contract.test.ts"],
  },
  {
    name: "total-of-ancestors-forgotten",
    breaks: "Totals of ancestors count nothing.",
    file: "packages/limiter/src/acquire/legs.ts",
    from: "const entities = next === undefined ? chain : [...chain, next.entityId];",
    to: "const entities = chain.slice(0, 1);",
    caughtBy: ["packages/limiter/test/contract/limiter/contract.test.ts"],
  },
  {
    name: "total-passed-over-when-ordinary",
    breaks: "A call that counts totals is decided at once by the limits of a call that did not.",
    file: "packages/limiter/src/buckets/embedded/ordinary-call.ts",
    from: "(!totals || terms.withoutTotals) &&",
    to: "",
    caughtBy: ["packages/limiter/test/contract/limiter/contract.test.ts"],
  },
  {
    name: "shares-of-a-bucket-lost",
    breaks: "The first part of a call holds all that several parts consumed from one bucket.",
    file: "packages/limiter/src/acquire/lease/holding.ts",
    from: "const heldMilli = restMilli.map((rest, at) => Math.min(rest, open[at] ?? 0));",
    to: "const heldMilli = restMilli.map((rest) => rest);",
    caughtBy: ["packages/limiter/test/contract/limiter/contract.test.ts"],
  },
  {
    name: "total-not-corrected",
    breaks: "A lease that is settled leaves the total as it was.",
    file: "packages/limiter/src/acquire/lease/lease-holdings.ts",
    from: "for (const holdings of byBucket(this.of(part))) {\n      for (const [name, delta] of deltas)",
    to: "for (const holdings of byBucket(this.of(part).slice(0, 1))) {\n      for (const [name, delta] of deltas)",
    caughtBy: ["packages/limiter/test/contract/limiter/contract.test.ts"],
  },
  {
    name: "waiter-refused-despite-refund",
    breaks: "A waiter is refused although a refund during its question suffices.",
    file: "packages/limiter/src/acquire/waiting/waiting-queue.ts",
    from: "const leaves = isElsewhere || (!again && isTooLate(",
    to: "const leaves = isElsewhere || (again !== undefined && isTooLate(",
    caughtBy: ["packages/limiter/test/unit/acquire/waiting/waiting-queue.test.ts"],
  },
  {
    name: "bypassed-and-counted-as-one",
    breaks: "A lease refunds under bypass what it consumed without, or the other way round.",
    file: "packages/limiter/src/acquire/lease/holding.ts",
    from: "    (left.config.bypass === true) === (right.config.bypass === true) &&\n",
    to: "",
    caughtBy: ["packages/limiter/test/contract/limiter/contract.test.ts"],
  },
];
