/** Completion for bash: where files may follow, nothing is offered, and bash offers files. */

import { casesOfGroups, casesOfValues, type Line, quoted } from "./lines.ts";

export function bashScript(lines: readonly Line[]): string {
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
