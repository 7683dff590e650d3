/** The callers of the demo gateway and their times, drawn from a seeded random source. */

import { type Random, randomInteger } from "@zae-limiter/limiter/base/random.ts";
import type { Key } from "./project.ts";

/** How long the demonstration of traffic takes; the last calls begin before, and end within it. */
export const TRAFFIC_MS = 30_000;
export const LAST_CALL_MS = 27_000;

/** A call of the demo, with the cost that only its end will show. */
export interface PlannedCall {
  readonly atMs: number;
  readonly key: Key;
  /** The tokens that the call consumes before it is made. */
  readonly estimated: number;
  /** The tokens that the model really uses. */
  readonly used: number;
  readonly lastsMs: number;
  readonly fails: boolean;
}

type Range = readonly [low: number, high: number];

interface Habit {
  readonly fromMs: number;
  readonly pauseMs: Range;
  readonly estimated: Range;
  /** What is used, in percent of the estimate. */
  readonly usedPercent: Range;
  readonly lastsMs: Range;
}

const HABITS: Readonly<Record<Key, Habit>> = {
  // Interactive users: frequent calls with short answers.
  web: {
    fromMs: 400,
    pauseMs: [400, 1000],
    estimated: [200, 400],
    usedPercent: [50, 160],
    lastsMs: [400, 1500],
  },
  // A job at night: it asks for more than its limit, and does not wait when it is refused.
  batch: {
    fromMs: 3000,
    pauseMs: [500, 900],
    estimated: [400, 600],
    usedPercent: [80, 120],
    lastsMs: [600, 1600],
  },
  // Answers of unpredictable length; it waits as long as the limiter says.
  agent: {
    fromMs: 1500,
    pauseMs: [3000, 4500],
    estimated: [500, 800],
    usedPercent: [120, 260],
    lastsMs: [1200, 3000],
  },
};

const PATIENT: readonly Key[] = ["agent"];
const FAILING_PERCENT = 6;
/** A whole book, once: more than the bucket could ever hold. */
const BOOK: PlannedCall = {
  atMs: 8200,
  key: "web",
  estimated: 9500,
  used: 9500,
  lastsMs: 0,
  fails: false,
};

export function isPatient(key: Key): boolean {
  return PATIENT.includes(key);
}

export function planCalls(random: Random): PlannedCall[] {
  const keys = Object.keys(HABITS) as Key[];
  const calls = keys.flatMap((key) => [...callsOf(key, HABITS[key], random)]);
  return [...calls, BOOK].sort((a, b) => a.atMs - b.atMs);
}

function* callsOf(key: Key, habit: Habit, random: Random): Generator<PlannedCall> {
  const draw = ([low, high]: Range) => low + randomInteger(random, high - low + 1);
  for (let atMs = habit.fromMs; atMs < LAST_CALL_MS; atMs += draw(habit.pauseMs)) {
    const estimated = 10 * Math.round(draw(habit.estimated) / 10);
    const used = Math.round((estimated * draw(habit.usedPercent)) / 100);
    const fails = randomInteger(random, 100) < FAILING_PERCENT;
    yield { atMs, key, estimated, used, lastsMs: draw(habit.lastsMs), fails };
  }
}
