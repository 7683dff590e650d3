/** Every name that the package exports has a doc comment, and so has each of its members. */

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

/** Names of the members without a comment. Overloads share the comment of the first. */
function undocumentedMembers(lines: readonly string[]): string[] {
  if (!/^export (?:abstract )?(?:class|interface) /.test(lines[1] ?? "")) return [];
  const missing: string[] = [];
  let seen = "";
  for (const [at, line] of lines.entries()) {
    const name = MEMBER_PATTERN.exec(line)?.[1] ?? "";
    if (name === "" || MODIFIERS.includes(name)) continue;
    if (name !== seen && !(lines[at - 1] ?? "").endsWith("*/")) missing.push(name);
    seen = name;
  }
  return missing;
}

test("the check finds the members without a comment", () => {
  const lines = [
    "/** A. */",
    "export class A {",
    "  /** B. */",
    "  readonly b: 1;",
    "  c(): void {",
  ];
  expect(undocumentedMembers(lines)).toEqual(["c"]);
});

test.each(entries)("every name that %s exports has a doc comment", (entry) => {
  const bare = declarations(entry).filter(
    ({ name, file }) => !(linesOf(name, file)[0] ?? "").endsWith("*/"),
  );
  expect(bare.map(({ name, file }) => `${file.path} ${name}`)).toEqual([]);
});

test.each(entries)("every member of what %s exports has a doc comment", (entry) => {
  const bare = declarations(entry).flatMap(({ name, file }) =>
    undocumentedMembers(linesOf(name, file)).map((member) => `${file.path} ${name}.${member}`),
  );
  expect([...new Set(bare)]).toEqual([]);
});
