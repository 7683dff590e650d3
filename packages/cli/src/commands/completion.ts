/** `completion`: scripts that complete command lines in bash, zsh and fish. */

import { isGroup, type Leaf, leaf } from "../frame/command.ts";
import { COMMON_OPTIONS, flagsOf, ownOptions, storeOptions } from "../frame/options.ts";
import type { Branch } from "../frame/registry.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;
type Shell = keyof typeof SCRIPTS;

/** Makes the command from the tree of commands, which it is a part of. */
export function completionOf(loadTree: () => Promise<readonly Branch[]>) {
  return leaf({
    name: "completion",
    summary: "completion for bash, zsh and fish",
    details:
      'bash: add to ~/.bashrc:  eval "$(zae-limiter completion bash)"\n' +
      'zsh:  add to ~/.zshrc:   eval "$(zae-limiter completion zsh)"\n' +
      "fish: zae-limiter completion fish > ~/.config/fish/completions/zae-limiter.fish",
    arguments: [{ name: "<shell>", text: "the shell", choices: Object.keys(SCRIPTS) }],
    json: { shell: "text", script: "text" },
    run: async ({ args }) => {
      const [shell] = args as [Shell];
      const script = SCRIPTS[shell](completionLines(await loadTree()));
      return { json: () => ({ shell, script }), text: () => script.trimEnd() };
    },
  });
}

/** A word that may come next, with its meaning. */
interface Word {
  readonly word: string;
  readonly text: string;
}

interface OptionWords {
  /** `-w`, `--window`. */
  readonly names: readonly string[];
  readonly text: string;
  readonly takesValue: boolean;
  /** The known values. */
  readonly values: readonly string[];
}

/** The words that can follow a place in the tree: the program, a group, or a command. */
interface Line {
  /** Empty for the program itself. */
  readonly path: readonly string[];
  readonly commands: readonly Word[];
  readonly options: readonly OptionWords[];
  /** The known values of the first argument. */
  readonly values: readonly string[];
}

function completionLines(tree: readonly Branch[]): Line[] {
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

/** Returns the last words of the commands with a beginning: `key` of `gateway key`. */
function wordsAfter(beginning: string, tree: readonly Branch[]): Word[] {
  return tree
    .filter(({ entry }) => entry.name.startsWith(beginning) && entry.shortFor === undefined)
    .map(({ entry }) => ({ word: entry.name.slice(beginning.length), text: entry.summary }))
    .filter(({ word }) => !word.includes(" "));
}

/** Returns the paths of `words` words that more words may follow, as patterns of a `case`. */
function casesOfGroups(lines: readonly Line[], words: number): string {
  return lines
    .filter(({ path, commands }) => path.length === words && commands.length > 0)
    .map(({ path }) => quoted(path.join(" ")))
    .join("|");
}

/** Returns a line of a `case` for each option that takes a value; `offer` makes its command. */
function casesOfValues(
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
function quoted(text: string): string {
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

/** Returns the script for bash, which offers files where the script offers nothing. */
function bashScript(lines: readonly Line[]): string {
  const values = casesOfValues(lines, (known) => `words=${quoted(known.join(" "))}; value=1`);
  const places = lines.map(({ path, commands, options, values: known }) => {
    const words = [
      ...commands.map(({ word }) => word),
      ...known,
      ...options.flatMap(({ names }) => names),
    ];
    return `    ${quoted(path.join(" "))}) words=${quoted(words.join(" "))} ;;`;
  });
  return `# zae-limiter completion for bash
_zae_limiter() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  local path="" words="" value=""
  [ "$COMP_CWORD" -gt 1 ] && path="\${COMP_WORDS[1]}"
  case "$path" in
    ${casesOfGroups(lines, 1)}) [ "$COMP_CWORD" -gt 2 ] && [[ "\${COMP_WORDS[2]}" != -* ]] && path="$path \${COMP_WORDS[2]}" ;;
  esac
  case "$path" in
    ${casesOfGroups(lines, 2)}) [ "$COMP_CWORD" -gt 3 ] && path="$path \${COMP_WORDS[3]}" ;;
  esac
  COMPREPLY=()
  case "$path $previous" in
${values}
  esac
  [ -z "$value" ] && case "$path" in
${places.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _zae_limiter zae-limiter
`;
}

function zshScript(lines: readonly Line[]): string {
  const values = casesOfValues(lines, (known) =>
    known.length === 0 ? "_files; return" : `compadd -- ${known.join(" ")}; return`,
  );
  const places = lines.map(({ path, commands, options, values: known }) => {
    const words = [
      ...commands.map(({ word, text }) => described(word, text)),
      ...known.map((word) => quoted(word)),
      ...options.flatMap(({ names, text }) => names.map((name) => described(name, text))),
    ];
    return `    ${quoted(path.join(" "))}) offered=(${words.join(" ")}) ;;`;
  });
  return `#compdef zae-limiter
_zae_limiter() {
  local place="" previous="\${words[CURRENT-1]}"
  local -a offered
  (( CURRENT > 2 )) && place="\${words[2]}"
  case "$place" in
    ${casesOfGroups(lines, 1)}) (( CURRENT > 3 )) && [[ "\${words[3]}" != -* ]] && place="$place \${words[3]}" ;;
  esac
  case "$place" in
    ${casesOfGroups(lines, 2)}) (( CURRENT > 4 )) && place="$place \${words[4]}" ;;
  esac
  case "$place $previous" in
${values}
  esac
  case "$place" in
${places.join("\n")}
  esac
  _describe 'zae-limiter' offered || _files
}
if [ "$funcstack[1]" = "_zae_limiter" ]; then
  _zae_limiter "$@"
else
  compdef _zae_limiter zae-limiter
fi
`;
}

/** Returns a word and its description in the form of zsh, separated by a colon. */
function described(word: string, text: string): string {
  return quoted(`${word.replaceAll(":", "\\:")}:${text.replaceAll(":", "\\:")}`);
}

function fishScript(lines: readonly Line[]): string {
  const rules = lines.flatMap((line) => {
    const condition = conditionOf(line);
    return [
      ...line.commands.map(({ word, text }) => rule(condition, `-f -a ${word}`, text)),
      ...line.values.map((word) => rule(condition, `-f -a ${word}`, "")),
      ...line.options.map((option) => rule(condition, flags(option), option.text)),
    ];
  });
  return `# zae-limiter completion for fish\n${rules.join("\n")}\n`;
}

function conditionOf({ path, commands }: Line): string {
  if (path.length === 0) return "__fish_use_subcommand";
  const seen = path.map((word) => `__fish_seen_subcommand_from ${word}`).join("; and ");
  if (commands.length === 0) return seen;
  const inner = commands.map(({ word }) => word).join(" ");
  return `${seen}; and not __fish_seen_subcommand_from ${inner}`;
}

function flags({ names, takesValue, values }: OptionWords): string {
  const named = names.map((name) =>
    name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
  );
  const value = takesValue ? ["-r"] : [];
  const known = values.length === 0 ? [] : [`-f -a ${fishQuoted(values.join(" "))}`];
  return [...named, ...value, ...known].join(" ");
}

function rule(condition: string, what: string, text: string): string {
  const described = text === "" ? "" : ` -d ${fishQuoted(text)}`;
  return `complete -c zae-limiter -n ${fishQuoted(condition)} ${what}${described}`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
