/**
 * Text from elsewhere on a terminal. Names, principals and messages of servers may contain control
 * characters that move the cursor, change the title of the window or write to the clipboard, and
 * others that turn the direction of the text around, so that a name reads as another one. They are
 * shown as `\u001b`, which is also what JSON has for them.
 */

import type { Terminal } from "./terminal.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: it finds control characters.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Bidi_Control}]/gu;
// biome-ignore lint/suspicious/noControlCharactersInRegex: it finds control characters.
const CONTROL_AND_LINES = /[\u0000-\u001f\u007f-\u009f\p{Bidi_Control}]/gu;
/** The colours of the palette; the brackets keep them when a text is split by them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it finds control characters.
const OWN_COLOURS = /(\u001b\[(?:1|2|22|31|32|33|39)m)/;
/** Cursor moves that a drawing and a line of progress write apart from any text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it finds control characters.
const OWN_MOVES = /^(?:\r\u001b\[K|\u001b\[\?25[lh]|\u001b\[\d+A\u001b\[J)$/;

/** Returns one value for a line: without colours, tabs and line ends. */
export function visible(text: string): string {
  return text.replace(CONTROL_AND_LINES, escaped);
}

/** Returns a terminal on which only our own colours and moves have an effect. */
export function guarded(terminal: Terminal): Terminal {
  const through = (write: (text: string) => void) => (text: string) => write(guardedText(text));
  return {
    ...terminal,
    out: through(terminal.out),
    err: through(terminal.err),
    ask: (question) => terminal.ask(visible(question)),
    // The size changes while a command runs.
    get columns() {
      return terminal.columns;
    },
    get rows() {
      return terminal.rows;
    },
  };
}

function guardedText(text: string): string {
  if (OWN_MOVES.test(text)) return text;
  return text
    .split(OWN_COLOURS)
    .map((part, at) => (at % 2 === 1 ? part : part.replace(CONTROL, escaped)))
    .join("");
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
