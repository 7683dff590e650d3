/** Figures of `npm run house` about sizes: rooms, crowded folders, long files, small ones. */
import { dirname } from "node:path/posix";
import { groupBy } from "./sources.mjs";

/** A folder with more files side by side than this is too crowded to be read as a list. */
export const SIDE_BY_SIDE_MAX = 25;
export const LONG_LINES = 300;
export const SMALL_LINES = 80;

/** Folders of the limiter whose inner folders are rooms of their own. */
const WITH_INNER_ROOMS = /^(?:storage|buckets)\//;

/** Returns a row for each room and, below those with parts, for each part. */
export function roomRows(sources) {
  const byRoom = groupBy(sources, ({ path }) => roomOf(path));
  return [...byRoom].flatMap(([room, files]) => {
    const parts = [...groupBy(files, ({ path }) => partOf(path))];
    const rows = parts.length > 1 ? parts.map(([part, inner]) => rowOf(room, part, inner)) : [];
    return [rowOf(room, "", files), ...rows.sort(byPart)];
  });
}

function roomOf(path) {
  return /^packages\/([^/]+)\//.exec(path)?.[1] ?? "src";
}

/** Returns the part of a room: a folder of the limiter; in other rooms `src` or `page`. */
function partOf(path) {
  const [, room, top, ...rest] = path.split("/");
  if (room !== "limiter") return top;
  if (rest.length === 1) return "index.ts";
  const depth = WITH_INNER_ROOMS.test(rest.join("/")) && rest.length > 2 ? 2 : 1;
  return rest.slice(0, depth).join("/");
}

function byPart(one, other) {
  return one.part < other.part ? -1 : 1;
}

function rowOf(room, part, files) {
  const sizes = files.map(({ lines }) => lines.length).sort((one, other) => one - other);
  const kinds = files.flatMap((file) => file.kinds);
  const count = (kind) => kinds.filter((each) => each === kind).length;
  return {
    room,
    part,
    files: files.length,
    lines: kinds.length,
    code: count("code"),
    comments: count("comment"),
    imports: count("import"),
    blank: count("blank"),
    mean: Math.round(kinds.length / files.length),
    median: sizes[Math.floor(sizes.length / 2)],
  };
}

/** Returns one row for all sources. */
export function totalRow(sources) {
  return rowOf("all", "", sources);
}

/** Returns the folders with too many files side by side. There must be none. */
export function crowdedFolders(sources) {
  return [...groupBy(sources, ({ path }) => dirname(path))]
    .map(([folder, files]) => ({ folder, files: files.length }))
    .filter(({ files }) => files > SIDE_BY_SIDE_MAX);
}

/** Returns the long files, the longest first. */
export function longFiles(sources) {
  return sources
    .map(({ path, lines }) => ({ path, lines: lines.length }))
    .filter(({ lines }) => lines > LONG_LINES)
    .sort((one, other) => other.lines - one.lines);
}

/** Returns small files with one importer, which might be a part of it; entry points have users. */
export function smallFiles(sources, importers, entries) {
  return sources
    .filter(({ path, lines }) => lines.length <= SMALL_LINES && !entries.has(path))
    .filter(({ path }) => importers.get(path).size === 1)
    .map(({ path, lines }) => ({
      path,
      lines: lines.length,
      importer: [...importers.get(path)][0],
    }))
    .sort((one, other) => (one.importer < other.importer ? -1 : 1));
}
