/** The texts of limits in what a reader types. */

/**
 * Splits at spaces, and at commas outside of a cron expression; a word without a name, such as
 * `soft` or a time zone, belongs to its limit.
 */
export function limitsIn(text: string): string[] {
  const limits: string[] = [];
  for (const word of text.split(/(?:\s|,(?![^()]*\)))+/).filter((part) => part !== "")) {
    const isLimit = /^[A-Za-z][A-Za-z0-9_.-]*:/.test(word) || limits.length === 0;
    if (isLimit) limits.push(word);
    else limits.push(`${limits.pop()} ${word}`);
  }
  return limits;
}
