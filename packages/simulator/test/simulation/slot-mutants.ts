/** Mutants of slots: what makes them exact where answers are lost, late, or never come. */

import type { Mutant } from "./mutants.ts";

const SLOTS = "packages/limiter/src/buckets/distributed/slots";

export const SLOT_MUTANTS: readonly Mutant[] = [
  {
    name: "count-without-sequence",
    breaks: "An entry says how many slots it holds, and not how many writes it has seen.",
    changes: [
      {
        file: "packages/limiter/src/records/slot-attributes.ts",
        from: "return sequence * SEQUENCE_UNIT + count;",
        to: "return 0 * sequence + count;",
      },
    ],
    world: "slots",
    caughtBy: ["over-admission", "conservation", "leases", "books"],
  },
  {
    name: "no-fence",
    breaks: "A write that has not landed when it is looked for counts as one that never will.",
    changes: [
      {
        file: `${SLOTS}/own-slots.ts`,
        from: 'if (outcome !== "open") return outcome;',
        to: 'if (outcome !== "open" || key.SK !== "") return outcome === "open" ? "gone" : outcome;',
      },
    ],
    world: "slots",
    caughtBy: ["over-admission", "conservation", "books"],
  },
  {
    name: "release-of-anothers-slot",
    breaks:
      "A lease whose slots were reclaimed gives back slots of other leases of its process: others " +
      "take them too early, or their own leases find too few to give back.",
    changes: [
      {
        file: `${SLOTS}/own-slots.ts`,
        from: "const name = entry ?? this.#entryOf(entries, holderId as string);",
        to:
          "const known = entry === undefined || entries.has(entry) ? entry : " +
          "([...entries.keys()][0] ?? entry);\n" +
          "const name = known ?? this.#entryOf(entries, holderId as string);",
      },
    ],
    world: "slots",
    caughtBy: ["over-admission", "conservation"],
  },
  {
    name: "reclaim-of-a-live-holder",
    breaks: "A holder is dead a second before its record is over.",
    changes: [
      {
        file: "packages/limiter/src/buckets/slots/slot-holder.ts",
        from: "record.untilMs + times.graceMs <= nowMs;",
        to: "record.untilMs - 1000 <= nowMs;",
      },
    ],
    world: "slots",
    caughtBy: ["leases", "over-admission"],
  },
];
