/**
 * Every name that the package exports has a doc comment. Of its members those have one that need
 * it: methods, options, and numbers, whose unit it states. A comment that repeats the name of a
 * member helps no reader, so other members may have none.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { entryFiles, type PackageEntries } from "./architecture/graph.ts";
import { readSources, type SourceFile } from "./architecture/source.ts";
import { publicSymbols } from "./examples/public-symbols.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const MANIFEST = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as PackageEntries;
const DECLARATION_PATTERN =
  /^export (?:abstract )?(?:async )?(?:class|function|const|interface|type) (\w+)/gm;
/** A member of a class or an interface, by its name; not a private one, and no constructor. */
const MEMBER_PATTERN =
  /^ {2}(?:(?:readonly|static|async|get|set) )*(?!constructor\b|override |private |extends )(\[[^\]]+\]|\w+\b)(?! #)/;

const MODIFIERS = ["readonly", "static", "async", "get", "set"];

const files = new Map(readSources(ROOT).map((file) => [file.path, file]));
const entries = entryFiles({ exports: MANIFEST.exports });

/** The declarations behind an entry point: those it re-exports, and its own. */
function declarations(entry: string): { name: string; file: SourceFile }[] {
  const own = [...sourceOf(entry).text.matchAll(DECLARATION_PATTERN)];
  return [
    ...publicSymbols([...files.values()], entry).map(({ name, path }) => ({ name, path })),
    ...own.map(([, name = ""]) => ({ name, path: entry })),
  ].map(({ name, path }) => ({ name, file: sourceOf(path) }));
}

function sourceOf(path: string): SourceFile {
  const file = files.get(path);
  if (file === undefined) throw new Error(`there is no ${path}`);
  return file;
}

/** The lines of a declaration, from the one before it to its closing brace. */
function linesOf(name: string, { text }: SourceFile): string[] {
  const lines = text.split("\n");
  const pattern = new RegExp(`^export (?:[a-z]+ )+${name}\\b`);
  const start = lines.findIndex((line) => pattern.test(line));
  const end = lines.findIndex((line, at) => at >= start && /^(?:[}\])].*|\S.*;)$/.test(line));
  return lines.slice(Math.max(0, start - 1), end);
}

/** A class or an interface, by its name. */
const OWNER_PATTERN = /^export (?:abstract )?(?:class|interface) (\w+)/;
/** A type whose members a caller writes. */
const OPTIONS_PATTERN = /(?:Options|Request|Settings|Connection)$/;
/** A method, a member that is a function, or a number. */
const EXPLAINED_PATTERN = /\w[>)]?\(|\w\??: \(|=> |\bnumber\b/;

/** Returns the members that need a comment and have none. Overloads share that of the first. */
function undocumentedMembers(lines: readonly string[]): string[] {
  const owner = OWNER_PATTERN.exec(lines[1] ?? "")?.[1];
  if (owner === undefined) return [];
  const missing: string[] = [];
  let seen = "";
  for (const [at, line] of lines.entries()) {
    const name = MEMBER_PATTERN.exec(line)?.[1] ?? "";
    if (name === "" || MODIFIERS.includes(name)) continue;
    if (!OPTIONS_PATTERN.test(owner) && !EXPLAINED_PATTERN.test(line)) continue;
    if (name !== seen && !(lines[at - 1] ?? "").endsWith("*/")) missing.push(name);
    seen = name;
  }
  return missing;
}

test.each([
  ["export class A {", "  readonly a: string;", []],
  ["export class A {", "  a(): void {", ["a"]],
  ["export class A {", "  static async a<T>(value: T): Promise<T> {", ["a"]],
  ["export interface A {", "  readonly a?: (value: string) => void;", ["a"]],
  ["export interface A {", "  readonly a: number | undefined;", ["a"]],
  ["export interface AOptions {", "  readonly a?: string;", ["a"]],
])("in %j a member %j without a comment is reported: %j", (owner, member, found) => {
  const lines = ["/** A. */", owner, "  /** B. */", "  b(): void {", member];
  expect(undocumentedMembers(lines)).toEqual(found);
});

test.each(entries)("every name that %s exports has a doc comment", (entry) => {
  const bare = declarations(entry).filter(
    ({ name, file }) => !(linesOf(name, file)[0] ?? "").endsWith("*/"),
  );
  expect(bare.map(({ name, file }) => `${file.path} ${name}`)).toEqual([]);
});

test.each(entries)(
  "every method, option and number of what %s exports has a doc comment",
  (entry) => {
    const bare = declarations(entry).flatMap(({ name, file }) =>
      undocumentedMembers(linesOf(name, file)).map((member) => `${file.path} ${name}.${member}`),
    );
    expect([...new Set(bare)]).toEqual([]);
  },
);
