/** The program: from the words of a command line to an exit code. */

import { CLIENT_VERSION } from "@zae-limiter/limiter/domain/version.ts";
import { Command, CommanderError } from "commander";
import { PLAIN } from "../terminal/palette.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { guarded } from "../terminal/visible.ts";
import { build, type Perform, unknownCommand } from "./build.ts";
import { callLeaf, report } from "./call.ts";
import { isGroup, UsageError } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { movedBehind } from "./options.ts";
import { type Entry, REGISTRY } from "./registry.ts";

const PROGRAM = "zae-limiter";
const HELP_COLUMNS_MAX = 100;

/** Reads the command line, runs its command, and returns the exit code. */
export async function runProgram(args: readonly string[], raw: Terminal): Promise<number> {
  const terminal = guarded(raw);
  const words = named(movedBehind(args));
  const names = REGISTRY.map(({ name }) => name);
  // Other programs take `help entity` for `entity --help`.
  const [first, ...others] = words[0] === "help" ? [...words.slice(1), "--help"] : words;
  let code: number = EXIT.ok;
  try {
    if (first !== undefined && !first.startsWith("-") && !names.includes(first)) {
      throw new UsageError(unknownCommand(first, REGISTRY));
    }
    const entry = REGISTRY.find(({ name }) => name === first);
    const program = await programWith(entry, terminal, async (leaf, path, found, options) => {
      code = await callLeaf(leaf, path, found, options, terminal);
    });
    await program.parseAsync(first === undefined ? [] : [first, ...others], { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok;
    const refusal = error instanceof CommanderError ? new UsageError(oneLine(error)) : error;
    const shown = { json: words.includes("--json"), debug: words.includes("--debug") };
    return report(refusal, await pathOf(words), shown, terminal);
  }
}

/** Joins the words of a command whose name has two, such as `gateway key`. */
function named(words: readonly string[]): readonly string[] {
  const at = words[0] === "help" ? 1 : 0;
  const name = words.slice(at, at + 2).join(" ");
  if (!REGISTRY.some((entry) => entry.name === name && name.includes(" "))) return words;
  return [...words.slice(0, at), name, ...words.slice(at + 2)];
}

/** Returns the command whose help explains the error. */
async function pathOf([first, second]: readonly string[]): Promise<string> {
  const entry = REGISTRY.find(({ name }) => name === first);
  if (entry === undefined) return PROGRAM;
  const node = await entry.load();
  const isCommand =
    isGroup(node) && node.commands.some(({ name, alias }) => name === second || alias === second);
  return [PROGRAM, first, ...(isCommand ? [second] : [])].join(" ");
}

/** Builds the program; only the command that is used has its options and code. */
async function programWith(
  used: Entry | undefined,
  terminal: Terminal,
  perform: Perform,
): Promise<Command> {
  const program = new Command(PROGRAM)
    .usage("<command>")
    .description("Rate limiting with token buckets: several limits per call, on any store.")
    .version(CLIENT_VERSION, "-V, --version", "show the version")
    .helpOption("-h, --help", "show this text")
    .helpCommand(false)
    .action(() => program.outputHelp());
  for (const entry of REGISTRY) {
    const command = entry === used ? build(await entry.load(), PROGRAM, perform) : stubOf(entry);
    program.addCommand(command.helpGroup(entry.heading), { hidden: entry.shortFor !== undefined });
  }
  inherit(program, terminal);
  return program;
}

function stubOf({ name, summary }: Entry): Command {
  return new Command(name).summary(summary);
}

/** Sends output and errors of the command and of all commands below it to the terminal. */
function inherit(command: Command, terminal: Terminal): void {
  const { palette } = terminal;
  command
    .exitOverride()
    .configureOutput({
      writeOut: terminal.out,
      writeErr: () => undefined,
      getOutHelpWidth: () => Math.min(terminal.columns, HELP_COLUMNS_MAX),
      getOutHasColors: () => palette !== PLAIN,
    })
    .configureHelp({ styleTitle: palette.title });
  for (const child of command.commands) inherit(child, terminal);
}

/** Returns `error: unknown option '--jsn'\n(Did you mean --json?)` in our form. */
function oneLine({ message }: CommanderError): string {
  return message
    .replace(/^error: /, "")
    .replace(/\n\(Did you mean (.+)\?\)$/, ", did you mean $1?")
    .replace("is invalid. ", "is invalid: ")
    .replace(/\.$/, "");
}
