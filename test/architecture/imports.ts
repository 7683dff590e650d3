/** The imports of each file. */

import { dirname, join } from "node:path/posix";
import { lineAt, SCOPE, type SourceFile } from "./source.ts";

/** One import, re-export or dynamic import. */
export interface Import {
  readonly from: string;
  readonly line: number;
  readonly specifier: string;
  /** A `type` import is gone after compilation; a `dynamic` one happens later, if at all. */
  readonly kind: "value" | "type" | "dynamic";
  /** The imported file of the package or of a room; otherwise it is a package. */
  readonly target: string | undefined;
}

const STATIC_PATTERN =
  /\b(?:import|export)\s+(type\s+)?(?:[\w$*\s{},]+?\s+from\s+)?["']([^"'\n]+)["']/g;
const DYNAMIC_PATTERN = /\bimport\(\s*["']([^"'\n]+)["']/g;

/** All imports of a file. */
export function importsOf(file: SourceFile): Import[] {
  const statics = [...file.code.matchAll(STATIC_PATTERN)].map((match) =>
    toImport(file, match.index, match[2] as string, match[1] === undefined ? "value" : "type"),
  );
  const dynamics = [...file.code.matchAll(DYNAMIC_PATTERN)].map((match) =>
    toImport(file, match.index, match[1] as string, "dynamic"),
  );
  return [...statics, ...dynamics];
}

function toImport(
  file: SourceFile,
  position: number,
  specifier: string,
  kind: Import["kind"],
): Import {
  const target = importedFile(file.path, specifier);
  return { from: file.path, line: lineAt(file.code, position), specifier, kind, target };
}

/** Returns the file that a specifier means, relative or in a room; `undefined` for a package. */
export function importedFile(from: string, specifier: string): string | undefined {
  if (specifier.startsWith(".")) return join(dirname(from), specifier);
  if (!specifier.startsWith(SCOPE)) return undefined;
  const [room, ...path] = specifier.slice(SCOPE.length).split("/");
  const place = path[0] === "page" ? "" : "src/";
  return `packages/${room}/${place}${path.join("/")}`;
}
