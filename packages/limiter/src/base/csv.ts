/** Comma-separated values, as spreadsheets read them. */

/** Returns rows as CSV. A cell that a spreadsheet would run as a formula is made a text. */
export function csvText(rows: readonly (readonly string[])[], lineEnd = "\r\n"): string {
  return rows.map((row) => row.map(cell).join(",") + lineEnd).join("");
}

function cell(text: string): string {
  const isNumber = /^-?\d+(?:\.\d+)?$/.test(text);
  const safe = !isNumber && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
