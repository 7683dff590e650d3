/** One run of the model test: commands, carried out by the code under test and by the ideal. */

import type { BucketStore } from "@zae-limiter/limiter/buckets/bucket-store.ts";
import { type BucketConfig, type Leg, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import { Limit } from "@zae-limiter/limiter/domain/limit.ts";
import { expect } from "vitest";
import { compare, fraction, minus, plus, show, smaller } from "./fraction.ts";
import { IdealBucket } from "./ideal-bucket.ts";
import { ENTITY, RESOURCE, type Subject, type SubjectOptions } from "./subject.ts";

/** Limits by name: capacity and refill in tokens, period in seconds. */
export type Limits = Readonly<Record<string, readonly [number, number, number]>>;
/** Milli-tokens by limit name. */
export type AmountsMilli = Readonly<Record<string, number>>;

export type Command =
  | { readonly do: "wait"; readonly ms: number }
  | {
      readonly do: "take";
      readonly client: number;
      readonly amounts: AmountsMilli;
      /** How many config changes the client is behind. */
      readonly behind: number;
      readonly override?: Limits | undefined;
      readonly speculative: boolean;
    }
  | { readonly do: "adjust"; readonly client: number; readonly deltas: AmountsMilli }
  | { readonly do: "refund"; readonly client: number; readonly which: number }
  | { readonly do: "configure"; readonly limits: Limits; readonly own: boolean }
  | { readonly do: "reconfigure"; readonly client: number }
  | { readonly do: "delete"; readonly client: number }
  | { readonly do: "sweep" }
  | { readonly do: "setBack"; readonly ms: number };

export interface Scenario {
  readonly limits: Limits;
  /** Milliseconds that each client's clock is ahead of the time. */
  readonly offsetsMs: readonly number[];
  readonly ttlMultiplier: number;
  readonly commands: readonly Command[];
}

const START_MS = 1_800_000_000_123;
/** Enough for every debt and the slowest limit. */
const AGES_MS = 100_000 * 86_400_000;

export class ModelRun {
  readonly #subject: Subject;
  readonly #offsetsMs: readonly number[];
  readonly #spreadMs: number;
  readonly #configs: BucketConfig[] = [];
  readonly #grants: { config: BucketConfig; amountsMilli: readonly number[] }[] = [];
  #ideal: IdealBucket | undefined;
  #nowMs = START_MS;
  /** The latest time that any client has seen. */
  #latestMs = 0;

  constructor(scenario: Scenario, open: (options: SubjectOptions) => Subject) {
    const { offsetsMs, commands } = scenario;
    const setBack = commands.reduce((sum, step) => sum + (step.do === "setBack" ? step.ms : 0), 0);
    this.#offsetsMs = offsetsMs;
    this.#spreadMs = Math.max(...offsetsMs) - Math.min(...offsetsMs) + setBack;
    this.#subject = open({
      clocks: offsetsMs.map((offset) => () => this.#nowMs + offset),
      clock: () => this.#nowMs,
      ttlMultiplier: scenario.ttlMultiplier,
    });
    this.#configure(scenario.limits, false);
    this.#see();
  }

  async run(commands: readonly Command[]): Promise<void> {
    for (const command of commands) {
      await this.#carryOut(command);
      this.#check();
    }
  }

  /** Idle until everything is full: then exactly the capacity is there, and not a milli more. */
  async settle(): Promise<void> {
    this.#nowMs += AGES_MS;
    this.#see();
    const config = this.#configs.at(-1) as BucketConfig;
    const full = config.limits.map(({ rate }) => rate.capacityMilli);
    const client = this.#client(0);
    // The first write applies the newest limits: what they raise has to fill up once more.
    await this.#take(
      client,
      config,
      full.map(() => 1),
      true,
    );
    this.#nowMs += AGES_MS;
    this.#see();
    const { balancesMilli } = await this.#subject.observer.read([legOf(config, [])]);
    expect(balancesMilli).toStrictEqual([full]);
    const all = await client.consume([legOf(config, full)]);
    expect(all.outcome).toBe("granted");
    const more = await client.consume([
      legOf(
        config,
        full.map(() => 1),
      ),
    ]);
    expect(more).toMatchObject({ outcome: "refused" });
  }

  async #carryOut(command: Command): Promise<void> {
    switch (command.do) {
      case "wait":
        this.#nowMs += command.ms;
        return this.#see();
      case "setBack":
        this.#nowMs -= command.ms;
        return this.#see();
      case "configure":
        return this.#configure(command.limits, command.own);
      case "sweep":
        await this.#subject.sweep();
        return this.#noticeExpiry();
      case "take": {
        const { behind, override, amounts, speculative } = command;
        const stored = this.#configs.at(-1 - Math.min(behind, this.#configs.length - 1));
        const config = override === undefined ? (stored as BucketConfig) : overrideOf(override);
        const amountsMilli = config.limits.map(({ name }) => amounts[name] ?? 0);
        return this.#take(this.#client(command.client), config, amountsMilli, speculative);
      }
      case "adjust":
        return this.#adjust(this.#client(command.client), command.deltas);
      case "refund":
        return this.#refund(this.#client(command.client), command.which);
      case "reconfigure": {
        const config = this.#configs.at(-1) as BucketConfig;
        await this.#client(command.client).reconfigure(ENTITY, RESOURCE, config);
        this.#noticeExpiry();
        if (this.#ideal?.match(config) === "apply") this.#ideal.apply(config, this.#latestMs);
        return;
      }
      case "delete":
        await this.#client(command.client).deleteEntity(ENTITY);
        this.#ideal = undefined;
        // A bucket created in the millisecond of the old one could not be distinguished from it.
        this.#nowMs += 1;
        this.#see();
    }
  }

  async #take(
    client: BucketStore,
    config: BucketConfig,
    amountsMilli: readonly number[],
    speculative: boolean,
  ): Promise<void> {
    const result = await client.consume([legOf(config, amountsMilli)], { speculative });
    this.#noticeExpiry();
    // What an image of the last second showed may refuse without asking: ask.
    if (result.outcome === "refused" && result.local) {
      return this.#take(client, config, amountsMilli, false);
    }
    const before = this.#ideal ?? new IdealBucket(config, this.#latestMs, this.#spreadMs);
    if (before.match(config) === "outdated") {
      expect(result.outcome).toBe("outdated");
      const newest = this.#configs.at(-1) as BucketConfig;
      const amounts = newest.limits.map(({ name }) => amountOf(config, amountsMilli, name));
      return this.#take(client, newest, amounts, speculative);
    }
    const levels = before.levels(config, this.#latestMs);
    if (result.outcome === "granted") {
      levels.forEach(({ level }, at) => {
        const amount = amountsMilli[at] as number;
        const fits = amount <= 0 || compare(fraction(amount), level) <= 0;
        invariant(fits, () => `granted ${amount} of ${show(level)}`);
      });
      if (before.match(config) === "apply") before.apply(config, this.#latestMs);
      config.limits.forEach(({ name }, at) => {
        before.limits.get(name)?.take(amountsMilli[at] as number);
      });
      this.#ideal = before;
      this.#grants.push({ config, amountsMilli });
    } else {
      expect(result.outcome).toBe("refused");
      const short = levels.some(({ level, slack }, at) => {
        const amount = amountsMilli[at] as number;
        return amount > 0 && compare(fraction(amount), minus(level, slack)) > 0;
      });
      invariant(short || this.#spreadMs > 0, () => "refused what would fit");
      if (this.#ideal?.match(config) === "apply" && this.#ideal.isKept(config)) {
        this.#ideal.apply(config, this.#latestMs);
      }
    }
  }

  async #adjust(client: BucketStore, deltas: AmountsMilli): Promise<void> {
    const config = this.#configs.at(-1) as BucketConfig;
    const deltasMilli = config.limits.map(({ name }) => deltas[name] ?? 0);
    await client.adjust({ ...target(config), deltasMilli });
    this.#noticeExpiry();
    this.#ideal?.refill(this.#latestMs);
    config.limits.forEach(({ name }, at) => {
      this.#ideal?.limits.get(name)?.take(deltasMilli[at] as number);
    });
  }

  async #refund(client: BucketStore, which: number): Promise<void> {
    const [grant] = this.#grants.splice(which % Math.max(1, this.#grants.length), 1);
    if (grant === undefined) return;
    const { config, amountsMilli } = grant;
    await client.refund({ ...target(config), deltasMilli: amountsMilli.map((sum) => -sum) });
    this.#noticeExpiry();
    this.#ideal?.refill(this.#latestMs);
    config.limits.forEach(({ name }, at) => {
      this.#ideal?.limits.get(name)?.take(-(amountsMilli[at] as number));
    });
  }

  /** A bucket may only expire when it equals a new one. */
  #noticeExpiry(): void {
    if (this.#ideal === undefined || this.#subject.held(this.#latestMs) !== undefined) return;
    this.#ideal.refill(this.#latestMs);
    for (const [name, limit] of this.#ideal.limits) {
      expect(limit.isFull, `"${name}" expired before it was full`).toBe(true);
    }
    this.#ideal = undefined;
  }

  #check(): void {
    this.#noticeExpiry();
    const held = this.#subject.held(this.#latestMs);
    this.#ideal?.refill(this.#latestMs);
    const names = [...(this.#ideal?.limits.keys() ?? [])].sort().join();
    const found = [...(held?.keys() ?? [])].sort().join();
    invariant(found === names, () => `limits are ${found}, not ${names}`);
    for (const [name, limit] of this.#ideal?.limits ?? []) {
      const stored = held?.get(name);
      if (stored === undefined) continue;
      const { consumed, capacityMilli } = stored;
      const sum = () => `tc of "${name}" is ${consumed}, not ${limit.consumed}`;
      invariant(consumed === limit.consumed, sum);
      const { rate } = limit;
      const capacity = () => `capacity of "${name}" is ${capacityMilli}, not ${rate.capacityMilli}`;
      invariant(capacityMilli === rate.capacityMilli, capacity);
      const level = smaller(limit.full, stored.level);
      const seen = () => `"${name}" holds ${show(level)}, the ideal ${show(limit.level)}`;
      invariant(compare(level, limit.level) <= 0, () => `above: ${seen()}`);
      if (this.#spreadMs > 0) continue;
      const reached = compare(plus(level, limit.slack), limit.level) >= 0;
      invariant(reached, () => `below: ${seen()}`);
    }
  }

  #configure(limits: Limits, own: boolean): void {
    this.#configs.push({
      limits: limitsOf(limits),
      source: own ? "entity" : "resource",
      version: this.#configs.length + 1,
    });
  }

  #client(at: number): BucketStore {
    const { clients } = this.#subject;
    return clients[at % clients.length] as BucketStore;
  }

  #see(): void {
    this.#latestMs = Math.max(this.#latestMs, this.#nowMs + Math.max(...this.#offsetsMs));
  }
}

function limitsOf(limits: Limits): Limit[] {
  return Object.entries(limits).map(([name, [capacity, refillAmount, refillPeriodSeconds]]) =>
    Limit.custom({ name, capacity, refillAmount, refillPeriodSeconds }),
  );
}

function overrideOf(limits: Limits): BucketConfig {
  return { limits: limitsOf(limits), source: "override", version: 0 };
}

function legOf(config: BucketConfig, amountsMilli: readonly number[]): Leg {
  return {
    entityId: ENTITY,
    resource: RESOURCE,
    config,
    amountsMilli,
    link: UNLINKED,
    linkIsFresh: true,
  };
}

function target(config: BucketConfig) {
  return { entityId: ENTITY, resource: RESOURCE, shard: 0, config };
}

function amountOf(config: BucketConfig, amountsMilli: readonly number[], name: string): number {
  const at = config.limits.findIndex((limit) => limit.name === name);
  return at < 0 ? 0 : (amountsMilli[at] as number);
}

function invariant(holds: boolean, message: () => string): void {
  if (!holds) throw new Error(message());
}
