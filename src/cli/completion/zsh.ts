/** Completion for zsh, with a description of each word. */

import type { Line } from "./lines.ts";

export function zshScript(lines: readonly Line[]): string {
  const groups = (words: number) =>
    lines
      .filter(({ path, commands }) => path.length === words && commands.length > 0)
      .map(({ path }) => quoted(path.join(" ")));
  const values = lines.flatMap(({ path, options }) =>
    options
      .filter(({ takesValue }) => takesValue)
      .map(({ names, values: known }) => {
        const places = names.map((name) => quoted([...path, name].join(" "))).join("|");
        const offered = known.length === 0 ? "_files" : `compadd -- ${known.join(" ")}`;
        return `    ${places}) ${offered}; return ;;`;
      }),
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
    ${groups(1).join("|")}) (( CURRENT > 3 )) && [[ "\${words[3]}" != -* ]] && place="$place \${words[3]}" ;;
  esac
  case "$place" in
    ${groups(2).join("|")}) (( CURRENT > 4 )) && place="$place \${words[4]}" ;;
  esac
  case "$place $previous" in
${values.join("\n")}
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

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
