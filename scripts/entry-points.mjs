/**
 * The entry points of the package. `exports` and `bin` of package.json are the only list: one line
 * `"./express": "./dist/limiter/http/express.js"` makes `packages/limiter/src/http/express.ts` an
 * entry point of the build, of the checks for unused code and of the tests. The types are found next
 * to the JavaScript.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path/posix";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));
const readManifest = (path) => JSON.parse(readFileSync(join(root, path, "package.json"), "utf8"));
export const manifest = readManifest(".");

/** The rooms whose sources are built: each is `packages/<room>` with its manifest. */
export const rooms = readdirSync(join(root, "packages"))
  .sort()
  .map((name) => ({ name, manifest: readManifest(`packages/${name}`) }));

/** Matches the sources of the package and of its rooms, by their paths from the root. */
export const OURS = /^(?:packages\/\w+\/)?src\//;

/** An import of a source of a room by its name, as in `"@zae-limiter/limiter/core/bucket.ts"`. */
export const BY_ROOM = /"@zae-limiter\/(\w+)\/([^"]+)\.ts"/g;

/** Returns where a source is built to, below `dist`: rooms are folders there. */
export function builtPath(source) {
  return source.replace(/^(?:packages\/(\w+)\/)?src\//, (_, room) => (room ? `${room}/` : ""));
}

/** Returns the source of a built file, both without their ending. */
export function sourcePath(built) {
  const [room, ...path] = built.split("/");
  if (!rooms.some(({ name }) => name === room)) return `src/${built}`;
  return `packages/${room}/src/${path.join("/")}`;
}

/** Replaces imports by the names of rooms with relative ones, for a file below `dist`. */
export function withRelativeImports(text, built, ending) {
  return text.replace(BY_ROOM, (_, room, path) => {
    const found = relative(dirname(built), `${room}/${path}`);
    return `"${found.startsWith(".") ? found : `./${found}`}.${ending}"`;
  });
}

/** Returns the name of each built file below `dist`, without `.js`, and its source. */
export function entryPoints({ exports, bin } = manifest) {
  // An entry point that CommonJS can require, too, has a path for each condition.
  const paths = Object.values(exports).map((path) => path.default ?? path);
  const names = [...paths, ...Object.values(bin)]
    .map((path) => /^(?:\.\/)?dist\/(.+)\.js$/.exec(path)?.[1])
    .filter((name) => name !== undefined);
  return Object.fromEntries(names.map((name) => [name, `${sourcePath(name)}.ts`]));
}

/** Returns the packages that stay outside the bundle, because the user installs them. */
export function externalPackages({
  dependencies,
  optionalDependencies,
  peerDependencies,
} = manifest) {
  return Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
}
