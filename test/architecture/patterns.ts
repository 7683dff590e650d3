/** Regular expressions of the sources: none may backtrack more than the text is long. */

import { check } from "recheck";
import { lineAt, type SourceFile, type Violation } from "./source.ts";

/** A regular expression that is put together at run time, as it is then. */
export interface BuiltPattern {
  readonly path: string;
  readonly source: string;
}

interface Pattern {
  readonly path: string;
  readonly line: number;
  readonly source: string;
  readonly flags: string;
}

/** Returns the patterns for which a text exists that takes more than linear time to match. */
export async function slowPatterns(
  files: readonly SourceFile[],
  built: readonly BuiltPattern[] = [],
): Promise<Violation[]> {
  const literals = files.flatMap((file) =>
    file.patterns.map(({ position, source, flags }) => {
      return { path: file.path, line: lineAt(file.text, position), source, flags };
    }),
  );
  const others = built.map(({ path, source }) => ({ path, line: 0, source, flags: "" }));
  const found: Violation[] = [];
  for (const pattern of [...literals, ...others]) {
    const problem = await problemOf(pattern);
    if (problem === undefined) continue;
    const { path, line, source, flags } = pattern;
    found.push({ path, line, rule: `/${source}/${flags} ${problem}` });
  }
  return found;
}

/** Patterns by their text: the same one is proven once. */
const proven = new Map<string, Promise<string | undefined>>();

function problemOf({ source, flags }: Pattern): Promise<string | undefined> {
  const text = `/${source}/${flags}`;
  let problem = proven.get(text);
  if (problem === undefined) {
    problem = prove(source, flags);
    proven.set(text, problem);
  }
  return problem;
}

async function prove(source: string, flags: string): Promise<string | undefined> {
  // Work is bounded by characters that are read, never by time: a busy machine proves the same.
  const bounds = { timeout: null, attackTimeout: null, incubationTimeout: null };
  const result = await check(source, flags, bounds);
  if (result.status === "safe") return undefined;
  if (result.status === "unknown") return `could not be proven: ${result.error.kind}`;
  return `takes ${result.complexity.summary} time, for example for ${result.attack.pattern}`;
}

/** Returns the places that build a pattern and are not listed, and listed ones that are gone. */
export function builtPatternViolations(
  files: readonly SourceFile[],
  built: readonly BuiltPattern[],
): Violation[] {
  const places = files.flatMap((file) =>
    [...file.words.matchAll(/\bRegExp\(/g)].map(({ index }) => {
      return { path: file.path, line: lineAt(file.text, index) };
    }),
  );
  const unlisted = places.filter(({ path }) => !built.some((entry) => entry.path === path));
  const stale = built.filter(({ path }) => !places.some((place) => place.path === path));
  return [
    ...unlisted.map((place) => ({ ...place, rule: "a pattern that is built is listed, as built" })),
    ...stale.map(({ path }) => ({ path, line: 0, rule: "is listed, and builds no pattern" })),
  ];
}
