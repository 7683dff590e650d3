/** Colours for terminals, and plain text for everything else. */

import pc from "picocolors";

/** Each marks a text by what it means, not by a colour. */
export interface Palette {
  readonly title: (text: string) => string;
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
  readonly warning: (text: string) => string;
  readonly faint: (text: string) => string;
}

const plain = (text: string) => text;

export const PLAIN: Palette = {
  title: plain,
  good: plain,
  bad: plain,
  warning: plain,
  faint: plain,
};

/**
 * Always coloured: `paletteFor` decides whether to colour, so nothing here reads the environment.
 */
const colours = pc.createColors(true);

export const COLOURED: Palette = {
  title: colours.bold,
  good: colours.green,
  bad: colours.red,
  warning: colours.yellow,
  faint: colours.dim,
};

/** Colours only on a terminal, and never where `NO_COLOR` holds anything. */
export function paletteFor(isTerminal: boolean, noColor: string | undefined): Palette {
  return isTerminal && (noColor ?? "") === "" ? COLOURED : PLAIN;
}
