/** Moves options of a command line that stand before the command. */

import { flagsOf, MOVABLE_OPTIONS } from "./options.ts";

/** Options that stand before the command are moved behind it, where the command checks them. */
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

/** How many words the option there takes; 0 when it is none that may be moved. */
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
