/**
 * Runs commands in this process, on a terminal that is captured. A child process costs 150 ms and
 * shows nothing more; `test/integration/cli` has the cases that are about the process itself.
 */

import type { runProgram } from "@zae-limiter/cli/frame/program.ts";
import { COLOURED, PLAIN } from "@zae-limiter/cli/terminal/palette.ts";
import type { Interruption, Terminal } from "@zae-limiter/cli/terminal/terminal.ts";
import { type Clock, systemTimer, type Timer } from "@zae-limiter/limiter/base/time.ts";

export interface Circumstances {
  /** The answers to questions, in order; without more answers stdin is not a terminal. */
  readonly answers?: readonly boolean[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether the output is a terminal; then there are colours, unless `NO_COLOR` is set. */
  readonly isTerminal?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  readonly clock?: Clock;
  readonly timer?: Timer;
  /** Called with every piece of output, and with what interrupts the command. */
  readonly onOutput?: (text: string, interrupt: (how: Interruption) => void) => void;
  /** Called with what interrupts the command, before it begins. */
  readonly onInterruptible?: (interrupt: (how: Interruption) => void) => void;
  /** Another build of the program. */
  readonly program?: typeof runProgram;
}

export interface Captured {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** The questions that were asked. */
  readonly questions: readonly string[];
}

/** Runs a command line to its end. */
export async function cli(
  args: readonly string[],
  circumstances: Circumstances = {},
): Promise<Captured> {
  const { env = {}, isTerminal = false, columns = 80, clock, timer = systemTimer } = circumstances;
  const said = { out: "", err: "" };
  const questions: string[] = [];
  const answers = [...(circumstances.answers ?? [])];
  const listeners = new Set<(interruption: Interruption) => void>();
  const interrupt = (how: Interruption) => {
    for (const listener of [...listeners]) listener(how);
  };
  const write = (to: "out" | "err") => (text: string) => {
    said[to] += text;
    circumstances.onOutput?.(text, interrupt);
  };
  const palette = isTerminal && env.NO_COLOR === undefined ? COLOURED : PLAIN;
  const terminal: Terminal = {
    out: write("out"),
    err: write("err"),
    palette,
    errPalette: palette,
    isTerminal,
    errIsTerminal: isTerminal,
    columns,
    rows: circumstances.rows,
    env,
    ask: async (question) => {
      questions.push(question);
      return answers.shift();
    },
    onInterruption: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    timer,
    ...(clock === undefined ? {} : { clock }),
  };
  circumstances.onInterruptible?.(interrupt);
  const program =
    circumstances.program ?? (await import("@zae-limiter/cli/frame/program.ts")).runProgram;
  const code = await program(args, terminal);
  return { code, ...said, questions };
}
