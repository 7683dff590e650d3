/** All options of a command: its own, those of its store, and those that every command has. */

import { NAMESPACE_OPTION, STORE_OPTIONS } from "../store/store-options.ts";
import type { Leaf, OptionSpec } from "./command.ts";

const JSON_OPTION: OptionSpec = { flags: "--json", text: "print JSON instead of text" };
const DEBUG_OPTION: OptionSpec = { flags: "--debug", text: "show where an error comes from" };
const YES_OPTION: OptionSpec = { flags: "-y, --yes", text: "do not ask" };

export const STORE_HEADING = "Store:";
export const COMMON_HEADING = "Output:";

export function ownOptions(leaf: Leaf): readonly OptionSpec[] {
  return [...(leaf.options ?? []), ...(leaf.confirms === true ? [YES_OPTION] : [])];
}

export function storeOptions(leaf: Leaf): readonly OptionSpec[] {
  if (leaf.store === undefined) return [];
  return leaf.namespaced === false ? STORE_OPTIONS : [...STORE_OPTIONS, NAMESPACE_OPTION];
}

export const COMMON_OPTIONS: readonly OptionSpec[] = [JSON_OPTION, DEBUG_OPTION];

/** Options that are also accepted before the command. */
const MOVABLE_OPTIONS: readonly OptionSpec[] = [
  ...STORE_OPTIONS,
  NAMESPACE_OPTION,
  ...COMMON_OPTIONS,
];

/** Splits `-r, --resource <name>` into its parts. */
export function flagsOf({ flags }: OptionSpec): {
  readonly names: readonly string[];
  readonly value: string | undefined;
} {
  const at = flags.search(/[<[]/);
  if (at === -1) return { names: flags.split(/,\s*/), value: undefined };
  return { names: flags.slice(0, at).trimEnd().split(/,\s*/), value: flags.slice(at + 1, -1) };
}

/** Moves options from before the command behind it, where the command checks them. */
export function movedBehind(args: readonly string[]): string[] {
  const moved: string[] = [];
  let at = 0;
  for (let count = optionAt(args, at); count > 0; count = optionAt(args, at)) {
    moved.push(...args.slice(at, at + count));
    at += count;
  }
  const rest = args.slice(at);
  if (moved.length === 0 || rest.length === 0 || rest[0]?.startsWith("-") === true)
    return [...args];
  const end = rest.indexOf("--");
  const before = end < 0 ? rest : rest.slice(0, end);
  return [...before, ...moved, ...rest.slice(before.length)];
}

/** Returns the number of words of the option there; 0 when it is none that may be moved. */
function optionAt(args: readonly string[], at: number): number {
  const word = args[at];
  if (word === undefined) return 0;
  const [flag = ""] = word.split("=", 1);
  for (const spec of MOVABLE_OPTIONS) {
    const { names, value } = flagsOf(spec);
    if (!names.includes(flag)) continue;
    return value === undefined || word.includes("=") ? 1 : 2;
  }
  return 0;
}
