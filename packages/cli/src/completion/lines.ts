/** What can come next on a command line, for every place in the tree of commands. */

import { isGroup, type Leaf } from "../frame/command.ts";
import { COMMON_OPTIONS, flagsOf, ownOptions, storeOptions } from "../frame/options.ts";
import type { Branch } from "../frame/registry.ts";

/** One word that may come, and what it is. */
interface Word {
  readonly word: string;
  readonly text: string;
}

export interface OptionWords {
  /** `-w`, `--window`. */
  readonly names: readonly string[];
  readonly text: string;
  readonly takesValue: boolean;
  /** What the value may be, as far as that is known. */
  readonly values: readonly string[];
}

/** A place: the program, a group, or a command. */
export interface Line {
  /** Empty for the program itself. */
  readonly path: readonly string[];
  readonly commands: readonly Word[];
  readonly options: readonly OptionWords[];
  /** Values of the first argument, as far as they are known. */
  readonly values: readonly string[];
}

export function completionLines(tree: readonly Branch[]): Line[] {
  const top = wordsAfter("", tree);
  return [
    { path: [], commands: top, options: TOP_OPTIONS, values: [] },
    ...tree.flatMap(({ node }) => {
      if (!isGroup(node)) {
        return [{ ...leafLine([], node), commands: wordsAfter(`${node.name} `, tree) }];
      }
      const path = node.name.split(" ");
      const words = node.commands.map(({ name, summary }) => ({ word: name, text: summary }));
      return [
        { path, commands: words, options: [HELP], values: [] },
        ...node.commands.map((leaf) => leafLine(path, leaf)),
      ];
    }),
  ];
}

/** The last words of the commands whose name begins like that: `key` of `gateway key`. */
function wordsAfter(beginning: string, tree: readonly Branch[]): Word[] {
  return tree
    .filter(({ entry }) => entry.name.startsWith(beginning) && entry.shortFor === undefined)
    .map(({ entry }) => ({ word: entry.name.slice(beginning.length), text: entry.summary }))
    .filter(({ word }) => !word.includes(" "));
}

/** The paths of so many words that more words may follow, as the patterns of a `case`. */
export function casesOfGroups(lines: readonly Line[], words: number): string {
  return lines
    .filter(({ path, commands }) => path.length === words && commands.length > 0)
    .map(({ path }) => quoted(path.join(" ")))
    .join("|");
}

/** A line of a `case` for each option that takes a value; `offer` is what is done about it. */
export function casesOfValues(
  lines: readonly Line[],
  offer: (values: readonly string[]) => string,
): string {
  const takers = lines.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ names, values }) => {
        const places = names.map((name) => quoted([...path, name].join(" "))).join("|");
        return `    ${places}) ${offer(values)} ;;`;
      }),
  );
  return takers.join("\n");
}

/** Quotes a text for bash and zsh. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

const HELP: OptionWords = option(["-h", "--help"], "show help");
const TOP_OPTIONS: readonly OptionWords[] = [HELP, option(["-V", "--version"], "show the version")];

function leafLine(before: readonly string[], leaf: Leaf): Line {
  const specs = [...ownOptions(leaf), ...storeOptions(leaf), ...COMMON_OPTIONS];
  return {
    path: [...before, leaf.name],
    commands: [],
    options: [
      ...specs.map((spec) => {
        const { names, value } = flagsOf(spec);
        return {
          names,
          text: spec.text,
          takesValue: value !== undefined,
          values: spec.choices ?? [],
        };
      }),
      HELP,
    ],
    values: leaf.arguments?.[0]?.choices ?? [],
  };
}

function option(names: readonly string[], text: string): OptionWords {
  return { names, text, takesValue: false, values: [] };
}
