/** The terminal of this process. */

import { createInterface } from "node:readline/promises";
import { systemTimer } from "@zae-limiter/limiter/base/time.ts";
import { exitCodeOf, Interrupted } from "./interruption.ts";
import { paletteFor } from "./palette.ts";
import type { Interruption, Terminal } from "./terminal.ts";

const COLUMNS = 80;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Takes over what interrupts this process; call it once. */
export function processTerminal(): Terminal {
  const { stdin, stdout, stderr, env } = process;
  const listeners = new Set<(interruption: Interruption) => void>();
  const notify = (interruption: Interruption) => {
    for (const listener of [...listeners]) listener(interruption);
  };
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (listeners.size === 0) process.exit(exitCodeOf(signal));
      notify(signal);
    });
  }
  // A reader such as `head` closes the pipe when it has seen enough. That is not an error, and the
  // command goes on to its end, because it may have something to clean up.
  for (const stream of [stdout, stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      // The terminal was closed: a command that goes on after SIGHUP has no reader any more.
      if (error.code === "EIO" && stream.isTTY) return;
      if (error.code !== "EPIPE") throw error;
      notify("SIGPIPE");
    });
  }
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    palette: paletteFor(stdout.isTTY, env.NO_COLOR),
    errPalette: paletteFor(stderr.isTTY, env.NO_COLOR),
    isTerminal: stdout.isTTY === true,
    errIsTerminal: stderr.isTTY === true,
    get columns() {
      // Some terminals do not know their size, and say 0.
      return stdout.columns || COLUMNS;
    },
    get rows() {
      return stdout.rows || undefined;
    },
    env,
    ask: (question) =>
      stdin.isTTY && stderr.isTTY && stderr.columns > 0 ? prompt(question) : readAnswer(question),
    onInterruption: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    timer: systemTimer,
  };
}

/** Asks a question on the terminal, through stderr, because stdout is for results. */
async function prompt(question: string): Promise<boolean> {
  const { confirm, isCancel } = await import("@clack/prompts");
  const answer = await confirm({ message: question, initialValue: false, output: process.stderr });
  // Ctrl-C is no signal while keys are read one by one.
  if (isCancel(answer)) throw new Interrupted("SIGINT");
  return answer;
}

/** Reads the first line that is piped in: `yes | zae-limiter …`. */
async function readAnswer(question: string): Promise<boolean | undefined> {
  process.stderr.write(`${question} [y/N] `);
  const lines = createInterface({ input: process.stdin });
  try {
    for await (const line of lines) {
      process.stderr.write("\n");
      return /^y(es)?$/i.test(line.trim());
    }
    process.stderr.write("\n");
    return undefined;
  } finally {
    lines.close();
    process.stdin.destroy();
  }
}
