/**
 * The arrows of the design. A room imports the rooms that its manifest states, and no circle of
 * manifests exists. Inside the limiter each folder is a layer, and imports only lower layers.
 */

import { type Import, importsOf } from "./imports.ts";
import type { RoomArrows, SourceFile, Violation } from "./source.ts";

const BELOW_STORAGE = ["base", "core", "domain"];
const BELOW_REPOSITORY = [...BELOW_STORAGE, "storage", "records", "buckets"];
const BELOW_ACQUIRE = [...BELOW_REPOSITORY, "repository"];
const BELOW_EDGES = [...BELOW_ACQUIRE, "acquire", "manifest", "transfer"];
const ADAPTERS = ["memory", "sqlite", "dynamodb", "postgres", "redis"].map(
  (adapter) => `storage/${adapter}`,
);

/** From the bottom to the top. `storage` is the port; each adapter is a folder within it. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  base: [],
  core: [],
  domain: ["base", "core"],
  storage: BELOW_STORAGE,
  ...Object.fromEntries(ADAPTERS.map((adapter) => [adapter, [...BELOW_STORAGE, "storage"]])),
  records: [...BELOW_STORAGE, "storage"],
  buckets: [...BELOW_STORAGE, "storage", "records"],
  repository: [...BELOW_REPOSITORY, ...ADAPTERS],
  acquire: BELOW_ACQUIRE,
  // On the level of acquires: a file declares limits and consumes nothing.
  manifest: BELOW_ACQUIRE,
  // From store to store: it opens both, and consumes nothing.
  transfer: BELOW_ACQUIRE,
  http: BELOW_EDGES,
  llm: BELOW_EDGES,
  otel: BELOW_EDGES,
  // The list of what the limiter exports.
  "index.ts": BELOW_EDGES,
};

/** Arrows that a single file may add, for types only. */
const TYPE_EXCEPTIONS: Readonly<Record<string, string>> = {
  // A bucket and its store are one SQLite transaction; the repository hands it the database.
  "packages/limiter/src/buckets/embedded/sqlite-table.ts": "storage/sqlite",
};

/** The checkers of the simulator, which must not use what they judge. */
const CHECKERS = "packages/simulator/src/checkers/";
const JUDGED = ["core", "buckets", "acquire", "records"];

/** Layers that are plain TypeScript: no package, not even one of Node's own. */
const WITHOUT_PACKAGES = ["core", "domain"];

const ROOM = /^packages\/(\w+)\//;
const LIMITER = /^packages\/limiter\/src\//;

/** Imports that point upwards or sideways, and files outside every layer. */
export function layerViolations(files: readonly SourceFile[], rooms: RoomArrows): Violation[] {
  return files.flatMap((file) => {
    const layer = layerOf(file.path);
    if (layer !== undefined && ARROWS[layer] === undefined) {
      return [{ path: file.path, line: 1, rule: `"${layer}" is not a layer of the design` }];
    }
    return importsOf(file).flatMap((found) => arrowViolations(found, layer, rooms));
  });
}

/** Rooms whose manifests lead back to themselves. */
export function roomCircles(rooms: RoomArrows): Violation[] {
  return [...rooms.keys()]
    .filter((room) => reachedFrom(room, rooms).has(room))
    .map((room) => ({
      path: `packages/${room}/package.json`,
      line: 1,
      rule: "rooms must not name each other in a circle",
    }));
}

/** Checkers of the simulator that use the code they check: a mistake would be on both sides. */
export function checkerViolations(files: readonly SourceFile[]): Violation[] {
  return files
    .filter(({ path }) => path.startsWith(CHECKERS))
    .flatMap(importsOf)
    .filter(({ target = "" }) => JUDGED.includes(layerOf(target) ?? ""))
    .map(({ from, line, target }) => ({
      path: from,
      line,
      rule: `a checker must not use what it checks, but imports ${target}`,
    }));
}

function arrowViolations(found: Import, layer: string | undefined, rooms: RoomArrows): Violation[] {
  const rule =
    found.target === undefined
      ? brokenByPackage(found, layer)
      : (brokenByRoom(found.from, found.target, rooms) ??
        brokenByLayer(found, layer, layerOf(found.target)));
  return rule === undefined ? [] : [{ path: found.from, line: found.line, rule }];
}

function brokenByPackage({ specifier }: Import, layer: string | undefined): string | undefined {
  if (layer === undefined || !WITHOUT_PACKAGES.includes(layer)) return undefined;
  return `${layer} must not depend on a package, but imports "${specifier}"`;
}

function brokenByRoom(from: string, target: string, rooms: RoomArrows): string | undefined {
  const room = ROOM.exec(from)?.[1];
  const other = ROOM.exec(target)?.[1];
  // The package itself puts all rooms together, and no room knows it.
  if (room === undefined || room === other) return undefined;
  const stated = rooms.get(room) ?? [];
  if (stated.includes(other ?? "")) return undefined;
  return `${room} may import ${stated.join(", ")}, but imports ${target}`;
}

function brokenByLayer(
  { from, target, kind }: Import,
  layer: string | undefined,
  other: string | undefined,
): string | undefined {
  if (layer === undefined || other === undefined || other === layer) return undefined;
  const allowed = ARROWS[layer] ?? [];
  if (allowed.includes(other)) return undefined;
  if (kind === "type" && TYPE_EXCEPTIONS[from] === other) return undefined;
  const may = allowed.length === 0 ? "nothing else" : allowed.join(", ");
  return `${layer} may import ${may}, but imports ${target}`;
}

/**
 * The folder of a file of the limiter, or the adapter's under `storage`; `undefined` elsewhere. A
 * file outside the folders is a layer of its own.
 */
function layerOf(path: string): string | undefined {
  if (!LIMITER.test(path)) return undefined;
  const [folder = "", inner = "", ...rest] = path.replace(LIMITER, "").split("/");
  return folder === "storage" && rest.length > 0 ? `storage/${inner}` : folder;
}

function reachedFrom(room: string, rooms: RoomArrows): Set<string> {
  const reached = new Set<string>();
  const open = [...(rooms.get(room) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (reached.has(next)) continue;
    reached.add(next);
    open.push(...(rooms.get(next) ?? []));
  }
  return reached;
}
