/** The arrows of the design: a folder of `src` is a layer, and layers look only downwards. */

import { type Import, importsOf } from "./imports.ts";
import type { SourceFile, Violation } from "./source.ts";

/** From the bottom to the top. `storage` is the port; each adapter is a folder within it. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  domain: ["core"],
  storage: ["core", "domain"],
  "storage/memory": ["core", "domain", "storage"],
  "storage/sqlite": ["core", "domain", "storage"],
  "storage/dynamodb": ["core", "domain", "storage"],
  records: ["core", "domain", "storage"],
  buckets: ["core", "domain", "storage", "records"],
  repository: [
    "core",
    "domain",
    "storage",
    "storage/memory",
    "storage/sqlite",
    "storage/dynamodb",
    "records",
    "buckets",
  ],
  limiter: ["core", "domain", "storage", "records", "buckets", "repository"],
  // On the level of the limiter: a file declares limits and consumes nothing.
  manifest: ["core", "domain", "storage", "records", "repository"],
  // On the same level: older tables, which no limiter uses before they are migrated.
  migrations: ["core", "domain", "storage", "records", "repository"],
};

/** Arrows that a single file may add, for types only. */
const TYPE_EXCEPTIONS: Readonly<Record<string, string>> = {
  // A bucket and its store are one SQLite transaction; the repository hands it the database.
  "packages/limiter/src/buckets/embedded/sqlite-table.ts": "storage/sqlite",
  // `Repository.provision` takes the options of a stack.
  "packages/limiter/src/repository/options.ts": "infra",
  "src/index.ts": "infra",
};

/** The same for code that is loaded only when a certain method is called. */
const LATE_EXCEPTIONS: Readonly<Record<string, string>> = {
  // `Repository.provision` is what `zae-limiter deploy` does.
  "packages/limiter/src/repository/opening.ts": "infra",
};

const BELOW_EDGES = Object.keys(ARROWS);
const EDGES = ["http", "llm", "otel", "aggregator", "infra", "dashboard", "loadtest", "testing"];

/** What the checkers of the simulator judge, and therefore must not use. */
const CHECKERS = "simulator/checkers/";
const JUDGED = ["src/core/", "src/buckets/", "src/limiter/", "src/records/"];

/** Layers that are plain TypeScript: no package, not even one of Node's own. */
const WITHOUT_PACKAGES = ["core", "domain"];

/** Imports that point upwards or sideways, and files outside every layer. */
export function layerViolations(files: readonly SourceFile[]): Violation[] {
  return files.flatMap((file) => {
    const layer = layerOf(file.path);
    const allowed = allowedFrom(layer);
    if (allowed === undefined) {
      return [{ path: file.path, line: 1, rule: `"${layer}" is not a layer of the design` }];
    }
    return importsOf(file).flatMap((found) => arrowViolations(found, layer, allowed));
  });
}

function arrowViolations(found: Import, layer: string, allowed: readonly string[]): Violation[] {
  const broken = (rule: string): Violation[] => [{ path: found.from, line: found.line, rule }];
  if (found.target === undefined) {
    if (!WITHOUT_PACKAGES.includes(layer)) return [];
    return broken(`${layer} must not depend on a package, but imports "${found.specifier}"`);
  }
  const target = layerOf(found.target);
  if (target === layer || allowed.includes(target)) return [];
  if (found.kind === "type" && TYPE_EXCEPTIONS[found.from] === target) return [];
  if (found.kind === "dynamic" && LATE_EXCEPTIONS[found.from] === target) return [];
  const may = allowed.length === 0 ? "nothing else" : allowed.join(", ");
  return broken(`${layer} may import ${may}, but imports ${found.target}`);
}

/** Checkers of the simulator that use the code they check: a mistake would be on both sides. */
export function checkerViolations(files: readonly SourceFile[]): Violation[] {
  return files
    .filter(({ path }) => path.startsWith(CHECKERS))
    .flatMap(importsOf)
    .filter(({ target = "" }) => JUDGED.some((folder) => target.startsWith(folder)))
    .map(({ from, line, target }) => ({
      path: from,
      line,
      rule: `a checker must not use what it checks, but imports ${target}`,
    }));
}

/**
 * The folder under `src`, or the adapter's under `storage`. A file in `src` itself is a layer of
 * its own, and so is a folder outside of `src`.
 */
function layerOf(path: string): string {
  const [top = "", folder = "", inner = "", ...rest] = path.split("/");
  if (top !== "src") return top;
  return folder === "storage" && rest.length > 0 ? `storage/${inner}` : folder;
}

function allowedFrom(layer: string): readonly string[] | undefined {
  if (layer === "index.ts") return BELOW_EDGES;
  if (layer === "cli") return [...BELOW_EDGES, ...EDGES, "index.ts"];
  if (EDGES.includes(layer)) return BELOW_EDGES;
  return ARROWS[layer];
}
