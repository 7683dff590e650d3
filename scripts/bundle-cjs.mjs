/**
 * The package once more as CommonJS, in `dist/cjs`, for programs that load it by another loader than
 * that of Node.js, such as Jest: ADR 038. Made of the files of the other build, one by one, so that
 * entry points share what they share there. Another folder than `dist` may be given.
 */
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { transform } from "esbuild";
import { manifest, root } from "./entry-points.mjs";

const dist = resolve(root, process.argv[2] ?? "dist");
const folder = join(dist, "cjs");
/** `from "./chunks/a.js"`, `import "./a.js"` and `import("./a.js")`. */
const RELATIVE = /(?:\bfrom ?|\bimport ?\(?)"(\.{1,2}\/[^"]+\.js)"/g;
/** The line that an ES module needs and CommonJS has. */
const OWN_REQUIRE = /^import \{ createRequire \} from "node:module";\nconst require = .+;\n/;
const URL_OF_FILE = 'const importMetaUrl = require("node:url").pathToFileURL(__filename).href;';

/** Returns the entry points that package.json offers to `require`. */
function entries() {
  return Object.values(manifest.exports)
    .flatMap(({ require }) => (require === undefined ? [] : [require.default]))
    .map((path) => path.replace("./dist/cjs/", ""));
}

/** Returns the files that some files need, by their paths below `dist`. */
async function closure(starts, references) {
  const found = new Map();
  const visit = async (path) => {
    if (found.has(path)) return;
    const text = await readFile(join(dist, path), "utf8");
    found.set(path, text);
    for (const other of references(path, text)) await visit(other);
  };
  for (const path of starts) await visit(path);
  return found;
}

const beside = (path, other) => relative(dist, join(dist, dirname(path), other));

async function converted(text) {
  const transformed = await transform(text.replace(OWN_REQUIRE, ""), {
    format: "cjs",
    platform: "node",
    target: "node20",
    minifyWhitespace: true,
    // Loaders without a support for ES modules have no `import()` either.
    supported: { "dynamic-import": false },
    define: { "import.meta.url": "importMetaUrl" },
    legalComments: "none",
  });
  // Checkers of types find the list of exports at the beginning of a line only.
  const code = transformed.code.replace(";__export(", ";\n__export(");
  return code.includes("importMetaUrl") ? `${URL_OF_FILE}${code}` : code;
}

async function write(path, text) {
  const target = join(folder, path);
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, text);
}

await rm(folder, { recursive: true, force: true });
const starts = entries();
const code = await closure(starts, (path, text) =>
  [...text.matchAll(RELATIVE)].map(([, other]) => beside(path, other)),
);
for (const [path, text] of code) await write(path, await converted(text));
const types = await closure(
  starts.map((path) => path.replace(/\.js$/, ".d.ts")),
  (path, text) =>
    [...text.matchAll(/"(\.{1,2}\/[^"]+)\.[jt]s"/g)].map(
      ([, other]) => `${beside(path, other)}.d.ts`,
    ),
);
for (const [path, text] of types) await write(path, text);
await writeFile(join(folder, "package.json"), '{ "type": "commonjs" }\n');
