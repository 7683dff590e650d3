/** Turns commands that are data into commands of commander. */

import { nearest } from "@zae-limiter/limiter/base/nearest.ts";
import { Argument, Command, InvalidArgumentError, Option } from "commander";
import {
  type ArgumentSpec,
  type Group,
  isGroup,
  type Leaf,
  type OptionSpec,
  UsageError,
} from "./command.ts";
import {
  COMMON_HEADING,
  COMMON_OPTIONS,
  ownOptions,
  STORE_HEADING,
  storeOptions,
} from "./options.ts";

/** Runs a command with the arguments and options that were read for it. */
export type Perform = (
  leaf: Leaf,
  path: string,
  args: readonly string[],
  options: Record<string, unknown>,
) => Promise<void>;

/** Builds a command; `path` has the words before it: `zae-limiter`, `zae-limiter entity`. */
export function build(node: Group | Leaf, path: string, perform: Perform): Command {
  return isGroup(node) ? buildGroup(node, path, perform) : buildLeaf(node, path, perform);
}

function buildGroup(group: Group, path: string, perform: Perform): Command {
  const details = group.details === undefined ? "" : `\n\n${group.details}`;
  const command = new Command(group.name).description(`${sentence(group.summary)}.${details}`);
  // Without a command a group prints its help, like the program as a whole.
  command.usage("<command>").action(() => {
    const [word] = command.args;
    if (word === undefined) return command.outputHelp();
    throw new UsageError(unknownCommand(word, group.commands));
  });
  command.allowExcessArguments(true).helpOption("-h, --help", "show this text").helpCommand(false);
  for (const leaf of group.commands) {
    command.addCommand(buildLeaf(leaf, `${path} ${group.name}`, perform));
  }
  return command;
}

function buildLeaf(leaf: Leaf, path: string, perform: Perform): Command {
  const details = leaf.details === undefined ? "" : `\n\n${leaf.details}`;
  const command = new Command(leaf.name)
    .summary(leaf.summary)
    .description(`${sentence(leaf.summary)}.${details}`)
    .helpOption("-h, --help", "show this text")
    .allowExcessArguments(false);
  if (leaf.alias !== undefined) command.alias(leaf.alias);
  for (const spec of leaf.arguments ?? []) command.addArgument(argumentOf(spec));
  for (const spec of ownOptions(leaf)) command.addOption(optionOf(spec));
  for (const spec of storeOptions(leaf)) command.addOption(optionOf(spec).helpGroup(STORE_HEADING));
  for (const spec of COMMON_OPTIONS) command.addOption(optionOf(spec).helpGroup(COMMON_HEADING));
  if (leaf.examples !== undefined) {
    const examples = leaf.examples.map((example) => `  zae-limiter ${example}`).join("\n");
    command.addHelpText("after", `\nExamples:\n${examples}`);
  }
  return command.action(() =>
    perform(
      leaf,
      `${path} ${leaf.name}`,
      command.processedArgs.flat().filter((value): value is string => value !== undefined),
      command.opts(),
    ),
  );
}

function argumentOf({ name, text, choices }: ArgumentSpec): Argument {
  const argument = new Argument(name, text);
  return choices === undefined ? argument : argument.choices(choices);
}

function optionOf(spec: OptionSpec): Option {
  const option = new Option(spec.flags, spec.text);
  if (spec.choices !== undefined) option.choices(spec.choices);
  if (spec.repeat === true) {
    if (spec.required !== true) option.default([], "none");
    option.argParser((text, before) => [...asArray(before), parsed(spec, text)]);
  } else {
    if (spec.parse !== undefined) option.argParser((text) => parsed(spec, text));
    if (spec.default !== undefined) option.default(spec.default);
  }
  return spec.required === true ? option.makeOptionMandatory() : option;
}

function parsed({ parse }: OptionSpec, text: string): unknown {
  if (parse === undefined) return text;
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    throw new InvalidArgumentError(error.message);
  }
}

function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns an error that names the command that was probably meant. */
export function unknownCommand(word: string, commands: readonly { name: string }[]): string {
  const names = commands.map(({ name }) => name);
  return `there is no command "${word}", did you mean ${nearest(word, names)}?`;
}

/** Returns a summary as a sentence; in lists, summaries begin with a small letter. */
function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
