/** Mutants of counting usage from the stream. */

import type { Mutant } from "./mutant.ts";

export const AGGREGATOR: readonly Mutant[] = [
  {
    name: "fewer-shards-count-nothing",
    breaks: "A write with fewer shards in the same generation is taken for a merge.",
    file: "packages/aws/src/aggregator/consumption.ts",
    from: 'before === undefined || wholeAt(after, "mg") <= wholeAt(before, "mg")',
    to: "before === undefined",
    caughtBy: ["packages/aws/test/unit/aggregator/merged-shards.test.ts"],
  },
];
