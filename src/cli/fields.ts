/** Names and values below each other, in columns. */

export function fields(
  rows: readonly (readonly [label: string, value: string])[],
  paint: (label: string) => string,
): string {
  const width = Math.max(...rows.map(([label]) => label.length));
  return rows.map(([label, value]) => `  ${paint(label.padEnd(width))}  ${value}`).join("\n");
}
