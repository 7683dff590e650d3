/** Names and values below each other, in columns. */

import { visible } from "../terminal/visible.ts";

export function fields(
  rows: readonly (readonly [label: string, value: string])[],
  paint: (label: string) => string,
): string {
  const width = Math.max(...rows.map(([label]) => label.length));
  return rows
    .map(([label, value]) => `  ${paint(label.padEnd(width))}  ${visible(value)}`)
    .join("\n");
}
