/** The summary of a run, for people. */

import type { Figures } from "@zae-limiter/loadtest/figures.ts";
import type { Plan } from "@zae-limiter/loadtest/plan.ts";
import { withThousands } from "../terminal/numbers.ts";
import type { Palette } from "../terminal/palette.ts";
import { type Column, right, table } from "../terminal/table.ts";
import type { LoadReport } from "./report.ts";

/** Above this, the worker itself may be what is slow. */
const CPU_SHARE_HIGH = 0.8;

const COLUMNS: readonly Column[] = [
  "users",
  ...["acquires", "per s", "granted", "refused", "degraded", "failed"].map(right),
  ...["p50", "p95", "p99", "max"].map(right),
];

/** Returns a time with three digits: `812 µs`, `3.14 ms`, `1.52 s`. */
export function milliseconds(ms: number): string {
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${ms.toPrecision(3)} ms`;
  return `${(ms / 1000).toPrecision(3)} s`;
}

/** Returns `20 users`, or `100 arrivals per second of 20 users`. */
export function loadText({ rate, users }: Pick<Plan, "rate" | "users">): string {
  const people = `${withThousands(users)} ${users === 1 ? "user" : "users"}`;
  return rate === undefined ? people : `${rate} arrivals per second of ${people}`;
}

export async function reportText(report: LoadReport, palette: Palette): Promise<string> {
  const { plan, workers, classes, total } = report;
  const seconds = (report.elapsedMs / 1000).toFixed(1).replace(/\.0$/, "");
  const several = workers === 1 ? "" : `, ${workers} workers`;
  const rows = classes.map(({ name, figures }) => row(name, figures));
  const numbers = await table(
    COLUMNS,
    classes.length === 1 ? rows : [...rows, row("together", total)],
    palette.faint,
  );
  const lines = [
    palette.title(`${report.title} on ${report.storeName}`),
    `${seconds} s, ${loadText(plan)}${several}`,
    "",
    numbers,
    "",
    ...factLines(report),
    ...report.errors.map(({ message, count }) =>
      palette.bad(`  ${withThousands(count)} x ${message}`),
    ),
    ...report.lost.map(({ worker, atMs, reason }) =>
      palette.bad(
        `Worker ${worker} died after ${(atMs / 1000).toFixed(1)} s (${reason}); what it did since ` +
          "its last report is not counted here",
      ),
    ),
    ...report.broken.map(({ condition, actual }) =>
      palette.bad(`Failed: ${condition}, and it was ${actual}`),
    ),
  ];
  return lines.join("\n");
}

function factLines(report: LoadReport): string[] {
  const { cost, consumed, total, plan, cpuShare, lateMsMax } = report;
  const per = (value: number) => value.toFixed(2);
  const tokens = Object.entries(consumed).map(([name, sum]) => `${withThousands(sum)} ${name}`);
  const late =
    plan.rate === undefined ? "" : `; the latest task started ${milliseconds(lateMsMax)} late`;
  return [
    ...(report.hasCost
      ? [
          `Per acquire: ${per(cost.callsPerAcquire)} calls, ${per(cost.writeUnitsPerAcquire)} WCU, ` +
            `${per(cost.readUnitsPerAcquire)} RCU; $${per(cost.dollarsPerMillion)} per million`,
        ]
      : []),
    ...(tokens.length === 0 ? [] : [`Consumed: ${tokens.join(", ")}`]),
    `Generator: ${Math.round(100 * cpuShare)}% of a processor${late}`,
    ...(cpuShare > CPU_SHARE_HIGH
      ? ["The generator itself was busy, so latencies may be too high: use more --workers"]
      : []),
    ...(total.errors > 0 ? [`Errors: ${withThousands(total.errors)}`] : []),
  ];
}

function row(name: string, figures: Figures): string[] {
  const { counts } = figures;
  return [
    name,
    withThousands(figures.acquires),
    withThousands(figures.perSecond),
    ...[counts.granted, counts.refused, counts.degraded, counts.failed].map(withThousands),
    ...[figures.p50Ms, figures.p95Ms, figures.p99Ms, figures.maxMs].map(milliseconds),
  ];
}
