/**
 * Mutants: libraries that are broken on purpose, each in a way that ordinary tests might miss.
 *
 * A mutant is a few texts of the sources and their replacements. When the sources change,
 * `mutant-texts.test.ts` shows which texts are gone: read `breaks`, which says what the mutant does
 * in words that hold for any code, find the place that does this now, and change `changes`. When no
 * place does it any more, the mutant goes, with a sentence in `HARMLESS`.
 */

import type { CheckerName } from "@zae-limiter/simulator/checkers/violation.ts";
import type { WorldName } from "@zae-limiter/simulator/simulation/worlds.ts";
import type { Change } from "./bundle.ts";
import { OPERATOR_MUTANTS } from "./operator-mutants.ts";
import { QUOTA_MUTANTS } from "./quota-mutants.ts";
import { SLOT_MUTANTS } from "./slot-mutants.ts";

export interface Mutant {
  readonly name: string;
  /** The mutant's effect, in words that hold for any code. */
  readonly breaks: string;
  readonly changes: readonly Change[];
  /** The world that catches it. */
  readonly world: WorldName;
  /** The rules it breaks; another one may be noticed first. */
  readonly caughtBy: readonly CheckerName[];
}

const BUCKETS = "packages/limiter/src/buckets/distributed";

/** Every path of consume, refill and refund. */
const ARITHMETIC: readonly Mutant[] = [
  {
    name: "refill-too-much",
    breaks: "The refill since the base time credits two per cent too much.",
    changes: [
      {
        file: `${BUCKETS}/plan/seen-bucket.ts`,
        from: "accrued(share, nowMs - sinceMs, 0)",
        to: "accrued(share, Math.floor((nowMs - sinceMs) * 1.02), 0)",
      },
    ],
    world: "any",
    caughtBy: ["over-admission", "conservation"],
  },
  {
    name: "rebase-loses-remainder",
    breaks:
      "A rebase stores a remainder of 0 instead of the one that belongs to the new base time.",
    changes: [
      {
        file: `${BUCKETS}/plan/rebase-limits.ts`,
        from: "plan.setRemainder(name, balance, remainder);",
        to: "plan.setRemainder(name, balance, 0 * remainder);",
      },
    ],
    world: "any",
    caughtBy: ["conservation"],
  },
  {
    name: "refund-to-shard-0",
    breaks: "A refund goes to shard 0, whichever shard the tokens were consumed from.",
    changes: [
      {
        file: `${BUCKETS}/consume/adjuster.ts`,
        from: "this.#items.keyOf(adjustment, adjustment.shard)",
        to: "this.#items.keyOf(adjustment, 0 * adjustment.shard)",
      },
    ],
    world: "any",
    caughtBy: ["leases"],
  },
];

/** Mutants of rules that hold while other clients, clocks and the network are at work. */
const RACES: readonly Mutant[] = [
  {
    name: "unknown-write-refunded",
    breaks:
      "A write whose outcome is unknown (a timeout, an error 500) is refunded, although it may " +
      "never have arrived.",
    changes: [
      {
        file: `${BUCKETS}/consume/cascade.ts`,
        from: "else failures.push(result.reason);",
        to: `else {
          failures.push(result.reason);
          const { amountsMilli, link } = legs[at] as Leg;
          const parts = [{ shard: 0, amountsMilli }];
          const position = positions[at] as number;
          answers[position] = { kind: "consumed", parts, link, balancesMilli: [] };
        }`,
      },
    ],
    world: "lost",
    caughtBy: ["leases", "books", "over-admission"],
  },
  {
    name: "future-keeps-tokens",
    breaks:
      "A rebase of a base time that lies further ahead than clocks may differ keeps the tokens " +
      "that were promised for the time until then.",
    changes: [
      {
        file: `${BUCKETS}/plan/rebase-limits.ts`,
        from: "const balance = balanceAt(this.#bucket, stored, this.#epochMs);",
        to: `const balance = balanceAt(
      this.#bucket, stored, Math.max(this.#bucket.refilledAtMs, this.#epochMs));`,
      },
    ],
    world: "clocks",
    caughtBy: ["over-admission"],
  },
  {
    name: "enough-off-by-one",
    breaks: "The condition of a consuming write lets it through when one milli-token is missing.",
    changes: [
      {
        file: `${BUCKETS}/plan/write-plan.ts`,
        from: "amount - (loose ? accruedMin : accruedMilli));",
        to: "amount - 1 - (loose ? accruedMin : accruedMilli));",
      },
    ],
    world: "edges",
    caughtBy: ["over-admission"],
  },
  {
    name: "shard-count-unchecked",
    breaks:
      "A consuming write does not require the number of shards it was planned for. Our own splits " +
      "move the base time too; the Python library doubles without that.",
    changes: [
      {
        file: `${BUCKETS}/plan/write-plan.ts`,
        from: "sameCount(bucket),",
        to: "",
      },
    ],
    world: "foreign",
    caughtBy: ["over-admission", "conservation"],
  },
  {
    name: "link-change-unnoticed",
    breaks:
      "The link that a consuming write has shown is not compared with the one the legs were made " +
      "from: a new parent is not consumed from.",
    changes: [
      {
        file: `${BUCKETS}/distributed-bucket-store.ts`,
        from: "if (!areConsumed(answers) || changedLinks(legs, answers) !== undefined)",
        to: "if (!areConsumed(answers))",
      },
    ],
    world: "links",
    caughtBy: ["links"],
  },
];

/** Buckets that expire. */
const EXPIRY: readonly Mutant[] = [
  {
    name: "ttl-not-renewed",
    breaks: "The time to live of a bucket is set once and never renewed.",
    changes: [
      {
        file: `${BUCKETS}/plan/write-plan.ts`,
        from: 'else if (ttl !== undefined && ttl !== bucket.ttl) plan.set("ttl", ttl);',
        to: 'else if (ttl !== undefined && bucket.ttl === undefined) plan.set("ttl", ttl);',
      },
    ],
    world: "expiring",
    caughtBy: ["over-admission", "refusals"],
  },
  {
    name: "ttl-forgets-debt",
    breaks:
      "The time to live covers filling an empty bucket, and not paying back its debt. The " +
      "condition that the time covers the debt still holds, so adjustments always fail.",
    changes: [
      {
        file: "packages/limiter/src/buckets/bucket-ttl.ts",
        from: "const missing = each.capacityMilli - Math.min(0, balanceMilli);",
        to: "const missing = each.capacityMilli + 0 * balanceMilli;",
      },
    ],
    world: "expiring",
    caughtBy: ["availability"],
  },
  {
    name: "ttl-forgets-debt-unguarded",
    breaks:
      "The time to live does not cover the debt, and the write does not require that it does: " +
      "the debt is forgotten when the bucket expires.",
    changes: [
      {
        file: "packages/limiter/src/buckets/bucket-ttl.ts",
        from: "const missing = each.capacityMilli - Math.min(0, balanceMilli);",
        to: "const missing = each.capacityMilli + 0 * balanceMilli;",
      },
      {
        file: "packages/limiter/src/buckets/bucket-ttl.ts",
        from: "return covered ? Number.NEGATIVE_INFINITY : rate.capacityMilli - gained;",
        to: "return covered || gained > 0 ? Number.NEGATIVE_INFINITY : rate.capacityMilli;",
      },
    ],
    world: "expiring",
    caughtBy: ["over-admission"],
  },
];

/** Splits under load. */
const SPLITS: readonly Mutant[] = [
  {
    name: "split-loses-remainder",
    breaks: "A split that knows the remainder of a limit stores 0 instead of carrying it over.",
    changes: [
      {
        file: `${BUCKETS}/shards/split.ts`,
        from: "const remainder = full || !certain ? 0 : balance.remainder * rooms.length;",
        to: "const remainder = full || !certain ? 0 : balance.remainder * 0;",
      },
    ],
    world: "splits",
    caughtBy: ["conservation"],
  },
  {
    name: "split-fills-shard",
    breaks:
      "A split sets a shard that looked full to full, without the condition that it still is: " +
      "what other clients consumed meanwhile comes back.",
    changes: [
      {
        file: `${BUCKETS}/shards/split.ts`,
        from: "plan.requireFull(name, balance, balanceMilli);",
        to: "",
      },
    ],
    world: "splits",
    caughtBy: ["over-admission"],
  },
  {
    name: "split-mints-parts",
    breaks: "A split into more than two takes only the part of one new shard from the old one.",
    changes: [
      {
        file: `${BUCKETS}/shards/split.ts`,
        from: "plan.add(tokens, accruedMilli - sumMilli);",
        to: "plan.add(tokens, accruedMilli - (movedMilli[0] ?? 0));",
      },
    ],
    world: "merges",
    caughtBy: ["over-admission"],
  },
  {
    name: "split-forgets-shard",
    breaks: "A split into more than two leaves one of the new shards out.",
    changes: [
      {
        file: `${BUCKETS}/shards/splitter.ts`,
        from: "...made.map((half, at) => ({",
        to: "...made.filter((_, at) => at < 2).map((half, at) => ({",
      },
    ],
    world: "merges",
    caughtBy: ["shards"],
  },
];

/** Shards that are merged. */
const MERGES: readonly Mutant[] = [
  {
    name: "merge-loses-debt",
    breaks: "A merge takes a shard in debt for an empty one.",
    changes: [
      {
        file: `${BUCKETS}/shards/merge.ts`,
        from: "const tokensMilli = mine.balanceMilli + others.balanceMilli + whole;",
        to: "const tokensMilli = mine.balanceMilli + Math.max(0, others.balanceMilli) + whole;",
      },
    ],
    world: "merges",
    caughtBy: ["over-admission"],
  },
  {
    name: "merge-pays-twice",
    breaks:
      "A merge does not require the shard that goes to be as it was seen: what was consumed from " +
      "it meanwhile comes back.",
    changes: [
      {
        file: `${BUCKETS}/shards/merge.ts`,
        from: "plan.requireBalance(name, stored);",
        // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a text of the sources
        to: "plan.requireNumber(`b_${name}_rr`, stored.remainder);",
      },
      {
        file: `${BUCKETS}/shards/merge.ts`,
        // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a text of the sources
        from: 'plan.require({ is: "=", name: `b_${name}_tc`, value, orAbsent: total === undefined });',
        to: "void value;",
      },
    ],
    world: "merges",
    caughtBy: ["over-admission", "conservation", "books"],
  },
  {
    name: "merge-undone",
    breaks:
      "A client that still counts a merged shard splits it off again, although the first shard " +
      "is about to stop counting it.",
    changes: [
      {
        file: `${BUCKETS}/shards/splitter.ts`,
        from: 'if (from.generation > first.generation) return "none";',
        to: "",
      },
    ],
    world: "merges",
    caughtBy: ["shards"],
  },
  {
    name: "merge-drops-refund",
    breaks: "A refund to a shard that was merged is dropped.",
    changes: [
      {
        file: `${BUCKETS}/consume/adjuster.ts`,
        from: "if (heir !== undefined) return heir.generation > 0 ? shard : undefined;",
        to: "if (heir !== undefined) return undefined;",
      },
    ],
    world: "merges",
    caughtBy: ["books"],
  },
];

/** Refusals and waits that nothing explains. */
const REFUSALS: readonly Mutant[] = [
  {
    name: "refuses-too-early",
    breaks: "A consume is refused while the bucket has up to half a token more than it asks for.",
    changes: [
      {
        file: `${BUCKETS}/plan/consume-plan.ts`,
        from: "    return balanceOf(balance);\n",
        to: "    return balanceOf(balance) - 500;\n",
      },
    ],
    world: "scarce",
    caughtBy: ["refusals", "leases"],
  },
  {
    name: "refuses-by-old-knowledge",
    breaks: "A cached state refuses without a request for five seconds instead of one.",
    changes: [
      {
        file: "packages/limiter/src/buckets/spent.ts",
        from: "export const KNOWN_MS = 1000;",
        to: "export const KNOWN_MS = 5000;",
      },
    ],
    world: "scarce",
    caughtBy: ["refusals"],
  },
  {
    name: "refund-wakes-no-waiter",
    breaks: "A refund is not told to the calls of the same process that wait for its bucket.",
    changes: [
      {
        file: "packages/limiter/src/acquire/acquirer.ts",
        from: "this.#queues.refund(bucket, tokens);",
        to: "void [bucket, tokens];",
      },
    ],
    world: "waits",
    caughtBy: ["refusals"],
  },
  {
    name: "waits-for-limits-of-others",
    breaks: "A waiter waits for those ahead of it, whatever limits they wait for.",
    changes: [
      {
        file: "packages/limiter/src/acquire/waiting/waiter-lanes.ts",
        from: '  return names.sort().join(" ");',
        to: '  return "";',
      },
      {
        file: "packages/limiter/src/acquire/waiting/waiter-lanes.ts",
        from: 'return amount > 0 ? name : "";',
        to: 'return (void [name, amount], "");',
      },
    ],
    world: "waits",
    caughtBy: ["refusals"],
  },
];

/** Groups of consumes that share a write. */
const COMBINED: readonly Mutant[] = [
  {
    name: "group-consumes-too-little",
    breaks: "A write that several calls share consumes what the first of them asks for.",
    changes: [
      {
        file: `${BUCKETS}/plan/consume-plan.ts`,
        from: "planConsume(bucket, config, sumOf(some), {",
        to: "planConsume(bucket, config, sumOf(some.slice(0, 1)), {",
      },
    ],
    world: "any",
    caughtBy: ["books", "leases"],
  },
  {
    name: "group-past-a-limit",
    breaks: "Calls of a group that do not fit behind the others are granted with them.",
    changes: [
      {
        file: `${BUCKETS}/consume/next.ts`,
        from: "const { members, atMs } = write;",
        to: "const { members, atMs } = { ...write, members: request.members };",
      },
    ],
    world: "any",
    caughtBy: ["books", "leases"],
  },
];

/** Reserved blocks. A block that is returned twice belongs here. */
const BLOCKS: readonly Mutant[] = [];

export const MUTANTS: readonly Mutant[] = [
  ...ARITHMETIC,
  ...RACES,
  ...EXPIRY,
  ...SPLITS,
  ...MERGES,
  ...REFUSALS,
  ...COMBINED,
  ...BLOCKS,
  ...OPERATOR_MUTANTS,
  ...QUOTA_MUTANTS,
  ...SLOT_MUTANTS,
];

/** Changes that no world can catch, because they do no harm: why. */
export const HARMLESS: Readonly<Record<string, string>> = {
  "the ttl test of a consuming write is dropped":
    "The time to live of an item with the same base time only grows or goes away, so the item " +
    "lives at least as long as the cached state says; a write that finds it expired there renews " +
    "it, and once the item is removed the test of the base time fails.",
  "the test of the config version of a consuming write is dropped":
    "Only a rebase writes the config version, and it moves or numbers the base time, which the " +
    "same condition tests; the Python library changes limits without a config version.",
  "a prediction is undone when the outcome of its write is unknown":
    "Predictions are hints: the conditions of the next write decide, and at worst it is repeated.",
  "a split of a full shard leaves the whole balance with the old half":
    "A stored balance above the capacity of a shard reads as full, which the half of a full shard " +
    "is, and every relative write requires a balance at most at capacity first.",
};
