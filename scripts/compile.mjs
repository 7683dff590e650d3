/**
 * Compiles the sources of all rooms to JavaScript, each to a file of its own, in a second: types are
 * checked elsewhere. For tests, whose runner would otherwise compile every source once per project.
 */
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { builtPath, rooms, root, sourcePath, withRelativeImports } from "./entry-points.mjs";

/** An import of another source, as the compiler prints it. */
const IMPORT = /\b((?:from|import) ?\(?)"(\.[^"]+)\.ts"/g;
const PLACE = "placeOfSource";

/**
 * Compiles `src` and the sources of the rooms to `target`, a folder per room. With
 * `inPlaceOfSources` the modules find the files around them from where their sources are. `changes`
 * replaces texts of sources, for tests that break the library on purpose.
 */
export async function compile(target, { inPlaceOfSources = false, changes = [] } = {}) {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: Object.fromEntries(
      (await sources()).map((path) => [builtPath(path).replace(/\.ts$/, ""), path]),
    ),
    outdir: target,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "warning",
    define: inPlaceOfSources ? { "import.meta.url": PLACE } : {},
    plugins: changes.length === 0 ? [] : [changing(changes)],
    write: false,
  });
  const folders = new Set(outputFiles.map(({ path }) => dirname(path)));
  await Promise.all([...folders].map((folder) => mkdir(folder, { recursive: true })));
  const written = outputFiles.map(({ path, text }) => {
    const built = relative(target, path);
    const code = withRelativeImports(text.replace(IMPORT, '$1"$2.js"'), built, "js");
    if (!code.includes(PLACE)) return writeFile(path, code);
    const source = join(root, `${sourcePath(built.replace(/\.js$/, ""))}.ts`);
    const place = JSON.stringify(pathToFileURL(source).href);
    return writeFile(path, `const ${PLACE} = ${place};\n${code}`);
  });
  await Promise.all(written);
  // Without it Node.js reads each file as CommonJS first, and then once more.
  await writeFile(join(target, "package.json"), '{ "type": "module" }\n');
}

/** Replaces texts of sources; fails when a source does not contain the text. */
function changing(changes) {
  return {
    name: "changing",
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const source = relative(root, path);
        const mine = changes.filter(({ file }) => file === source);
        if (mine.length === 0) return undefined;
        let contents = await readFile(path, "utf8");
        for (const { from, to } of mine) {
          if (!contents.includes(from)) throw new Error(`${source} does not say: ${from}`);
          contents = contents.replaceAll(from, () => to);
        }
        return { contents, loader: "ts" };
      });
    },
  };
}

async function sources() {
  const folders = ["src", ...rooms.map(({ name }) => `packages/${name}/src`)];
  const found = await Promise.all(
    folders.map(async (folder) =>
      (await readdir(join(root, folder), { recursive: true })).map((path) => join(folder, path)),
    ),
  );
  return found.flat().filter((path) => path.endsWith(".ts"));
}

// As a command: `node scripts/compile.mjs bench/dist/modules`.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await compile(join(root, process.argv[2]), { inPlaceOfSources: true });
}
