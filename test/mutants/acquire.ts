/** Mutants of acquiring, leases and waiting. */

import type { Mutant } from "./mutant.ts";

export const ACQUIRE: readonly Mutant[] = [
  {
    name: "disabled-ancestor-passes",
    breaks: "A call passes under an ancestor that is switched off.",
    file: "packages/limiter/src/acquire/legs.ts",
    from: "if (stored.disabledAt !== undefined) {",
    to: "if (stored.disabledAt !== undefined && chain.length === 0) {",
    caughtBy: ["packages/limiter/test/contract/limiter/contract.test.ts"],
  },
];
