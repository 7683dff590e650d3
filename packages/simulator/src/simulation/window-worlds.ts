/** Worlds whose limits have other numbers at other hours. Calls come around the boundaries. */

import type { Random } from "@zae-limiter/limiter/base/random.ts";
import type { WindowOptions } from "@zae-limiter/limiter/domain/limit.ts";
import { between, pick } from "../draw.ts";
import type { Parameters } from "./parameters.ts";
import { around, sharded } from "./quota-worlds.ts";

const HOUR_MS = 3_600_000;
const HOURS_A_DAY = 24;
/** Two clocks may differ by twice as much. */
const FAR_MS = 2500;
const PERIODS = ["7sec", "min", "hour"];

/**
 * Draws rates with windows, with other rates and quotas in some of the runs; in others the bucket
 * is split and merged.
 */
export function windows(drawn: Parameters, random: Random): Partial<Parameters> {
  const hours = pick(random, [2, 6]);
  const resharded = random() < 0.4;
  const amounts = resharded ? [97, 997] : [3, 10, 31, 97];
  const limits = drawn.limits.map((limit, at) => {
    const name = nameOf(limit);
    const amount = pick(random, amounts);
    const isQuota = at > 0 && random() < 0.2;
    if (isQuota) return `${name}:${amount}/cron(0 */${hours} * * *) UTC`;
    const burst = random() < 0.3 ? `:${amount * pick(random, [2, 5])}` : "";
    return `${name}:${amount}/${pick(random, PERIODS)}${burst}`;
  });
  const scheduled = limits.filter(
    (limit, at) => !limit.includes("cron") && (at === 0 || random() < 0.6),
  );
  const bursts = around(drawn, random);
  return {
    ...bursts,
    // A base time that is pulled back over a boundary needs clocks that are far apart.
    skewMs: (bursts.skewMs ?? 0) > 0 ? FAR_MS : 0,
    ...(resharded ? sharded(drawn, random) : {}),
    limits,
    windows: Object.fromEntries(
      scheduled.map((limit) => [nameOf(limit), drawWindows(random, limit, hours, amounts)]),
    ),
    quotas: { lengthMs: hours * HOUR_MS, shiftsMs: [0] },
  };
}

function drawWindows(
  random: Random,
  limit: string,
  hours: number,
  amounts: readonly number[],
): readonly WindowOptions[] {
  return Array.from({ length: between(random, 1, 3) }, () => {
    const from = between(random, 0, HOURS_A_DAY / hours - 1) * hours;
    const to = Math.min(HOURS_A_DAY, from + hours * pick(random, [1, 1, 2]));
    const days = pick(random, ["", "", "", "mon-fri ", "sat,sun "]);
    const when = `${days}${from}-${to}`;
    if (random() < 0.6) return { when, scale: pick(random, [0.1, 0.333, 0.5, 1.5, 3]) };
    const period = random() < 0.5 ? pick(random, PERIODS) : periodOf(limit);
    return { when, limit: `${nameOf(limit)}:${pick(random, amounts)}/${period}` };
  });
}

function nameOf(limit: string): string {
  return limit.slice(0, limit.indexOf(":"));
}

function periodOf(limit: string): string {
  return limit.split(/[:/]/)[2] as string;
}
