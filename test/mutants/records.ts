/** Mutants of limits, their cache and their versions. */

import type { Mutant } from "./mutant.ts";

export const RECORDS: readonly Mutant[] = [
  {
    name: "version-back-keeps-slots",
    breaks: "Limits stay in the cache when the version of the config went back.",
    file: "packages/limiter/src/records/config/config-cache.ts",
    from: "slot.asOf < version || version < this.#version",
    to: "slot.asOf < version",
    caughtBy: ["packages/limiter/test/unit/records/config/config-cache.test.ts"],
  },
];
