/**
 * Compares a quota of several clients with the ideal one: no period grants more than its allowance
 * and what was refunded to it, and there are no more periods than days pass.
 */

import { type Leg, refundOf } from "@zae-limiter/limiter/buckets/leg.ts";
import { Periods } from "@zae-limiter/limiter/domain/periods.ts";
import { casesOf } from "@zae-limiter/test-support/effort.ts";
import { halveShards } from "@zae-limiter/test-support/force-merge.ts";
import { splitShard } from "@zae-limiter/test-support/force-split.ts";
import {
  type Client,
  configOf,
  NAMESPACE,
  TARGET,
  Table,
} from "@zae-limiter/test-support/table.ts";
import fc from "fast-check";
import { expect, test } from "vitest";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ALLOWANCE_MILLI = 25_000;
const CONFIG = configOf(["a:25/day Africa/Lagos"]);
const SEED = Number(process.env.FC_SEED ?? 20_251_115);
const RUNS = casesOf(150);
/** More would pass the most shards that a bucket can have. */
const SPLITS_MAX = 3;

interface Granted {
  readonly leg: Leg;
  readonly shard: number;
  readonly endMs: number;
}

interface Command {
  readonly client: number;
  readonly waitMs: number;
  readonly amount: number;
  readonly deed: "take" | "refund" | "split" | "merge";
  readonly which: number;
}

interface World {
  /** Milliseconds that the clocks of the clients are ahead. */
  readonly aheadMs: readonly number[];
  /** Hours by which their data of the zone differ. */
  readonly shiftHours: readonly number[];
  readonly commands: readonly Command[];
}

const command: fc.Arbitrary<Command> = fc.record({
  client: fc.nat(2),
  waitMs: fc.oneof(fc.nat(1500), fc.nat(3 * HOUR_MS), fc.nat(30 * HOUR_MS)),
  amount: fc.integer({ min: 1, max: 12 }),
  deed: fc.constantFrom<Command["deed"]>("take", "take", "take", "refund", "split", "merge"),
  which: fc.nat(20),
});

/** Shards whose clients disagree on the zone may be in different days at one instant: not both. */
const world = (isSplit: boolean): fc.Arbitrary<World> =>
  fc.record({
    aheadMs: fc.tuple(fc.nat(1500), fc.nat(1500), fc.nat(1500)),
    shiftHours: isSplit
      ? fc.constant([0, 0, 0])
      : fc.tuple(fc.constant(0), fc.integer({ min: -2, max: 2 }), fc.nat(2)),
    commands: fc.array(
      command.filter(({ deed }) => isSplit || (deed !== "split" && deed !== "merge")),
      { minLength: 20, maxLength: 60 },
    ),
  });

class Run {
  readonly #table = new Table();
  readonly #clients: readonly Client[];
  readonly #grants: Granted[] = [];
  /** Milli-tokens by the end of the period. */
  readonly #sums = new Map<number, number>();
  readonly #startMs = this.#table.nowMs;
  #splits = 0;

  constructor({ aheadMs, shiftHours }: World) {
    this.#clients = aheadMs.map((ms, at) => {
      const shiftMs = (1 + (shiftHours[at] ?? 0)) * HOUR_MS;
      return this.#table.client(ms, {}, new Periods(() => () => shiftMs));
    });
  }

  async carryOut({ client: at, waitMs, amount, deed, which }: Command): Promise<void> {
    this.#table.nowMs += waitMs;
    const client = this.#clients[at] as Client;
    if (deed === "refund") return this.#refund(client, which);
    if (deed === "split" || deed === "merge") return this.#reshape(deed);
    return this.#take(client, amount);
  }

  async #reshape(deed: "split" | "merge"): Promise<void> {
    const { items, nowMs } = this.#table;
    const target = { namespaceId: NAMESPACE, ...TARGET };
    if (deed === "merge") {
      if (await halveShards(items, target, nowMs)) this.#splits -= 1;
    } else if (this.#splits < SPLITS_MAX && (await splitShard(items, target, 0, nowMs))) {
      this.#splits += 1;
    }
  }

  async #take(client: Client, amount: number): Promise<void> {
    const leg = client.leg(CONFIG, [amount * 1000]);
    const result = await client.store.consume([leg]);
    if (result.outcome !== "granted") return;
    const [{ parts, periods } = { parts: [] }] = result.legs;
    const endMs = periods?.[0]?.endMs ?? 0;
    expect(endMs).toBeGreaterThan(this.#table.nowMs);
    for (const { shard, amountsMilli } of parts) {
      this.#grants.push({ leg: { ...leg, amountsMilli }, shard, endMs });
    }
    this.#add(endMs, amount * 1000);
  }

  /** Refunds a part that was granted, perhaps in a period that is over by now. */
  async #refund(client: Client, which: number): Promise<void> {
    const [granted] = this.#grants.splice(which % Math.max(1, this.#grants.length), 1);
    if (granted === undefined) return;
    const { leg, shard, endMs } = granted;
    const period = { endMs, grantedMilli: 0, atMs: 0 };
    const [refund] = refundOf(leg, [{ shard, amountsMilli: leg.amountsMilli }], [period]);
    if (refund !== undefined) await client.store.refund(refund);
    // After its end it must change nothing; before, the tokens may be granted again.
    if (this.#table.nowMs < endMs + 1500) this.#add(endMs, -(leg.amountsMilli[0] ?? 0));
  }

  #add(endMs: number, milli: number): void {
    this.#sums.set(endMs, (this.#sums.get(endMs) ?? 0) + milli);
  }

  check(): void {
    const periods = this.#periods();
    for (const milli of periods) expect(milli).toBeLessThanOrEqual(ALLOWANCE_MILLI);
    const days = (this.#table.nowMs - this.#startMs) / DAY_MS;
    expect(periods.length).toBeLessThanOrEqual(Math.ceil(days) + 1);
  }

  /** Returns the sums of days; shards whose ends differ by the data of a zone are of one day. */
  #periods(): readonly number[] {
    const sums: { readonly endMs: number; milli: number }[] = [];
    for (const [endMs, milli] of [...this.#sums].sort(([one], [other]) => one - other)) {
      const last = sums.at(-1);
      if (last !== undefined && endMs - last.endMs < DAY_MS / 2) last.milli += milli;
      else sums.push({ endMs, milli });
    }
    return sums.map(({ milli }) => milli);
  }
}

async function check(drawn: World): Promise<void> {
  const run = new Run(drawn);
  for (const each of drawn.commands) await run.carryOut(each);
  run.check();
}

test.each([
  ["clients with other data of the zone", false],
  ["shards that are split and merged at any time", true],
])(
  `no period of a quota grants more than its allowance: %s (${RUNS} runs, FC_SEED=${SEED})`,
  async (_, isSplit) => {
    const options = { seed: SEED, numRuns: RUNS, endOnFailure: true };
    await fc.assert(fc.asyncProperty(world(isSplit), check), options);
  },
);
