/** The traffic as it happens: bars that are drawn over on a terminal, lines everywhere else. */

import type { LimitStatus } from "@zae-limiter/limiter/domain/limit-status.ts";
import { bars } from "../terminal/bars.ts";
import { Drawing } from "../terminal/drawing.ts";
import type { Palette } from "../terminal/palette.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { TRAFFIC_MS } from "./callers.ts";
import type { CallReport } from "./gateway.ts";
import { PROJECT, RESOURCE } from "./project.ts";
import type { Tally } from "./tally.ts";

/** The last of what happened, below the bars. */
const NEWS_MAX = 6;
/** The picture is indented by this many columns. */
const MARGIN = 2;
const NAME_COLUMNS = 7;
const OUTCOME_COLUMNS = 8;

export class Live {
  readonly #terminal: Terminal;
  readonly #tally: Tally;
  readonly #drawing: Drawing;
  #news: readonly string[] = [];
  #afterPicture = false;

  constructor(terminal: Terminal, tally: Tally) {
    this.#terminal = terminal;
    this.#tally = tally;
    this.#drawing = new Drawing(terminal);
  }

  tellCall({ atMs, entityId, outcome, line }: CallReport): void {
    const paint = this.#terminal.palette[PAINTS[outcome]];
    this.tell(atMs, entityId, `${paint(outcome.padEnd(OUTCOME_COLUMNS))}  ${line}`);
  }

  tell(atMs: number, name: string, what: string): void {
    const { out, palette, isTerminal } = this.#terminal;
    const at = palette.faint(`${(atMs / 1000).toFixed(1).padStart(4)} s`);
    const line = `  ${at}  ${name.padEnd(NAME_COLUMNS)}${what}`;
    if (isTerminal) this.#news = [...this.#news, line].slice(-NEWS_MAX);
    else out(`${this.#afterPicture ? "\n" : ""}${line}\n`);
    this.#afterPicture = false;
  }

  show(atMs: number, statuses: readonly LimitStatus[]): void {
    const { palette, columns, isTerminal, rows } = this.#terminal;
    const title = `${RESOURCE}, what is left after ${this.#seconds(atMs)}`;
    const picture = bars(statuses, {
      palette,
      columns: columns - MARGIN,
      heading: (entityId) => this.#heading(entityId),
    });
    const lines = [palette.faint(title), ...picture.split("\n")].map((line) => `  ${line}`);
    if (!isTerminal) {
      this.#drawing.draw(`\n${lines.join("\n")}\n`);
      this.#afterPicture = true;
      return;
    }
    const room = Math.max(0, (rows ?? Number.POSITIVE_INFINITY) - lines.length - 2);
    const news = room === 0 ? [] : ["", ...this.#news.slice(-room)];
    this.#drawing.draw(`${[...lines, ...news].join("\n")}\n`);
  }

  leave(): void {
    this.#drawing.leave();
  }

  #seconds(atMs: number): string {
    const { isTerminal } = this.#terminal;
    const [at, end] = [atMs / 1000, TRAFFIC_MS / 1000];
    return isTerminal ? `${at.toFixed(1).padStart(4)} of ${end} s` : `${at} s`;
  }

  #heading(entityId: string): string {
    const { palette } = this.#terminal;
    const isProject = entityId === PROJECT;
    const { answered, refused, failed } = isProject ? this.#tally.total : this.#tally.of(entityId);
    const counts = [
      `${answered} answered`,
      ...(refused === 0 ? [] : [palette.bad(`${refused} refused`)]),
      ...(failed === 0 ? [] : [palette.warning(`${failed} failed`)]),
    ];
    const name = isProject ? `${entityId}, the parent of all` : entityId;
    return `${palette.title(name)}: ${counts.join(", ")}`;
  }
}

const PAINTS: Readonly<Record<CallReport["outcome"], keyof Palette>> = {
  answered: "good",
  refused: "bad",
  failed: "warning",
};
