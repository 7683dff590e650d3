/**
 * Changes of levels inside a period: limits of an entity that come and go, other kinds, moves to
 * parents with limits for their children. Whatever the order, a quota grants its allowance once.
 */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { MemoryItemStore } from "@zae-limiter/limiter/storage/memory/item-store.ts";
import { casesOf } from "@zae-limiter/test-support/effort.ts";
import { halveShards } from "@zae-limiter/test-support/force-merge.ts";
import { splitShard } from "@zae-limiter/test-support/force-split.ts";
import { overTable } from "@zae-limiter/test-support/over-table.ts";
import fc from "fast-check";
import { expect, test } from "vitest";

const START_MS = Date.parse("2027-01-15T06:00Z");
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const KEY = { entityId: "key", resource: "api" };
const PLACE = { resource: "api" };
const SEED = Number(process.env.FC_SEED ?? 20_251_115);
const RUNS = casesOf(100);
/** Every quota that a level has, so that no change of an amount grants more. */
const QUOTA = "req:10/day UTC";
const PARENTS = ["plain", "quota", "rate"] as const;
const SPLITS_MAX = 3;

type Command =
  | { readonly do: "take"; readonly amount: number; readonly waitMs: number }
  | { readonly do: "refund" }
  | { readonly do: "own"; readonly limit: string }
  | { readonly do: "delete" | "split" | "merge" }
  | { readonly do: "move"; readonly parentId: (typeof PARENTS)[number] }
  | { readonly do: "resource"; readonly limits: readonly string[] };

const LIMITS = [QUOTA, "req:10/min", "req:10/session:12hour"];

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("take" as const),
      amount: fc.integer({ min: 1, max: 8 }),
      waitMs: fc.oneof(fc.nat(100), fc.nat(2 * HOUR_MS)),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ do: "refund" as const }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("own" as const),
      limit: fc.constantFrom(...LIMITS),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom("delete" as const, "split" as const, "merge" as const),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("move" as const),
      parentId: fc.constantFrom(...PARENTS),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("resource" as const),
      limits: fc.constantFrom(...LIMITS.map((limit) => [limit]), ["tpm:5/min"]),
    }),
  },
);

interface Held {
  readonly endMs: number;
  readonly amount: number;
  readonly rollback: () => Promise<void>;
}

class Run {
  #nowMs = START_MS;
  readonly clock = () => this.#nowMs;
  readonly #items: MemoryItemStore | undefined;
  #limiter!: RateLimiter;
  readonly #held: Held[] = [];
  /** Tokens that the quota has granted, by the end of its period. */
  readonly #sums = new Map<number, number>();
  #splits = 0;

  constructor(isDistributed: boolean) {
    this.#items = isDistributed ? new MemoryItemStore({ clock: this.clock }) : undefined;
  }

  async open(): Promise<void> {
    const { clock } = this;
    this.#limiter =
      this.#items === undefined
        ? await RateLimiter.open("memory:", { clock })
        : new RateLimiter(await overTable(this.#items, { clock }));
    const { entities, limits } = this.#limiter.repository;
    await limits.setResource("api", [QUOTA]);
    await entities.create({ id: KEY.entityId });
    for (const id of PARENTS) await entities.create({ id });
    await limits.setChildren("quota", [QUOTA], PLACE);
    await limits.setChildren("rate", ["req:10/min"], PLACE);
  }

  async carryOut(command: Command): Promise<unknown> {
    const { entities, limits } = this.#limiter.repository;
    const how = { ...PLACE, replaceKind: true };
    switch (command.do) {
      case "take":
        return this.#take(command.amount, command.waitMs);
      case "refund":
        return this.#refund();
      case "own":
        return limits.setEntity(KEY.entityId, [command.limit], how);
      case "delete":
        return limits.deleteEntity(KEY.entityId, PLACE);
      case "move":
        return entities.setParent(KEY.entityId, command.parentId);
      case "resource":
        return limits.setResource("api", command.limits, { replaceKind: true });
      default:
        return this.#reshape(command.do);
    }
  }

  async #take(amount: number, waitMs: number): Promise<void> {
    this.#nowMs += waitMs;
    const call = { ...KEY, consume: { req: amount }, missingLimits: "ignore" } as const;
    const decision = await this.#limiter.tryAcquire(call);
    if (!decision.granted) return;
    const { lease } = decision;
    const status = lease.statuses.find(({ limitName }) => limitName === "req");
    if (status?.kind !== "quota") return;
    const { resetsAtMs: endMs = 0 } = status;
    this.#add(endMs, amount);
    this.#held.push({ endMs, amount, rollback: () => lease.rollback() });
  }

  async #refund(): Promise<void> {
    const held = this.#held.pop();
    await held?.rollback();
    if (held !== undefined && this.#nowMs < held.endMs) this.#add(held.endMs, -held.amount);
  }

  async #reshape(deed: "split" | "merge"): Promise<void> {
    if (this.#items === undefined) return;
    const target = { namespaceId: this.#limiter.repository.namespaceId, ...KEY };
    if (deed === "merge") {
      if (await halveShards(this.#items, target, this.#nowMs)) this.#splits -= 1;
    } else if (this.#splits < SPLITS_MAX) {
      if (await splitShard(this.#items, target, 0, this.#nowMs)) this.#splits += 1;
    }
  }

  #add(endMs: number, amount: number): void {
    this.#sums.set(endMs, (this.#sums.get(endMs) ?? 0) + amount);
  }

  async check(): Promise<void> {
    for (const sum of this.#sums.values()) expect(sum).toBeLessThanOrEqual(10);
    const days = Math.floor((this.#nowMs - START_MS) / DAY_MS);
    expect(this.#sums.size).toBeLessThanOrEqual(days + 2);
    await this.#limiter.close();
  }
}

async function check(commands: readonly Command[], isDistributed: boolean): Promise<void> {
  const run = new Run(isDistributed);
  await run.open();
  for (const each of commands) await run.carryOut(each);
  await run.check();
}

test.each([
  ["in memory", false],
  ["in items with shards", true],
])(
  `changes of levels, kinds and parents inside a period grant no quota twice: %s (${RUNS} runs, FC_SEED=${SEED})`,
  async (_, isDistributed) => {
    const commands = fc.array(command, { minLength: 10, maxLength: 50 });
    const property = fc.asyncProperty(commands, (drawn) => check(drawn, isDistributed));
    await fc.assert(property, { seed: SEED, numRuns: RUNS, endOnFailure: true });
  },
);
