/** A run while it is under way, drawn once a second. */

import { costOf, figuresOf } from "@zae-limiter/loadtest/figures.ts";
import type { Plan } from "@zae-limiter/loadtest/plan.ts";
import type { Results } from "@zae-limiter/loadtest/results.ts";
import { chart } from "../terminal/chart.ts";
import { Drawing } from "../terminal/drawing.ts";
import { withThousands } from "../terminal/numbers.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { milliseconds } from "./report-text.ts";

const REDRAW_MS = 1000;
const CHART_INTERVALS = 60;

export class LiveView {
  readonly #terminal: Terminal;
  readonly #drawing: Drawing;
  readonly #title: string;
  readonly #plan: Plan;
  readonly #results: Results;

  constructor(terminal: Terminal, title: string, plan: Plan, results: Results) {
    this.#terminal = terminal;
    this.#drawing = new Drawing(terminal);
    this.#title = title;
    this.#plan = plan;
    this.#results = results;
  }

  /** Draws until the signal aborts; then removes nothing, because the summary follows. */
  async follow(over: AbortSignal): Promise<void> {
    const { timer } = this.#terminal;
    const startedMs = timer.nowMs();
    while (!over.aborted) {
      await timer.sleep(REDRAW_MS, over);
      if (!over.aborted) this.#drawing.draw(this.#picture(timer.nowMs() - startedMs));
    }
    this.#drawing.leave();
  }

  #picture(elapsedMs: number): string {
    const { palette, columns } = this.#terminal;
    const { intervalMs, durationMs } = this.#plan;
    const intervals = this.#results.intervals;
    const last = intervals.at(-1);
    const seconds = `${Math.floor(elapsedMs / 1000)} of ${Math.round(durationMs / 1000)} s`;
    const heading = `${palette.title(this.#title)}  ${palette.faint(seconds)}`;
    if (last === undefined) return `${heading}\n`;
    const now = figuresOf(last.total(), intervalMs);
    const { total } = this.#results;
    const { counts, acquires } = figuresOf(total.total(), elapsedMs);
    const cost = costOf(total.store, acquires);
    const rates = intervals
      .slice(-CHART_INTERVALS)
      .map((slice) => (slice.total().acquires * 1000) / intervalMs);
    const outcome = (name: keyof typeof counts, paint: (text: string) => string) =>
      counts[name] === 0 ? [] : [paint(`${withThousands(counts[name])} ${name}`)];
    return [
      heading,
      `${withThousands(now.perSecond)} acquires/s, ${withThousands(last.users)} at work; p50 ` +
        `${milliseconds(now.p50Ms)}, p95 ${milliseconds(now.p95Ms)}, p99 ${milliseconds(now.p99Ms)}, ` +
        `max ${milliseconds(now.maxMs)}`,
      [
        ...outcome("granted", palette.good),
        ...outcome("refused", palette.warning),
        ...outcome("degraded", palette.bad),
        ...outcome("failed", palette.bad),
      ].join(", "),
      palette.faint(
        `per acquire: ${cost.callsPerAcquire.toFixed(2)} calls, ` +
          `${cost.writeUnitsPerAcquire.toFixed(2)} WCU, ${cost.readUnitsPerAcquire.toFixed(2)} RCU, ` +
          `$${cost.dollarsPerMillion.toFixed(2)} per million`,
      ),
      ...this.#results.lost.map(({ worker, reason }) =>
        palette.bad(`worker ${worker} died: ${reason}`),
      ),
      chart(rates, { first: `${rates.length} s ago`, last: "now" }, columns),
      "",
    ].join("\n");
  }
}
