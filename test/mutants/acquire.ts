/** Mutants of acquiring, leases and waiting. */

import type { Mutant } from "./mutant.ts";

export const ACQUIRE: readonly Mutant[] = [
  {
    name: "disabled-ancestor-passes",
    breaks: "The second and every later call passes under an ancestor that is switched off.",
    file: "packages/limiter/src/acquire/legs.ts",
    from: "stored.disabledAt !== undefined || ",
    to: "",
    caughtBy: ["packages/limiter/test/contract/limiter/contract.test.ts"],
  },
];
