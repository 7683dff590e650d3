/** A run as JSON and as CSV, for programs. */

import type { Figures } from "@zae-limiter/loadtest/figures.ts";
import type { Shape } from "../frame/command.ts";
import { jsonOf } from "../terminal/json.ts";
import type { LoadReport } from "./report.ts";

const FIGURES_SHAPE = {
  acquires: "number",
  per_second: "number",
  granted: "number",
  refused: "number",
  degraded: "number",
  failed: "number",
  errors: "number",
  mean_ms: "number",
  p50_ms: "number",
  p95_ms: "number",
  p99_ms: "number",
  max_ms: "number",
} as const;

export const REPORT_SHAPE: Shape = {
  scenario: "text",
  model: "text",
  users: "number",
  rate: "number | null",
  workers: "number",
  elapsed_seconds: "number",
  total: FIGURES_SHAPE,
  classes: [{ class: "text", ...FIGURES_SHAPE }],
  consumed: "object",
  calls_per_acquire: "number",
  wcu_per_acquire: "number",
  rcu_per_acquire: "number",
  dollars_per_million: "number",
  generator_cpu: "number",
  late_ms_max: "number",
  error_messages: [{ message: "text", count: "number" }],
  lost_workers: [{ worker: "number", at_seconds: "number", reason: "text" }],
  failed_conditions: [{ condition: "text", actual: "text" }],
  intervals: [{ at_seconds: "number", users: "number", ...FIGURES_SHAPE }],
};

export function reportJson(report: LoadReport) {
  const { plan, cost } = report;
  return {
    scenario: report.title,
    model: plan.rate === undefined ? "closed" : "open",
    users: plan.users,
    rate: plan.rate ?? null,
    workers: report.workers,
    elapsed_seconds: report.elapsedMs / 1000,
    total: figuresJson(report.total),
    classes: report.classes.map(({ name, figures }) => ({ class: name, ...figuresJson(figures) })),
    consumed: { ...report.consumed },
    calls_per_acquire: cost.callsPerAcquire,
    wcu_per_acquire: cost.writeUnitsPerAcquire,
    rcu_per_acquire: cost.readUnitsPerAcquire,
    dollars_per_million: cost.dollarsPerMillion,
    generator_cpu: report.cpuShare,
    late_ms_max: report.lateMsMax,
    error_messages: report.errors.map((error) => ({ ...error })),
    lost_workers: report.lost.map(({ worker, atMs, reason }) => ({
      worker,
      at_seconds: atMs / 1000,
      reason,
    })),
    failed_conditions: report.broken.map((each) => ({ ...each })),
    intervals: report.intervals.map((interval) => ({
      at_seconds: interval.atSeconds,
      users: interval.users,
      ...figuresJson(interval),
    })),
  };
}

/** Returns one line per interval, under the names of the columns. */
export function reportCsv({ intervals }: LoadReport): string {
  const columns = ["at_seconds", "users", ...Object.keys(FIGURES_SHAPE)];
  const rows = intervals.map((interval) => [
    interval.atSeconds,
    interval.users,
    ...Object.values(figuresJson(interval)),
  ]);
  return `${[columns, ...rows].map((row) => row.join(",")).join("\n")}\n`;
}

function figuresJson({ counts, ...figures }: Figures) {
  return jsonOf(FIGURES_SHAPE, { ...figures, ...counts });
}
