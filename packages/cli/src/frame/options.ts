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

/** Options that may also stand before the command. */
export const MOVABLE_OPTIONS: readonly OptionSpec[] = [
  ...STORE_OPTIONS,
  NAMESPACE_OPTION,
  ...COMMON_OPTIONS,
];

/** `-r, --resource <name>` in its parts. */
export function flagsOf({ flags }: OptionSpec): {
  readonly names: readonly string[];
  readonly value: string | undefined;
} {
  const at = flags.search(/[<[]/);
  if (at === -1) return { names: flags.split(/,\s*/), value: undefined };
  return { names: flags.slice(0, at).trimEnd().split(/,\s*/), value: flags.slice(at + 1, -1) };
}
