/** The rule of plain words for comments, messages, titles and documents, and of wide comments. */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { lineAt, type Violation } from "./source.ts";

const COLUMNS_MAX = 100;

/** Words that hide the actor of a sentence, and words that are not used in technical English. */
const UNWANTED =
  /\b(?:who|whoever|whom|nobody|somebody|everybody|anew|in vain|mend(?:s|ed|ing)?|beside|for ever)\b/gi;

const COMMENT_LINE = /^[ \t]*(?:\/\/|\/\*|\*).*$/gm;

/** A file as it is written. */
export interface TextFile {
  readonly path: string;
  readonly text: string;
}

/** A text that needs one of the words: the file, and a part of the line. */
export type Quote = readonly [path: string, part: string];

/** Folders with files that are installed or built. */
const FOREIGN = /\/(?:node_modules|dist)\//;

/** Reads the files of a folder with an ending, such as `.ts`, that are written by hand. */
export function readTexts(root: string, folder: string, ending: string): TextFile[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .map((entry) => `${folder}/${entry.replaceAll("\\", "/")}`)
    .filter((path) => path.endsWith(ending) && !FOREIGN.test(path))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

/** Reads the documents of the project: those in its root, pages, examples and changes. */
export function readDocuments(root: string): TextFile[] {
  const inRoot = readdirSync(root).filter((path) => path.endsWith(".md"));
  return [
    ...inRoot.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") })),
    ...["docs", "examples", "changes", "packages"].flatMap((folder) =>
      readTexts(root, folder, ".md"),
    ),
  ];
}

/** Returns the lines with unwanted words, except for the quotes, and comment lines too long. */
export function wordViolations(files: readonly TextFile[], quotes: readonly Quote[]): Violation[] {
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
export function staleQuotes(files: readonly TextFile[], quotes: readonly Quote[]): Quote[] {
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
