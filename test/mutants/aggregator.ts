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
  {
    name: "hour-too-late",
    breaks: "Consumption counts in the next hour.",
    file: "packages/aws/src/aggregator/usage-fold.ts",
    from: "const hour = Math.floor(consumption.atMs / HOUR_MS);",
    to: "const hour = Math.ceil(consumption.atMs / HOUR_MS);",
    caughtBy: ["packages/aws/test/unit/aggregator/usage-fold.test.ts"],
  },
  {
    name: "recounts-at-every-mark",
    breaks: "Usage after an entity was created again is corrected away, or written twice.",
    file: "packages/aws/src/aggregator/aggregator.ts",
    from: "if (untilMs > before.untilMs(tally.subject)) await",
    to: "if (untilMs > 0) await",
    caughtBy: ["packages/aws/test/unit/aggregator/deletions.test.ts"],
  },
  {
    name: "python-acquires-count-nothing",
    breaks: "Acquires of the Python library count no events.",
    file: "packages/aws/src/aggregator/consumption.ts",
    from: "return isCreatedByUs || isWrittenByUs ? 0 : 1;",
    to: "return isCreatedByUs || isWrittenByUs ? 0 : 0;",
    caughtBy: ["packages/aws/test/unit/aggregator/python-acquires.test.ts"],
  },
  {
    name: "bypass-is-debt",
    breaks: "Consumption under bypass counts as overdrawn.",
    file: "packages/aws/src/aggregator/consumption.ts",
    from: "return stored < 0 && !isCountedOnly;",
    to: "return stored < 0;",
    caughtBy: ["packages/aws/test/unit/aggregator/consumption.test.ts"],
  },
  {
    name: "deleted-buckets-kept-up",
    breaks: "Buckets of deleted entities are refilled and split.",
    file: "packages/aws/src/aggregator/aggregator.ts",
    from: '({ name, item }) => (numberAt(item, "rf") ?? 0) > deletions.untilMs(name),',
    to: '({ name, item }) => (numberAt(item, "rf") ?? 0) > 0 * deletions.untilMs(name),',
    caughtBy: ["packages/aws/test/unit/aggregator/deletions.test.ts"],
  },
  {
    name: "archives-beyond-failure",
    breaks: "Audit events behind a failed record are archived twice.",
    file: "packages/aws/src/aggregator/aggregator.ts",
    from: "return this.changes.slice(0, first);",
    to: "return this.changes.slice(0 * first);",
    caughtBy: [
      "packages/aws/test/unit/aggregator/audit-archive.test.ts",
      "packages/aws/test/unit/aggregator/lambda.test.ts",
    ],
  },
  {
    name: "damaged-record-blocks",
    breaks: "A record that can never be counted blocks the stream for a day.",
    file: "packages/aws/src/aggregator/aggregator.ts",
    from: "const isFinal = FINAL_ERRORS.some((kind) => error instanceof kind);",
    to: "const isFinal = FINAL_ERRORS.some((kind) => error === kind);",
    caughtBy: ["packages/aws/test/unit/aggregator/lambda.test.ts"],
  },
];
