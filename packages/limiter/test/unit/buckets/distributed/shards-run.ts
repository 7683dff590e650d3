/**
 * One run of the model of sharded buckets: every shard is followed by an ideal bucket of its own,
 * to the least part of a milli-token, and all together by one ideal bucket that was never split.
 */

import { setImmediate as tick } from "node:timers/promises";
import { UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { shardRate } from "@zae-limiter/limiter/core/bucket.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { bucketKey } from "@zae-limiter/limiter/records/keys.ts";
import type { Item } from "@zae-limiter/limiter/storage/item.ts";
import { halveShards } from "@zae-limiter/test-support/force-merge.ts";
import { splitShard } from "@zae-limiter/test-support/force-split.ts";
import { type Client, TARGET, Table } from "@zae-limiter/test-support/table.ts";
import { compare, type Fraction, fraction, minus, plus, show, smaller, ZERO } from "../fraction.ts";
import { IdealLimit } from "../ideal-bucket.ts";
import { type Held, heldIn } from "../subject.ts";

export type ShardCommand =
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "take"; readonly client: number; readonly amounts: readonly [number, number] }
  | { readonly do: "refund"; readonly which: number }
  | { readonly do: "adjust"; readonly which: number; readonly delta: number }
  | { readonly do: "split"; readonly factor: number }
  | { readonly do: "merge" };

interface Grant {
  readonly parts: readonly { readonly shard: number; readonly amountsMilli: readonly number[] }[];
}

const NAMED = { namespaceId: "ns", ...TARGET };
const NAMES = ["a", "b"] as const;
const COUNT_MAX = 16;

export class ShardsRun {
  readonly #table = new Table(0);
  readonly #clients: readonly Client[];
  readonly #limits: readonly Limit[];
  readonly #whole = new Map<string, IdealLimit>();
  /** Keyed by shard, then by limit. */
  readonly #shards = new Map<number, Map<string, IdealLimit>>();
  readonly #grants: Grant[] = [];
  #debts = false;

  constructor(limits: readonly [string, string]) {
    this.#clients = [0, 1, 2].map(() => this.#table.client());
    this.#limits = limits.map((text) => Limit.parse(text));
    for (const { name, rate } of this.#limits) {
      this.#whole.set(name, new IdealLimit(rate, this.#table.nowMs, 0));
    }
    const first = [...this.#whole].map(([name, { rate }]) => [
      name,
      new IdealLimit(rate, this.#table.nowMs, 0),
    ]);
    this.#shards.set(0, new Map(first as [string, IdealLimit][]));
  }

  async run(commands: readonly ShardCommand[]): Promise<void> {
    for (const command of commands) {
      await this.#carryOut(command);
      // Background work of clients is done, and checked, before time passes.
      await tick();
      this.#follow([]);
      this.#refill();
    }
  }

  async #carryOut(command: ShardCommand): Promise<void> {
    switch (command.do) {
      case "wait":
        this.#table.nowMs += command.ms;
        return this.#refill();
      case "split": {
        const count = Number(this.#items().get(0)?.shard_count ?? COUNT_MAX);
        const factor = Math.min(command.factor, COUNT_MAX / count);
        if (factor < 2) return;
        await splitShard(this.#table.items, NAMED, 0, this.#table.nowMs, factor);
        return this.#follow([]);
      }
      case "merge":
        await halveShards(this.#table.items, NAMED, this.#table.nowMs);
        return this.#follow([]);
      case "take":
        return this.#take(this.#clients[command.client] as Client, command.amounts);
      case "refund": {
        const [grant] = this.#grants.splice(command.which % Math.max(1, this.#grants.length), 1);
        for (const part of grant?.parts ?? []) {
          await this.#adjust(
            part.shard,
            [...part.amountsMilli].map((amount) => -amount),
          );
        }
        return;
      }
      case "adjust": {
        const grant = this.#grants[command.which % Math.max(1, this.#grants.length)];
        this.#debts ||= command.delta > 0 && grant !== undefined;
        if (grant !== undefined) await this.#adjust(grant.parts[0]?.shard ?? 0, [command.delta, 0]);
      }
    }
  }

  async #take(client: Client, amountsMilli: readonly number[]): Promise<void> {
    const leg = {
      ...TARGET,
      config: this.#config,
      amountsMilli,
      link: UNLINKED,
      linkIsFresh: true,
    };
    let result = await client.store.consume([leg]);
    // What an image of the last second showed may refuse without asking: ask.
    if (result.outcome === "refused" && result.local) {
      result = await client.store.consume([leg], { speculative: false });
    }
    if (result.outcome === "outdated" || result.outcome === "relinked") {
      throw new Error("nothing has changed");
    }
    if (result.outcome === "refused") {
      this.#follow([]);
      return this.#checkRefusal(amountsMilli, result.balancesMilli[0] as readonly number[]);
    }
    const parts = result.legs[0]?.parts ?? [];
    amountsMilli.forEach((amount, at) => {
      const sum = parts.reduce((total, part) => total + (part.amountsMilli[at] as number), 0);
      invariant(sum === amount, () => `the parts of ${amount} add up to ${sum}`);
      const whole = this.#whole.get(NAMES[at] as string) as IdealLimit;
      const fits = this.#debts || amount === 0 || compare(fraction(amount), whole.level) <= 0;
      invariant(fits, () => `granted ${amount} of ${show(whole.level)}`);
    });
    this.#grants.push({ parts });
    this.#follow(parts);
  }

  async #adjust(shard: number, deltasMilli: readonly number[]): Promise<void> {
    const adjustment = { ...TARGET, shard, config: this.#config, deltasMilli };
    await (this.#clients[0] as Client).store.adjust(adjustment);
    this.#follow([{ shard, amountsMilli: deltasMilli }]);
  }

  /** Takes the parts from the ideal ones, and sees whether what is stored is the same. */
  #follow(parts: Grant["parts"]): void {
    if (this.#items().size === 0) return;
    this.#refill();
    NAMES.forEach((name, at) => {
      let taken = 0;
      for (const { amountsMilli } of parts) taken += amountsMilli[at] as number;
      (this.#whole.get(name) as IdealLimit).take(taken);
      this.#followLimit(name, parts, at);
    });
  }

  #followLimit(name: string, parts: Grant["parts"], at: number): void {
    const { nowMs } = this.#table;
    const { rate } = this.#whole.get(name) as IdealLimit;
    const items = this.#items();
    const expected = new Map<number, Fraction>();
    const found = new Map<number, Fraction>();
    let consumed = 0n;
    const add = (sums: Map<number, Fraction>, shard: number, level: Fraction) =>
      sums.set(shard, plus(sums.get(shard) ?? ZERO, level));
    for (const [shard, limits] of this.#shards) {
      add(expected, this.#holder(shard, items), (limits.get(name) as IdealLimit).level);
    }
    for (const { shard, amountsMilli } of parts) {
      const known = this.#holder(shard, items);
      const after = minus(expected.get(known) ?? ZERO, fraction(amountsMilli[at] as number));
      expected.set(known, smaller(this.#fullOf(known, name, items), after));
    }
    const fresh = new Map<number, IdealLimit>();
    for (const [shard, item] of items) {
      const held = heldIn(item, nowMs).get(name) as Held;
      const share = shardRate(rate, shard, Number(item.shard_count));
      const ideal = new IdealLimit(share, nowMs, 0);
      ideal.level = smaller(ideal.full, held.level);
      consumed += held.consumed;
      fresh.set(shard, ideal);
      add(found, this.#holder(shard, items), ideal.level);
    }
    for (const [shard, level] of found) {
      const wanted = expected.get(shard) as Fraction;
      const lost = this.#isMerged(shard, items) ? fraction(1, rate.periodMs) : ZERO;
      const same = compare(level, wanted) <= 0 && compare(wanted, plus(level, lost)) <= 0;
      invariant(same, () => `"${name}" of ${shard} is ${show(level)}, not ${show(wanted)}`);
    }
    const whole = this.#whole.get(name) as IdealLimit;
    invariant(consumed === whole.consumed, () => `tc is ${consumed}, not ${whole.consumed}`);
    this.#next.set(name, fresh);
    if (this.#next.size < NAMES.length) return;
    this.#shards.clear();
    for (const shard of fresh.keys()) {
      const limits = NAMES.map((each) => [each, this.#next.get(each)?.get(shard)] as const);
      this.#shards.set(shard, new Map(limits as [string, IdealLimit][]));
    }
    this.#next.clear();
  }

  readonly #next = new Map<string, Map<number, IdealLimit>>();

  /** The shard that held the share of this one before the command, and holds it now. */
  #holder(shard: number, items: ReadonlyMap<number, Item>): number {
    let known = shard;
    while (!this.#shards.has(known) || !items.has(known)) {
      known -= 2 ** Math.floor(Math.log2(known));
    }
    return known;
  }

  /** A merge may lose half of the least part that is stored. */
  #isMerged(holder: number, items: ReadonlyMap<number, Item>): boolean {
    return [...this.#shards.keys()].some(
      (shard) => !items.has(shard) && this.#holder(shard, items) === holder,
    );
  }

  /** Sum of `full` of all shards that share a holder. */
  #fullOf(holder: number, name: string, items: ReadonlyMap<number, Item>): Fraction {
    let full = ZERO;
    for (const [shard, limits] of this.#shards) {
      if (this.#holder(shard, items) !== holder) continue;
      full = plus(full, (limits.get(name) as IdealLimit).full);
    }
    return full;
  }

  /** Time passes; the whole is never behind its parts. */
  #refill(): void {
    const { nowMs } = this.#table;
    for (const whole of this.#whole.values()) whole.refill(nowMs);
    for (const [name, whole] of this.#whole) {
      let sum = ZERO;
      for (const limits of this.#shards.values()) {
        const ideal = limits.get(name) as IdealLimit;
        ideal.refill(nowMs);
        sum = plus(sum, ideal.level);
      }
      const below = compare(sum, whole.level) <= 0;
      invariant(below, () => `"${name}" has ${show(sum)} in parts, and ${show(whole.level)} whole`);
    }
  }

  #checkRefusal(amountsMilli: readonly number[], balancesMilli: readonly number[]): void {
    const floors = NAMES.map((name) =>
      [...this.#shards.values()].map((limits) => floor((limits.get(name) as IdealLimit).level)),
    );
    const sums = floors.map((levels) => levels.reduce((sum, level) => sum + level, 0n));
    const short = amountsMilli.some(
      (amount, at) => amount > 0 && BigInt(amount) > (sums[at] ?? 0n),
    );
    invariant(short, () => `refused ${amountsMilli} of ${sums}`);
    const shown = balancesMilli.every((balance, at) => BigInt(balance) === sums[at]);
    invariant(shown, () => `shown ${balancesMilli} of ${sums}`);
    const single = [...this.#shards.values()].some((limits) =>
      amountsMilli.every((amount, at) => {
        const ideal = limits.get(NAMES[at] as string) as IdealLimit;
        return amount === 0 || compare(fraction(amount), ideal.level) <= 0;
      }),
    );
    invariant(!single, () => `refused ${amountsMilli} although one shard has that`);
  }

  get #config() {
    return { limits: this.#limits, source: "resource", version: 1 } as const;
  }

  #items(): Map<number, Item> {
    const items = new Map<number, Item>();
    for (let shard = 0; shard < COUNT_MAX; shard += 1) {
      const key = bucketKey("ns", TARGET.entityId, TARGET.resource, shard);
      const item = this.#table.items.readNow(key);
      // A merge leaves a stub behind, which has no base time.
      if (item?.rf !== undefined) items.set(shard, item);
    }
    return items;
  }
}

function floor({ num, den }: Fraction): bigint {
  const quotient = num / den;
  return num % den < 0n ? quotient - 1n : quotient;
}

function invariant(holds: boolean, message: () => string): void {
  if (!holds) throw new Error(message());
}
