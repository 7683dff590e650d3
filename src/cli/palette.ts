/** Colours for terminals, and plain text for everything else. */

import { styleText } from "node:util";

/** Each marks a text by what it means, not by a colour. */
export interface Palette {
  readonly title: (text: string) => string;
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly faint: (text: string) => string;
}

const plain = (text: string) => text;

export const PLAIN: Palette = { title: plain, good: plain, bad: plain, faint: plain };

export const COLOURED: Palette = {
  title: (text) => styled("bold", text),
  good: (text) => styled("green", text),
  bad: (text) => styled("red", text),
  faint: (text) => styled("dim", text),
};

/** Colours only on a terminal, and never where `NO_COLOR` holds anything. */
export function paletteFor(isTerminal: boolean, noColor: string | undefined): Palette {
  return isTerminal && (noColor ?? "") === "" ? COLOURED : PLAIN;
}

/** Whether to colour is decided above. Node would look at the environment, and may warn about it. */
function styled(format: "bold" | "green" | "red" | "dim", text: string): string {
  return styleText(format, text, { validateStream: false });
}
