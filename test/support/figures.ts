/** Figures that tests measure under `npm run soak:attack`, which names a file for them. */

import { appendFileSync } from "node:fs";

export function tellFigures(figures: Readonly<Record<string, number | string>>): void {
  const path = process.env.ZAEL_FIGURES;
  if (path !== undefined) appendFileSync(path, `${JSON.stringify(figures)}\n`);
}
