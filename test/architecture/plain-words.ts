/** Comments, messages and titles in plain words, by docs/glossary.md, and comments that fit the page. */

import { lineAt, type SourceFile, type Violation } from "./source.ts";

const COLUMNS_MAX = 100;

/** Words that hide the actor of a sentence, and words that are not used in technical English. */
const UNWANTED =
  /\b(?:who|whoever|whom|nobody|somebody|everybody|anew|in vain|mend(?:s|ed|ing)?|beside|for ever)\b/gi;

const COMMENT_LINE = /^[ \t]*(?:\/\/|\/\*|\*).*$/gm;

/** A text that needs one of the words: the file, and a part of the line. */
export type Quote = readonly [path: string, part: string];

/** Returns the lines with unwanted words, except for the quotes, and comment lines too long. */
export function wordViolations(
  files: readonly SourceFile[],
  quotes: readonly Quote[],
): Violation[] {
  return files.flatMap(({ path, text }) => [
    ...[...text.matchAll(UNWANTED)]
      .filter(({ index }) => !isQuoted(path, lineTextAt(text, index), quotes))
      .map(({ 0: word, index }) => ({
        path,
        line: lineAt(text, index),
        rule: `says "${word}": name the caller, process, client or request`,
      })),
    ...[...text.matchAll(COMMENT_LINE)]
      .filter(({ 0: line }) => line.length > COLUMNS_MAX)
      .map(({ 0: line, index }) => ({
        path,
        line: lineAt(text, index),
        rule: `has a comment of ${line.length} columns, at most ${COLUMNS_MAX}`,
      })),
  ]);
}

/** Returns the quotes that no file needs any more. */
export function staleQuotes(files: readonly SourceFile[], quotes: readonly Quote[]): Quote[] {
  return quotes.filter(
    ([path, part]) => !files.some((file) => file.path === path && file.text.includes(part)),
  );
}

function isQuoted(path: string, line: string, quotes: readonly Quote[]): boolean {
  return quotes.some(([quoted, part]) => quoted === path && line.includes(part));
}

function lineTextAt(text: string, position: number): string {
  const end = text.indexOf("\n", position);
  return text.slice(text.lastIndexOf("\n", position) + 1, end < 0 ? undefined : end);
}
