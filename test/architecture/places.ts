/** Words that are allowed only in certain places, or nowhere. */

import { lineAt, type SourceFile, type Violation } from "./source.ts";

/** A word, why it is kept out, and the files it may still be in. */
export interface Place {
  readonly rule: string;
  readonly pattern: RegExp;
  /** The text to search: the code without comments, also without strings, or all of it. */
  readonly within: "code" | "words" | "text";
  /** Paths, or folders that end in a slash. */
  readonly allowed: readonly string[];
}

const LINES_MAX = 400;

/** Returns the files with a word that is not allowed there, and those that are too long. */
export function placeViolations(
  files: readonly SourceFile[],
  places: readonly Place[],
): Violation[] {
  return files.flatMap((file) => [
    ...places.flatMap((place) => wordViolations(file, place)),
    ...lengthViolations(file),
  ]);
}

/** Places on a list of exceptions that do not need to be there any more. */
export function staleExceptions(
  files: readonly SourceFile[],
  places: readonly Place[],
): Violation[] {
  return places.flatMap((place) =>
    place.allowed
      .filter((path) => {
        const covered = files.filter((file) => isWithin(file.path, path));
        return !covered.some((file) => matches(file, place).length > 0);
      })
      .map((path) => ({ path, line: 1, rule: `needs no exception any more: ${place.rule}` })),
  );
}

function wordViolations(file: SourceFile, place: Place): Violation[] {
  if (place.allowed.some((path) => isWithin(file.path, path))) return [];
  return matches(file, place).map(({ index, 0: word }) => ({
    path: file.path,
    line: lineAt(file.text, index),
    rule: `${place.rule}: ${word.trim()}`,
  }));
}

function matches(file: SourceFile, place: Place): RegExpExecArray[] {
  return [...file[place.within].matchAll(place.pattern)];
}

function isWithin(path: string, allowed: string): boolean {
  return allowed.endsWith("/") ? path.startsWith(allowed) : path === allowed;
}

function lengthViolations(file: SourceFile): Violation[] {
  const lines = file.text.trimEnd().split("\n").length;
  if (lines <= LINES_MAX) return [];
  return [
    { path: file.path, line: LINES_MAX + 1, rule: `has ${lines} lines, at most ${LINES_MAX}` },
  ];
}
