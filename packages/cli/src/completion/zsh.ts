/** Completion for zsh, with a description of each word. */

import { casesOfGroups, casesOfValues, type Line, quoted } from "./lines.ts";

export function zshScript(lines: readonly Line[]): string {
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

/** A colon separates the word from what it is. */
function described(word: string, text: string): string {
  return quoted(`${word.replaceAll(":", "\\:")}:${text.replaceAll(":", "\\:")}`);
}
