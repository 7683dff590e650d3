/**
 * A chain of buckets with random limits, and what an ideal bucket says to random calls on it: the
 * levels are fractions with the period below the line, so nothing is ever rounded.
 */

import type { Key } from "@zae-limiter/limiter/storage/item.ts";
import type {
  WarmAnswer,
  WarmBuckets,
  WarmLeg,
  WarmRow,
} from "@zae-limiter/limiter/storage/warm-buckets.ts";
import { expect } from "vitest";

const SOON = { timeoutMs: 20_000 };
const CONFIG = { PK: "config", SK: "none" };
const START_MS = 1_800_000_000_000;
const NEVER_MS = 9_000_000_000_000_000;

type Random = () => number;

/** One limit. */
class IdealLimit {
  readonly capacity: bigint;
  readonly refill: bigint;
  readonly period: bigint;
  /** Milli-tokens times the period. */
  level: bigint;
  used = 0n;

  constructor(random: Random) {
    const isLarge = random() < 0.5;
    const upTo = (digits: number) => BigInt(whole(random, 1, 10 ** digits));
    this.capacity = upTo(isLarge ? whole(random, 9, 15) : whole(random, 1, 9));
    this.refill = upTo(isLarge ? whole(random, 6, 13) : whole(random, 1, 9));
    this.period = upTo(isLarge ? whole(random, 3, 10) : whole(random, 1, 7));
    this.level = this.capacity * this.period;
  }

  /** Whole milli-tokens. */
  get balance(): bigint {
    const floor = this.level / this.period;
    return this.level % this.period < 0n ? floor - 1n : floor;
  }

  pass(ms: number): void {
    const full = this.capacity * this.period;
    this.level += BigInt(ms) * this.refill;
    if (this.level > full) this.level = full;
  }

  take(amount: bigint, counted: bigint): void {
    this.level -= amount * this.period;
    this.used += counted;
  }

  fits(amount: bigint): boolean {
    return amount <= 0n || amount * this.period <= this.level;
  }
}

/** Amounts that a call asks of one limit. */
interface Asked {
  readonly gate: bigint;
  readonly taken: bigint;
  readonly counted: bigint;
}

/** One bucket of a call. */
interface Part {
  readonly limits: readonly IdealLimit[];
  readonly asked: readonly Asked[];
  readonly leg: WarmLeg;
}

/** Differences between servers. */
export interface WorldOptions {
  /** Whether the server may hand back what it cannot compute exactly. */
  readonly handsBack: boolean;
  /** Whether calls that are made at once are decided in their order. */
  readonly inOrder: boolean;
}

export class World {
  readonly keys: readonly Key[];
  readonly #random: Random;
  readonly #name: string;
  readonly #legs: readonly (readonly IdealLimit[])[];
  readonly #handsBack: boolean;
  readonly #inOrder: boolean;
  #nowMs = START_MS;
  #steps = 0;
  /** Calls so far; a step makes one or several. */
  calls = 0;
  /** Calls that were handed to a step, because a product would have passed 2^53. */
  handedBack = 0;

  constructor(random: Random, name: string, { handsBack, inOrder }: WorldOptions) {
    this.#random = random;
    this.#name = name;
    this.#handsBack = handsBack;
    this.#inOrder = inOrder;
    const limits = () => Array.from({ length: whole(random, 1, 3) }, () => new IdealLimit(random));
    this.#legs = Array.from({ length: whole(random, 1, 3) }, limits);
    this.keys = this.#legs.map((_, at) => ({ PK: `${name}-${at}`, SK: "bucket" }));
  }

  rows(): { readonly key: Key; readonly row: WarmRow }[] {
    return this.#legs.map((limits, at) => ({
      key: this.keys[at] as Key,
      row: {
        ...{ build: "B", parent: null, cascades: false, until: NEVER_MS, events: 0, held: "" },
        cap: limits.map(({ capacity }) => Number(capacity)),
        refill: limits.map(({ refill }) => Number(refill)),
        period: limits.map(({ period }) => Number(period)),
        at: limits.map(() => START_MS),
        tok: limits.map(({ capacity }) => Number(capacity)),
        rem: limits.map(() => 0),
        used: limits.map(() => 0),
      },
    }));
  }

  /** Makes a random call and compares the answer; returns whether it was granted. */
  async step(warm: WarmBuckets): Promise<boolean> {
    const random = this.#random;
    this.#steps += 1;
    const passes = random() < 0.3 ? 0 : whole(random, 0, 10 ** whole(random, 0, 6));
    this.#nowMs += passes;
    for (const limit of this.#legs.flat()) limit.pass(passes);
    return random() < 0.2 ? this.#adjust(warm) : this.#consume(warm);
  }

  /** Compares the rows of the server with the ideal. */
  check(rows: readonly WarmRow[]): void {
    const used = rows.map((row) => row.used.map(BigInt));
    expect(used, this.#name).toEqual(this.#legs.map((limits) => limits.map((one) => one.used)));
  }

  async #adjust(warm: WarmBuckets): Promise<false> {
    this.calls += 1;
    const random = this.#random;
    const at = whole(random, 0, this.#legs.length - 1);
    const limits = this.#legs[at] as readonly IdealLimit[];
    const deltas = limits.map(({ capacity }) => {
      const most = Number(capacity < 1_000_000_000n ? capacity : 1_000_000_000n);
      return BigInt(whole(random, -most, most));
    });
    // Debts are for a step.
    const isWarm = limits.every((limit, place) => limit.fits(deltas[place] as bigint));
    const amounts = deltas.map(Number);
    const leg = { key: this.keys[at] as Key, build: "B", acquires: 0 };
    const adjust = {
      leg: { ...leg, consumedMilli: amounts, countedMilli: amounts },
      token: `${this.#name} ${this.#steps}`,
      nowMs: this.#nowMs,
    };
    const times = random() < 0.5 ? 2 : 1;
    for (let time = 1; time <= times; time += 1) {
      const isDone = await warm.adjust(adjust, SOON);
      if (this.#handsBack && isWarm && !isDone) {
        this.handedBack += 1;
        return false;
      }
      expect(isDone, adjust.token).toBe(isWarm);
    }
    if (!isWarm) return false;
    for (const [place, limit] of limits.entries()) {
      const delta = deltas[place] as bigint;
      limit.take(delta, delta);
      limit.pass(0);
    }
    return false;
  }

  /** Makes one call, or several at once, which are decided in their order. */
  async #consume(warm: WarmBuckets): Promise<boolean> {
    const nowMs = this.#nowMs;
    const count = this.#inOrder && this.#random() < 0.5 ? whole(this.#random, 2, 12) : 1;
    const calls = Array.from({ length: count }, () => this.#call(count > 1));
    this.calls += count;
    const answers = await Promise.all(
      calls.map((parts) => {
        const legs = parts.map(({ leg }) => leg);
        return warm.consume({ legs, configKey: CONFIG, knownVersion: undefined, nowMs }, SOON);
      }),
    );
    const granted = calls.filter((parts, at) => this.#compare(parts, answers[at]));
    return granted.length > 0;
  }

  /** Draws a call on all buckets, or on some, in any order. */
  #call(isOnSome: boolean): readonly Part[] {
    const parts = this.#legs.map((limits, at) => {
      const asked = this.#ask(limits);
      const leg = {
        ...{ key: this.keys[at] as Key, build: "B", parentId: undefined, cascades: undefined },
        gatesMilli: asked.map(({ gate }) => Number(gate)),
        consumedMilli: asked.map(({ taken }) => Number(taken)),
        countedMilli: asked.map(({ counted }) => Number(counted)),
        acquires: 1,
      };
      return { limits, asked, leg };
    });
    const all = shuffled(parts, this.#random);
    return isOnSome ? all.slice(0, whole(this.#random, 1, all.length)) : all;
  }

  /** Compares an answer with the ideal, which it changes; returns whether it is a grant. */
  #compare(parts: readonly Part[], answer: WarmAnswer | undefined): boolean {
    if (this.#handsBack && answer === undefined) {
      this.handedBack += 1;
      return false;
    }
    const pairs = parts.flatMap(({ limits, asked }) =>
      limits.map((limit, at) => ({ limit, ...(asked[at] as Asked) })),
    );
    const isGranted = pairs.every(({ limit, gate }) => limit.fits(gate));
    const place = `${this.#name} ${this.#steps}`;
    if (isGranted && !pairs.every(({ limit, taken }) => limit.fits(taken))) {
      // A soft limit that would go into debt is for a step.
      expect(answer, place).toBeUndefined();
      return false;
    }
    expect(answer?.outcome, place).toBe(isGranted ? "granted" : "refused");
    if (isGranted) for (const { limit, taken, counted } of pairs) limit.take(taken, counted);
    const balances = parts.map(({ limits }) => limits.map(({ balance }) => Number(balance)));
    expect(answer?.balancesMilli, place).toEqual(balances);
    return isGranted;
  }

  /** Asks for something near what there is, so that about half of the calls are granted. */
  #ask(limits: readonly IdealLimit[]): readonly Asked[] {
    const random = this.#random;
    return limits.map(({ balance }) => {
      const most = Number(balance > 0n ? balance : 1n);
      const near = whole(random, 0, Math.ceil(most / whole(random, 1, 4)));
      const taken = BigInt(random() < 0.2 ? 0 : near + (random() < 0.1 ? whole(random, 0, 3) : 0));
      const kind = random();
      // Soft limits test nothing; bypassed ones take nothing, and count all the same.
      if (kind < 0.05) return { gate: 0n, taken, counted: taken };
      if (kind < 0.1) return { gate: 0n, taken: 0n, counted: taken };
      return { gate: taken, taken, counted: taken };
    });
  }
}

function whole(random: Random, from: number, to: number): number {
  return from + Math.floor(random() * (to - from + 1));
}

function shuffled<Value>(values: readonly Value[], random: Random): Value[] {
  return values
    .map((value) => ({ value, at: random() }))
    .sort((one, other) => one.at - other.at)
    .map(({ value }) => value);
}
