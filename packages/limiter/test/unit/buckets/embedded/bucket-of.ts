/** Buckets of the embedded stores, set by hand and read back. */

import { Bucket } from "@zae-limiter/limiter/buckets/embedded/bucket.ts";
import { Build } from "@zae-limiter/limiter/buckets/embedded/build.ts";
import { STRIDE } from "@zae-limiter/limiter/buckets/embedded/limit-numbers.ts";
import { hourOf } from "@zae-limiter/limiter/buckets/embedded/usage-hour.ts";
import { type LimitSource, type Link, UNLINKED } from "@zae-limiter/limiter/buckets/leg.ts";
import type { Level, Rate } from "@zae-limiter/limiter/core/bucket.ts";

export const NOW = 1_800_000_000_000;

export interface TestLimit {
  readonly name: string;
  readonly rate: Rate;
  readonly level: Level;
  readonly consumedMilli: number | bigint;
  readonly countedMilli: number | bigint;
}

/** Ten tokens a minute. */
export function limitWith(tokensMilli: number, more: Partial<TestLimit> = {}): TestLimit {
  return {
    name: "a",
    rate: { capacityMilli: 10_000, refillMilli: 10_000, periodMs: 60_000 },
    level: { tokensMilli, refilledAtMs: NOW, remainder: 0 },
    consumedMilli: 0,
    countedMilli: 0,
    ...more,
  };
}

interface TestBucket {
  readonly version: number;
  readonly source: LimitSource;
  readonly link: Link;
  readonly ttl: number | undefined;
  readonly usageHour: number;
  readonly events: number;
}

export function bucketWith(limits: readonly TestLimit[], more: Partial<TestBucket> = {}): Bucket {
  const { version = 1, source = "resource", link = UNLINKED, ttl } = more;
  const { usageHour = hourOf(NOW), events = 0 } = more;
  const names = limits.map(({ name }) => name);
  const rates = limits.map(({ rate }) => rate);
  const numbers = limits.flatMap(({ level, consumedMilli, countedMilli }) => [
    ...[level.tokensMilli, level.refilledAtMs, level.remainder],
    ...[consumedMilli, countedMilli],
  ]);
  const build = new Build(version, source, names, rates);
  return new Bucket(build, link, ttl, usageHour, events, numbers);
}

/** Returns the limits that a bucket was made from, or has become. */
export function limitsIn({ build, numbers }: Bucket): TestLimit[] {
  return build.names.map((name, at) => {
    const [tokensMilli, refilledAtMs, remainder, consumedMilli, countedMilli] = numbers.slice(
      at * STRIDE,
      (at + 1) * STRIDE,
    ) as [number, number, number, number | bigint, number | bigint];
    const level = { tokensMilli, refilledAtMs, remainder };
    return { name, rate: build.rates[at] as Rate, level, consumedMilli, countedMilli };
  });
}

/** Returns the balances of all limits. */
export function heldIn(bucket: Bucket, nowMs = NOW): readonly number[] {
  return bucket.build.names.map((_, at) => bucket.balanceMilli(at, nowMs));
}
