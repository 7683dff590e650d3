/** Mutants of quotas, sessions and windows: when they begin, what they grant, what comes back. */

import type { Mutant } from "./mutants.ts";

const BUCKETS = "packages/limiter/src/buckets";

export const QUOTA_MUTANTS: readonly Mutant[] = [
  {
    name: "second-reset-by-other-zones",
    breaks:
      "The period that follows a stored end may end shortly after it, where another client, whose " +
      "zones have other data, has stored it.",
    changes: [
      {
        file: "packages/limiter/src/core/calendar.ts",
        from: "const guardedMs = storedEndMs + guardMs(calendar, storedEndMs);",
        to: "const guardedMs = storedEndMs;",
      },
    ],
    world: "zones",
    caughtBy: ["over-admission"],
  },
  {
    name: "period-over-too-early",
    breaks: "A period is over in its last millisecond.",
    changes: [
      {
        file: `${BUCKETS}/distributed/plan/period-plan.ts`,
        from: "return period !== undefined && nowMs >= period.endMs;",
        to: "return period !== undefined && nowMs >= period.endMs - 1;",
      },
      {
        file: `${BUCKETS}/distributed/plan/period-plan.ts`,
        from: "const over = epochMs >= level.endMs;",
        to: "const over = epochMs >= level.endMs - 1;",
      },
      {
        file: `${BUCKETS}/periods.ts`,
        from: "if (nowMs < level.endMs) return level;",
        to: "if (nowMs < level.endMs - 1) return level;",
      },
    ],
    world: "quotas",
    caughtBy: ["over-admission"],
  },
  {
    name: "refund-into-next-period",
    breaks: "What was consumed in a period that is over is refunded to the one that is in force.",
    changes: [
      {
        file: `${BUCKETS}/periods.ts`,
        from: "if (fromEndMs === undefined || fromEndMs === endMs) {",
        to: "if (fromEndMs === fromEndMs) {",
      },
    ],
    world: "quotas",
    caughtBy: ["over-admission"],
  },
  {
    name: "late-answer-in-next-period",
    breaks: "A call remembers the period in which its answer came, not the one it consumed in.",
    changes: [
      {
        file: `${BUCKETS}/distributed/state/bucket-states.ts`,
        from: "const nowMs = written?.atMs ?? this.clock();",
        to: "const nowMs = this.clock();",
      },
    ],
    world: "quotas",
    caughtBy: ["over-admission", "conservation"],
  },
  {
    name: "share-by-floor",
    breaks:
      "Each shard gets the whole part of an even share, so that the odd milli-tokens are lost.",
    changes: [
      {
        file: `${BUCKETS}/periods.ts`,
        from: "amountMilli: shareOf(rate.capacityMilli, shard, count),",
        to: "amountMilli: Math.floor(rate.capacityMilli / count) + 0 * shard,",
      },
    ],
    world: "quotas",
    caughtBy: ["conservation"],
  },
  {
    name: "split-keeps-balance",
    breaks: "A split gives balances to new shards, and the old one keeps its own.",
    changes: [
      {
        file: `${BUCKETS}/distributed/plan/period-plan.ts`,
        from: "const takenMilli = even * (factor - 1);",
        to: "const takenMilli = 0 * even * (factor - 1);",
      },
    ],
    world: "quotas",
    caughtBy: ["over-admission"],
  },
  {
    name: "rest-without-bound",
    breaks: "All that is left of a period is carried into the next one, whatever the most is.",
    changes: [
      {
        file: `${BUCKETS}/periods.ts`,
        from: "const lastMilli = Math.min(tokensMilli, carryMaxMilli);",
        to: "const lastMilli = Math.max(tokensMilli, 0 * carryMaxMilli);",
      },
    ],
    world: "carried",
    caughtBy: ["over-admission"],
  },
  {
    name: "rest-as-it-was-seen",
    breaks: "A rest is carried as it was seen, although other clients have consumed of it since.",
    changes: [
      {
        file: `${BUCKETS}/distributed/plan/period-plan.ts`,
        from: "    requireLeft(plan, name, stored, before);",
        to: "",
      },
    ],
    world: "carried",
    caughtBy: ["over-admission", "conservation"],
  },
  {
    name: "session-without-consumption",
    breaks: "A call for another limit of the bucket opens the next session.",
    changes: [
      {
        file: `${BUCKETS}/distributed/plan/period-plan.ts`,
        from: "const opens = over && (isQuota || takenMilli > 0);",
        to: "const opens = over && (isQuota || takenMilli >= 0);",
      },
    ],
    world: "sessions",
    caughtBy: ["over-admission"],
  },
  {
    name: "windows-known-once",
    breaks: "A process computes once which window is open, and never again.",
    changes: [
      {
        file: "packages/limiter/src/domain/schedules.ts",
        from: "if (ms >= latest.fromMs && ms < latest.endMs) return latest;",
        to: "if (latest.endMs > 0) return latest;",
      },
    ],
    world: "windows",
    caughtBy: ["over-admission", "conservation", "refusals"],
  },
  {
    name: "boundary-granted-twice",
    breaks: "A base time that is pulled back over a boundary takes back by the new numbers alone.",
    changes: [
      {
        file: `${BUCKETS}/distributed/plan/seen-bucket.ts`,
        from: "const isPulledBack = refilledAtMs - nowMs > EPOCH_AHEAD_MS_MAX;",
        to: "const isPulledBack = refilledAtMs - nowMs > 1000 * EPOCH_AHEAD_MS_MAX;",
      },
    ],
    world: "windows",
    caughtBy: ["over-admission", "conservation"],
  },
];
