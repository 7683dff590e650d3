/** The sources of the rooms as `npm run house` counts them: lines by kind, and who imports whom. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { dirname, normalize } from "node:path/posix";
import { rooms, root } from "../entry-points.mjs";

const SOURCE = /\.tsx?$/;
const IMPORT_START = /^(?:import\b(?!\()|export (?:type )?[{*])/;
const IMPORTED = /(?:\bfrom|^import|\bimport\()\s*"([^"]+\.tsx?)"/gm;
const BY_ROOM = /^@zae-limiter\/([\w-]+)\/(?:(page)\/)?(.+)$/;

/** Returns the folders with sources: what joins the rooms, then each room and its page. */
export function sourceFolders() {
  const ofRooms = rooms.flatMap(({ name }) => [`packages/${name}/src`, `packages/${name}/page`]);
  return ["src", ...ofRooms].filter((folder) => existsSync(join(root, folder)));
}

/** Reads every source below the folders, with the kind of each line. */
export function readSources(folders = sourceFolders(), from = root) {
  return folders.flatMap((folder) =>
    readdirSync(join(from, folder), { recursive: true, encoding: "utf8" })
      .filter((path) => SOURCE.test(path))
      .sort()
      .map((path) => sourceAt(from, `${folder}/${path.replaceAll("\\", "/")}`)),
  );
}

function sourceAt(from, path) {
  return toSource(path, readFileSync(join(from, path), "utf8"));
}

/** Returns a source with its lines and the kind of each. */
export function toSource(path, text) {
  const lines = text.replace(/\n$/, "").split("\n");
  return { path, text, lines, kinds: kindsOf(lines) };
}

/** Returns `blank`, `comment`, `import` or `code` for each line. */
function kindsOf(lines) {
  let open;
  return lines.map((line, at) => {
    const text = line.trim();
    const kind = open ?? kindAt(lines, at, text);
    open = isUnfinished(kind, text) ? kind : undefined;
    return kind;
  });
}

function kindAt(lines, at, text) {
  if (text === "") return "blank";
  if (/^\/[/*]/.test(text)) return "comment";
  return isImport(lines, at) ? "import" : "code";
}

/** Whether the comment or the import of a line goes on in the next one. */
function isUnfinished(kind, text) {
  if (kind === "comment") return !text.startsWith("//") && !text.includes("*/");
  return kind === "import" && !text.endsWith(";");
}

/** Whether an import starts in the line; an export counts when it names another file. */
function isImport(lines, at) {
  if (!IMPORT_START.test(lines[at])) return false;
  const end = lines.findIndex((line, index) => index >= at && line.endsWith(";"));
  return lines[at].startsWith("import") || / from "[^"]+";$/.test(lines[end] ?? "");
}

/** Returns the paths of the sources that import each source. */
export function importersOf(sources) {
  const importers = new Map(sources.map(({ path }) => [path, new Set()]));
  for (const { path, text } of sources) {
    for (const [, specifier] of text.matchAll(IMPORTED)) {
      importers.get(targetOf(path, specifier))?.add(path);
    }
  }
  return importers;
}

function targetOf(path, specifier) {
  if (specifier.startsWith(".")) return normalize(`${dirname(path)}/${specifier}`);
  const [, room, page = "src", rest] = BY_ROOM.exec(specifier) ?? [];
  return `packages/${room}/${page}/${rest}`;
}

/** Groups items by a key, in the order in which the keys first occur. */
export function groupBy(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}
