/** Mutants of what operators do, and of calls for several resources. */

import type { Mutant } from "./mutants.ts";

const BUCKETS = "packages/limiter/src/buckets/distributed";

/** Switches: off, on, bypass. */
const SWITCHES: readonly Mutant[] = [
  {
    name: "disabled-entity-granted",
    breaks: "A switch that is set for all resources of an entity refuses nothing.",
    changes: [
      {
        file: "packages/limiter/src/acquire/legs.ts",
        from: "if (disabledAt !== undefined) {",
        to: 'if (disabledAt !== undefined && disabledAt !== "entity_default") {',
      },
    ],
    world: "switched",
    caughtBy: ["switches"],
  },
  {
    name: "switch-known-too-late",
    breaks: "What is stored for levels is cached for three times as long as was asked for.",
    changes: [
      {
        file: "packages/limiter/src/records/config/config-cache.ts",
        from: "return this.#clock() + this.ttlSeconds * 1000;",
        to: "return this.#clock() + this.ttlSeconds * 3000;",
      },
    ],
    world: "switched",
    caughtBy: ["switches"],
  },
  {
    name: "bypass-consumes",
    breaks: "A call that bypasses its limits consumes from the balance all the same.",
    changes: [
      {
        file: `${BUCKETS}/plan/write-plan.ts`,
        from: "if (context.bypass === true) return planCount(plan, name, balance);",
        to: "",
      },
    ],
    world: "switched",
    caughtBy: ["switches", "over-admission"],
  },
];

/** Moves of entities. */
const MOVES: readonly Mutant[] = [
  {
    name: "refund-to-new-parent",
    breaks:
      "What a lease has consumed from the parent is refunded to the parent that its entity has " +
      "by then.",
    changes: [
      {
        file: "packages/limiter/src/acquire/acquirer.ts",
        from: "        return { legs, shares, outcomes, heldFromMs: this.#heldFrom(outcomes) };",
        to: `        const parents = ((globalThis as any).parents ??= new Map());
        parents.set(legs[0]?.entityId, legs[1]?.entityId);
        return { legs, shares, outcomes, heldFromMs: this.#heldFrom(outcomes) };`,
      },
      {
        file: "packages/limiter/src/acquire/lease/lease-holdings.ts",
        from: "      return this.#host.buckets.refund(adjustmentOf(holding, deltasMilli));",
        to: `      const own = this.#target.entityId;
        const entityId = holding.entityId === own
          ? own
          : (globalThis as any).parents.get(own) ?? holding.entityId;
        return this.#host.buckets.refund({ ...adjustmentOf(holding, deltasMilli), entityId });`,
      },
    ],
    world: "moved",
    caughtBy: ["leases", "books"],
  },
  {
    name: "refused-by-old-parent",
    breaks: "An exhausted ancestor refuses calls of an entity that was moved away from it.",
    changes: [
      {
        file: `${BUCKETS}/consume/cascade.ts`,
        from: "  if (legs.length === 1) return",
        to: "  if (legs.length > 0) return",
      },
    ],
    world: "moved",
    caughtBy: ["links"],
  },
];

/** Resets and top-ups. */
const OPERATIONS: readonly Mutant[] = [
  {
    name: "top-up-applied-twice",
    breaks: "A reset or a top-up that was made before under the same key is made again.",
    changes: [
      {
        file: `${BUCKETS}/admin/bucket-operations.ts`,
        from: "if (before !== undefined) return before;",
        to: "",
      },
    ],
    world: "filled",
    caughtBy: ["operations"],
  },
  {
    name: "top-up-of-one-shard",
    breaks: "A reset or a top-up of a bucket with several shards changes the first of them only.",
    changes: [
      {
        file: `${BUCKETS}/admin/bucket-operations.ts`,
        from: "if (plan === undefined || balance === undefined) return;",
        to: "if (plan === undefined || balance === undefined || at > 0) return;",
      },
    ],
    world: "filled",
    caughtBy: ["operations"],
  },
];

/** Several resources in one acquire. */
const SEVERAL: readonly Mutant[] = [
  {
    name: "also-half-consumed",
    breaks: "A call of which one resource is refused keeps what it has consumed of another.",
    changes: [
      {
        file: `${BUCKETS}/consume/cascade.ts`,
        from: 'if (answer?.kind !== "consumed" || !consumes(leg.amountsMilli)) return [];',
        to: `if (answer?.kind !== "consumed" || !consumes(leg.amountsMilli)) return [];
      if (leg.resource !== legs[0]?.resource) return [];`,
      },
    ],
    world: "several",
    caughtBy: ["books"],
  },
];

/** Limits over all resources, and parts of other entities. */
const TOTALS: readonly Mutant[] = [
  {
    name: "total-of-ancestor-forgotten",
    breaks: "Totals of ancestors count nothing.",
    changes: [
      {
        file: "packages/limiter/src/acquire/legs.ts",
        from: "const entities = next === undefined ? chain : [...chain, next.entityId];",
        to: "const entities = chain.slice(0, 1);",
      },
    ],
    world: "totals",
    caughtBy: ["leases"],
  },
  {
    name: "total-kept-by-refusal",
    breaks: "A call that a resource refuses keeps what it has consumed from the total.",
    changes: [
      {
        file: `${BUCKETS}/consume/cascade.ts`,
        from: 'if (answer?.kind !== "consumed" || !consumes(leg.amountsMilli)) return [];',
        to: `if (answer?.kind !== "consumed" || !consumes(leg.amountsMilli)) return [];
      if (leg.resource === TOTAL) return [];`,
      },
    ],
    world: "totals",
    caughtBy: ["books"],
  },
  {
    name: "total-not-corrected",
    breaks: "Corrections of a lease leave the total as it was.",
    changes: [
      {
        file: "packages/limiter/src/acquire/lease/lease-holdings.ts",
        from: "for (const [name, delta] of deltas) addPending(holdings, name, delta * 1000);",
        to: `for (const [name, delta] of deltas) {
        if (holdings[0]?.resource !== "@all") addPending(holdings, name, delta * 1000);
      }`,
      },
    ],
    world: "totals",
    caughtBy: ["books"],
  },
  {
    name: "shares-of-a-bucket-mixed-up",
    breaks: "The first part of a call holds all that several parts consumed from one bucket.",
    changes: [
      {
        file: "packages/limiter/src/acquire/lease/holding.ts",
        from: "const heldMilli = restMilli.map((rest, at) => Math.min(rest, open[at] ?? 0));",
        to: "const heldMilli = [...restMilli];",
      },
    ],
    world: "totals",
    caughtBy: ["leases"],
  },
];

/** Limits that entities store for their children. */
const CHILDREN: readonly Mutant[] = [
  {
    name: "children-of-the-wrong-entity",
    breaks: "An entity has the limits that it stores for its own children.",
    changes: [
      {
        file: "packages/limiter/src/records/config/config-slots.ts",
        from: 'parentId: textAt(item, "parent_id"),',
        to: 'parentId: textAt(item, "entity_id"),',
      },
    ],
    world: "children",
    caughtBy: ["refusals"],
  },
  {
    name: "children-below-the-resource",
    breaks: "Limits of the resource come before those for children.",
    changes: [
      {
        file: "packages/limiter/src/records/config/config-slots.ts",
        from: "const slots = [own, byDefault, parents[0], parents[1], ofResource, system] as const;",
        to: "const slots = [own, byDefault, ofResource, parents[0], parents[1], system] as const;",
      },
    ],
    world: "children",
    caughtBy: ["refusals"],
  },
];

export const OPERATOR_MUTANTS: readonly Mutant[] = [
  ...SWITCHES,
  ...MOVES,
  ...OPERATIONS,
  ...SEVERAL,
  ...TOTALS,
  ...CHILDREN,
];
