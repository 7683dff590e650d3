/** Looks for the simplest run that still fails in the same way. */

import type { Faults } from "../table/faults.ts";
import type { Parameters } from "./parameters.ts";
import { type RunReport, simulate } from "./simulation.ts";

const RUNS_MAX = 150;
const LINES_MAX = 80;

/**
 * Leaves out faults, processes, entities, deeds and time, one after the other, as long as the run
 * still fails. The seed stays, so that what is left happens as before where it can.
 */
export async function shrink(
  report: RunReport,
  isStopped: () => boolean = () => false,
): Promise<RunReport> {
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

/** The lines that show a violation: those of the bucket it is about, and how calls ended. */
export function tellingLines({ log, violation }: RunReport): readonly string[] {
  if (log.length <= LINES_MAX) return log;
  const bucket = / of (\S+ \S+)/.exec(violation?.subject ?? "")?.[1] ?? violation?.subject ?? "";
  const entityId = bucket.split(" ")[0] ?? "";
  const telling = log.filter(
    (line) =>
      line.includes(` ${entityId} `) || /VIOLATION|crashes|configures|of process/.test(line),
  );
  return (telling.length > 1 ? telling : log).slice(-LINES_MAX);
}

/** Each a little simpler than the one given, the most promising first. */
function* simpler(parameters: Parameters): Generator<Parameters> {
  const { processes, entities, minutes, deeds, laterLimits, limits } = parameters;
  yield* simplerTime(parameters);
  for (const name of Object.keys(parameters.faults) as (keyof Faults)[]) {
    const { [name]: _, ...faults } = parameters.faults;
    yield { ...parameters, faults };
  }
  if (parameters.crashesPerMinute > 0) yield { ...parameters, crashesPerMinute: 0 };
  if (parameters.skewMs > 0) yield { ...parameters, skewMs: 0 };
  if (parameters.deletions) yield { ...parameters, deletions: false };
  if (parameters.silenceMs > 0) yield { ...parameters, silenceMs: 0 };
  if (laterLimits.length > 0) {
    yield { ...parameters, laterLimits: [] };
    yield { ...parameters, laterLimits: laterLimits.slice(0, -1) };
  }
  if (processes > 1) {
    yield { ...parameters, processes: 1 };
    yield { ...parameters, processes: processes - 1 };
  }
  if (parameters.family !== "none") yield { ...parameters, family: "none" };
  if (entities > 1) yield { ...parameters, entities: entities - 1 };
  for (const deed of deeds) {
    if (deed !== "commit") yield { ...parameters, deeds: deeds.filter((one) => one !== deed) };
  }
  if (limits.length > 1) yield { ...parameters, limits: limits.slice(0, -1) };
  if (parameters.amountMax > 1) yield { ...parameters, amountMax: 1 };
  if (parameters.writeUnitsPerSecond < 1000) yield { ...parameters, writeUnitsPerSecond: 1000 };
  if (minutes > 0.01) yield { ...parameters, minutes: minutes * 0.9 };
}

function* simplerTime(parameters: Parameters): Generator<Parameters> {
  const { minutes, callsPerSecond } = parameters;
  if (minutes > 0.01) {
    yield { ...parameters, minutes: minutes / 4 };
    yield { ...parameters, minutes: minutes / 2 };
  }
  if (callsPerSecond > 2) yield { ...parameters, callsPerSecond: callsPerSecond / 2 };
}
