/** Completion for fish, with a description of each word. */

import type { Line, OptionWords } from "./lines.ts";

export function fishScript(lines: readonly Line[]): string {
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
  const known = values.length === 0 ? [] : [`-f -a ${quoted(values.join(" "))}`];
  return [...named, ...value, ...known].join(" ");
}

function rule(condition: string, what: string, text: string): string {
  const described = text === "" ? "" : ` -d ${quoted(text)}`;
  return `complete -c zae-limiter -n ${quoted(condition)} ${what}${described}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
