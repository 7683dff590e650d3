/** Warnings that a caller may cause with every call: the process gets each sentence once. */

/** Sentences may contain names that callers choose, so their number is bounded. */
const REMEMBERED_MAX = 1000;
const printed = new Set<string>();

/** Warns the process, unless it got the same sentence before. */
export function warnOnce(code: string, sentence: string): void {
  if (printed.has(sentence) || printed.size === REMEMBERED_MAX) return;
  printed.add(sentence);
  process.emitWarning(sentence, { code });
}
