/**
 * The entities that a manifest creates. One that exists stays as it is: another parent or another
 * cascade would change which limits its calls consume from, and that is a decision of its own.
 */

import type { LevelConfig, Manifest, Target } from "./manifest.ts";
import type { StoredLevel } from "./plan.ts";
import { InvalidManifestError, type PlacedProblem } from "./problem.ts";

const SILENT: LevelConfig = { limits: [] };

/** The part of a declared entity that is its record. */
interface Declared {
  readonly record: LevelConfig | undefined;
}

/**
 * Returns the entities that have a parent or a cascade, and their parents in the file, parents
 * first. Calls `refuse` for each circle.
 */
export function parentsFirst(
  declared: ReadonlyMap<string, Declared>,
  refuse: (id: string, circle: readonly string[]) => void,
): Manifest["records"] {
  const ordered = new Map<string, LevelConfig>();
  for (const [first, { record }] of declared) {
    if (record === undefined) continue;
    const chain = new Set<string>();
    let id: string | undefined = first;
    while (id !== undefined && declared.has(id) && !ordered.has(id) && !chain.has(id)) {
      chain.add(id);
      id = declared.get(id)?.record?.parent;
    }
    const ids = [...chain];
    if (id !== undefined && chain.has(id)) refuse(id, [...ids.slice(ids.indexOf(id)), id]);
    for (const each of ids.reverse()) ordered.set(each, declared.get(each)?.record ?? SILENT);
  }
  return ordered;
}

/** Returns the places to read before the records of a manifest can be checked. */
export function parentsOf({ records }: Manifest): Target[] {
  return [...records.values()].flatMap(({ parent }): Target[] =>
    parent === undefined ? [] : [{ level: "record", entityId: parent }],
  );
}

/** The line and column of the parent or the cascade of each entity, by the records of a file. */
const places = new WeakMap<Manifest["records"], PlaceOf>();

type PlaceOf = (
  id: string,
  field: "parent" | "cascade",
) => Pick<PlacedProblem, "line" | "column"> | undefined;

/** Keeps where a file declares its entities, for problems that only the store shows. */
export function rememberPlaces({ records }: Manifest, placeOf: PlaceOf): void {
  places.set(records, placeOf);
}

/**
 * Refuses an entity whose parent is neither stored nor declared, and one that exists with another
 * parent or another cascade. Throws `InvalidManifestError` with all problems.
 */
export function checkRecords(
  { records }: Manifest,
  stored: (target: Target) => StoredLevel | undefined,
): void {
  const recordOf = (entityId: string) => stored({ level: "record", entityId })?.config;
  const isThere = (id: string) => records.has(id) || recordOf(id) !== undefined;
  const problems = [...records].flatMap(([id, declared]) =>
    problemsOf(id, declared, recordOf(id), isThere).map(({ field, message }): PlacedProblem => {
      return { path: ["entities", id, field], message, ...places.get(records)?.(id, field) };
    }),
  );
  if (problems.length > 0) throw new InvalidManifestError(problems);
}

function problemsOf(
  id: string,
  { parent, cascade }: LevelConfig,
  stored: LevelConfig | undefined,
  isThere: (id: string) => boolean,
): { field: "parent" | "cascade"; message: string }[] {
  if (stored === undefined) {
    if (parent === undefined || isThere(parent)) return [];
    return [{ field: "parent", message: `there is no entity "${parent}", stored or in this file` }];
  }
  const has = stored.parent === undefined ? "no parent" : `the parent "${stored.parent}"`;
  const moved = `"${id}" exists and has ${has}; move it with: entity set-parent`;
  const flag = stored.cascade === true ? "cascades" : "does not cascade";
  const changed = `"${id}" exists and ${flag}; change it in cascade of resources, _default_`;
  return [
    ...(parent === undefined || parent === stored.parent
      ? []
      : [{ field: "parent" as const, message: moved }]),
    ...(cascade === undefined || cascade === stored.cascade
      ? []
      : [{ field: "cascade" as const, message: changed }]),
  ];
}
