/** Searches for the simplest run that still fails in the same way. */

import type { Faults } from "@zae-limiter/testing/table/faults.ts";
import type { Parameters } from "./parameters.ts";
import { type RunReport, simulate } from "./simulation.ts";

const RUNS_MAX = 60;
const LINES_MAX = 80;
const MINUTES_MIN = 0.01;

/** The simplest run that was found, and the part of its log that shows what is wrong. */
export interface Shrunk {
  readonly report: RunReport;
  readonly lines: readonly string[];
}

/**
 * Leaves out faults, processes, entities, deeds and time, one after the other, as long as the run
 * still fails. The seed stays, so that what is left happens as before where it can.
 */
export async function shrink(
  failure: RunReport,
  isStopped: () => boolean = () => false,
): Promise<Shrunk> {
  const report = await simplest(failure, isStopped);
  return { report, lines: tellingLines(report) };
}

async function simplest(report: RunReport, isStopped: () => boolean): Promise<RunReport> {
  let best = await simulate(report.parameters, { keepsLog: true });
  const checker = report.violation?.checker;
  let runs = 0;
  for (let found = true; found; ) {
    found = false;
    for (const candidate of simpler(best.parameters)) {
      if (runs >= RUNS_MAX || isStopped()) return best;
      runs += 1;
      const tried = await simulate(candidate, { keepsLog: true });
      if (tried.violation?.checker !== checker) continue;
      best = tried;
      found = true;
      break;
    }
  }
  return best;
}

/** Returns the lines that show a violation: those of its bucket, and how calls ended. */
function tellingLines({ log, violation }: RunReport): readonly string[] {
  if (log.length <= LINES_MAX) return log;
  const bucket = / of (\S+ \S+)/.exec(violation?.subject ?? "")?.[1] ?? violation?.subject ?? "";
  const entityId = bucket.split(" ")[0] ?? "";
  const telling = log.filter(
    (line) =>
      line.includes(` ${entityId} `) ||
      /VIOLATION|crashes|configures|of process|operator|moves|moved|switch|key-/.test(line),
  );
  return (telling.length > 1 ? telling : log).slice(-LINES_MAX);
}

/** Yields parameters that are a little simpler than the given ones, the most promising first. */
function* simpler(parameters: Parameters): Generator<Parameters> {
  yield* withLessTime(parameters);
  yield* withFewerFaults(parameters);
  yield* withFewerOf(parameters);
  for (const [name, plain] of Object.entries(PLAIN)) {
    const { [name as keyof typeof PLAIN]: value } = parameters;
    if (value !== plain) yield { ...parameters, [name]: plain };
  }
  if (parameters.minutes > MINUTES_MIN) yield { ...parameters, minutes: parameters.minutes * 0.9 };
}

/** The simplest values of parameters. */
const PLAIN = {
  family: "none",
  deletions: false,
  silenceMs: 0,
  amountMax: 1,
  writeUnitsPerSecond: 1000,
} as const satisfies Partial<Parameters>;

function* withLessTime(parameters: Parameters): Generator<Parameters> {
  const { minutes, callsPerSecond } = parameters;
  if (minutes > MINUTES_MIN) {
    yield { ...parameters, minutes: minutes / 4 };
    yield { ...parameters, minutes: minutes / 2 };
  }
  if (callsPerSecond > 2) yield { ...parameters, callsPerSecond: callsPerSecond / 2 };
}

function* withFewerFaults(parameters: Parameters): Generator<Parameters> {
  for (const name of Object.keys(parameters.faults) as (keyof Faults)[]) {
    const { [name]: _, ...faults } = parameters.faults;
    yield { ...parameters, faults };
  }
  if (parameters.crashesPerMinute > 0) yield { ...parameters, crashesPerMinute: 0 };
  if (parameters.cutsPerMinute > 0) yield { ...parameters, cutsPerMinute: 0 };
  if (parameters.skewMs > 0) yield { ...parameters, skewMs: 0 };
}

function* withFewerOf(parameters: Parameters): Generator<Parameters> {
  const { processes, entities, deeds, laterLimits, limits } = parameters;
  if (laterLimits.length > 0) {
    yield { ...parameters, laterLimits: [] };
    yield { ...parameters, laterLimits: laterLimits.slice(0, -1) };
  }
  if (processes > 1) {
    yield { ...parameters, processes: 1 };
    yield { ...parameters, processes: processes - 1 };
  }
  if (entities > 1) yield { ...parameters, entities: entities - 1 };
  if (limits.length > 1) yield { ...parameters, limits: limits.slice(0, -1) };
  if (deeds.length <= 1) return;
  for (const deed of deeds) {
    if (deed !== "commit") yield { ...parameters, deeds: deeds.filter((one) => one !== deed) };
  }
}
