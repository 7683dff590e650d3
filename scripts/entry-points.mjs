/**
 * The entry points of the package. `exports` and `bin` of package.json are the only list: one line
 * `"./express": "./dist/http/express.js"` makes `src/http/express.ts` an entry point of the build,
 * of the checks for unused code and of the tests. The types are found next to the JavaScript.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));
export const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8"));

/** Returns the name of each built file below `dist`, without `.js`, and its source. */
export function entryPoints({ exports, bin } = manifest) {
  const names = [...Object.values(exports), ...Object.values(bin)]
    .map((path) => /^(?:\.\/)?dist\/(.+)\.js$/.exec(path)?.[1])
    .filter((name) => name !== undefined);
  return Object.fromEntries(names.map((name) => [name, `src/${name}.ts`]));
}

/** Returns the packages that stay outside the bundle, because the user installs them. */
export function externalPackages({
  dependencies,
  optionalDependencies,
  peerDependencies,
} = manifest) {
  return Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies });
}
