/** The exports of the entry points of the package, and which of them need an example. */

import { importedFile } from "../architecture/imports.ts";
import type { SourceFile } from "../architecture/source.ts";

/** An exported name and where it is declared. */
export interface PublicSymbol {
  readonly name: string;
  readonly path: string;
  readonly kind: string;
  /** Name of the class that a class extends. */
  readonly base: string | undefined;
}

/** Errors that users handle; the others only say more precisely what these say. */
const SHOWN_ERRORS = [
  "ZaeLimiterError",
  "RateLimitExceeded",
  "RateLimiterUnavailable",
  "ValidationError",
];

const EXPORT_PATTERN = /\bexport\s+(?:type\s+)?\{([^}]*)\}\s*from\s*["']([^"']+)["']/g;
/** The list of another room: the package exports what the limiter does, and more. */
const LIST_PATTERN = /\bexport\s*\*\s*from\s*["']([^"']+)["']/g;

/** The names an entry file re-exports, each with its declaration. */
export function publicSymbols(files: readonly SourceFile[], entry: string): PublicSymbol[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const file = byPath.get(entry);
  if (file === undefined) return [];
  const lists = [...file.code.matchAll(LIST_PATTERN)].flatMap(([, specifier = ""]) =>
    publicSymbols(files, fileOf(entry, specifier)),
  );
  const named = [...file.code.matchAll(EXPORT_PATTERN)].flatMap(
    ([, names = "", specifier = ""]) => {
      const path = fileOf(entry, specifier);
      return names
        .split(",")
        .map((name) => name.trim().replace(/^type\s+/, ""))
        .filter((name) => name !== "")
        .map((name) => declarationOf(name.split(/\s+as\s+/)[0] as string, path, byPath.get(path)));
    },
  );
  return [...lists, ...named];
}

function fileOf(entry: string, specifier: string): string {
  const path = importedFile(entry, specifier);
  if (path === undefined) throw new Error(`${entry} exports names of the package "${specifier}"`);
  return path;
}

/**
 * Every class, function and constant needs an example, and so do the errors users handle. A type
 * may have one; it shows in the examples of the functions that take or give it.
 */
export function needsExample(symbol: PublicSymbol, symbols: readonly PublicSymbol[]): boolean {
  if (symbol.kind === "interface" || symbol.kind === "type") return false;
  return SHOWN_ERRORS.includes(symbol.name) || !isError(symbol.name, symbols);
}

function isError(name: string | undefined, symbols: readonly PublicSymbol[]): boolean {
  if (name === undefined) return false;
  if (name === "Error") return true;
  return isError(symbols.find((symbol) => symbol.name === name)?.base, symbols);
}

function declarationOf(name: string, path: string, file: SourceFile | undefined): PublicSymbol {
  const pattern = new RegExp(
    `^export (?:abstract )?(?:async )?(class|function|const|interface|type) ${name}\\b` +
      "(?:<[^{]*>)?(?: extends (\\w+))?",
    "m",
  );
  const found = pattern.exec(file?.code ?? "");
  if (found === null) throw new Error(`"${name}" is exported, but not declared in ${path}`);
  return { name, path, kind: found[1] as string, base: found[2] };
}
