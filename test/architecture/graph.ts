/**
 * Rules about all imports together: cycles, dead files, and what loading the package loads.
 */

import { sourcePath } from "../../scripts/entry-points.mjs";
import { type Import, importsOf } from "./imports.ts";
import type { SourceFile, Violation } from "./source.ts";

/** Packages that are only loaded when a store needs them. */
const LOADED_ON_DEMAND =
  /^(@aws-sdk\/|@smithy\/|aws4|undici|libsql|better-sqlite3|pg$|node:sqlite)/;

/** The part of package.json that says where users come in. */
export interface PackageEntries {
  readonly exports: Readonly<Record<string, string | { readonly default?: string }>>;
  readonly bin?: Readonly<Record<string, string>>;
}

/** The source files of the entry points: `./dist/cli/main.js` is `packages/cli/src/main.ts`. */
export function entryFiles(manifest: PackageEntries): string[] {
  const built = [
    ...Object.values(manifest.exports).map((entry) =>
      typeof entry === "string" ? entry : (entry.default ?? ""),
    ),
    ...Object.values(manifest.bin ?? {}),
  ];
  const scripts = built.flatMap((path) => /^(?:\.\/)?dist\/(.*)\.js$/.exec(path)?.[1] ?? []);
  return [...new Set(scripts.map((path) => `${sourcePath(path)}.ts`))];
}

/** Files that import each other in a circle. Type imports are no part of it: they do not run. */
export function cycleViolations(files: readonly SourceFile[]): Violation[] {
  const imports = new Map(files.map((file) => [file.path, importsOf(file).filter(isValue)]));
  const done = new Set<string>();
  const trail: string[] = [];
  const violations: Violation[] = [];
  const visit = (path: string) => {
    trail.push(path);
    for (const { target, line } of imports.get(path) ?? []) {
      if (target === undefined || done.has(target)) continue;
      const start = trail.indexOf(target);
      if (start >= 0) {
        const circle = [...trail.slice(start), target].join(" -> ");
        violations.push({ path, line, rule: `closes a cycle of imports: ${circle}` });
      } else {
        visit(target);
      }
    }
    trail.pop();
    done.add(path);
  };
  for (const { path } of files) if (!done.has(path)) visit(path);
  return violations;
}

/** Imports of files that are not there, and files that no entry point leads to. */
export function deadFileViolations(
  files: readonly SourceFile[],
  entries: readonly string[],
  awaited: readonly string[],
): Violation[] {
  const reached = closure(files, entries, () => true);
  const paths = new Set(files.map((file) => file.path));
  const missing = entries
    .filter((entry) => !paths.has(entry))
    .map((entry) => ({ path: entry, line: 1, rule: "package.json names it, but it is not there" }));
  const dead = files
    .filter(({ path }) => !reached.has(path) && !awaited.includes(path))
    .map(({ path }) => ({ path, line: 1, rule: "no entry point of the package leads here" }));
  const arrived = awaited
    .filter((path) => reached.has(path) || !paths.has(path))
    .map((path) => ({ path, line: 1, rule: "is not awaited any more: take it off the list" }));
  return [...missing, ...dead, ...arrived];
}

/** Packages that importing `entry` would load at once, although they must wait for a store. */
export function eagerPackageViolations(files: readonly SourceFile[], entry: string): Violation[] {
  const loaded = closure(files, [entry], isValue);
  return files
    .filter((file) => loaded.has(file.path))
    .flatMap(importsOf)
    .filter((found) => isValue(found) && LOADED_ON_DEMAND.test(found.specifier))
    .map(({ from, line, specifier }) => ({
      path: from,
      line,
      rule: `${entry} must not load "${specifier}" before a store needs it`,
    }));
}

function isValue(found: Import): boolean {
  return found.kind === "value";
}

function closure(
  files: readonly SourceFile[],
  entries: readonly string[],
  follows: (found: Import) => boolean,
): Set<string> {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const reached = new Set<string>();
  const open = [...entries];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    const file = byPath.get(path);
    if (file === undefined || reached.has(path)) continue;
    reached.add(path);
    for (const found of importsOf(file).filter(follows)) {
      if (found.target !== undefined) open.push(found.target);
    }
  }
  return reached;
}
