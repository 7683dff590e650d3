/** What a command line asks for, and the exit code it ends with. */

import { parseArgs } from "node:util";
import { ZaeLimiterError } from "../domain/errors.ts";
import { CLIENT_VERSION } from "../domain/version.ts";
import { runDemo } from "./demo/demo.ts";
import type { Palette } from "./palette.ts";

/** Where a command writes. */
export interface Terminal {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly palette: Palette;
}

const OK = 0;
const FAILED = 1;
/** As shells and most tools have it: the command line itself is wrong. */
const MISUSED = 2;

const COMMANDS: Readonly<Record<string, (terminal: Terminal) => Promise<void>>> = {
  demo: runDemo,
};

const HELP = `Usage: zae-limiter <command>

Commands:
  demo           shows limits at work in a temporary store

Options:
  -h, --help     shows this text
  -V, --version  shows the version
`;

export async function runProgram(args: readonly string[], terminal: Terminal): Promise<number> {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(args);
  } catch (error) {
    return misused(terminal, firstSentence(error));
  }
  const { values, positionals } = parsed;
  const [name, ...more] = positionals;
  if (values.version === true) {
    terminal.out(`${CLIENT_VERSION}\n`);
    return OK;
  }
  if (values.help === true || name === undefined) {
    terminal.out(HELP);
    return OK;
  }
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command === undefined) return misused(terminal, `unknown command ${JSON.stringify(name)}`);
  if (more.length > 0) return misused(terminal, `${name} takes no arguments`);
  return perform(command, terminal);
}

async function perform(
  command: (terminal: Terminal) => Promise<void>,
  terminal: Terminal,
): Promise<number> {
  try {
    await command(terminal);
    return OK;
  } catch (error) {
    // Errors of ours say what to do. Any other is a bug, and is worth its stack.
    if (!(error instanceof ZaeLimiterError)) throw error;
    terminal.err(`zae-limiter: ${error.message}\n`);
    return FAILED;
  }
}

function parse(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      help: { type: "boolean", short: "h" },
      version: { type: "boolean", short: "V" },
    },
  });
}

function misused(terminal: Terminal, reason: string): number {
  terminal.err(`zae-limiter: ${reason}; see zae-limiter --help\n`);
  return MISUSED;
}

/** Node explains at length how an option could be passed as an argument. */
function firstSentence(error: unknown): string {
  const { message } = error as Error;
  return (message.split(". ", 1)[0] ?? message).replace(/\s+/g, " ");
}
