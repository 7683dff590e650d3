/**
 * Compiles sources to JavaScript, each to a file of its own, in a second: types are checked
 * elsewhere. For tests, whose runner would otherwise compile every source once per project.
 */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { root } from "./entry-points.mjs";

/** An import of another source, as the compiler prints it. */
const IMPORT = /\b((?:from|import) ?\(?)"(\.[^"]+)\.ts"/g;
const PLACE = "placeOfSource";

/**
 * Compiles the folder `name` of this repository, such as `src`, to `target`. With `inPlaceOfSources`
 * the modules find the files around them from where their sources are.
 */
export async function compile(name, target, { inPlaceOfSources = false } = {}) {
  const sources = join(root, name);
  const paths = await readdir(sources, { recursive: true });
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: paths.filter((path) => path.endsWith(".ts")).map((path) => join(sources, path)),
    outbase: sources,
    outdir: target,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "warning",
    define: inPlaceOfSources ? { "import.meta.url": PLACE } : {},
    write: false,
  });
  const folders = new Set(outputFiles.map(({ path }) => dirname(path)));
  await Promise.all([...folders].map((folder) => mkdir(folder, { recursive: true })));
  const written = outputFiles.map(({ path, text }) => {
    const code = text.replace(IMPORT, '$1"$2.js"');
    if (!code.includes(PLACE)) return writeFile(path, code);
    const { href } = pathToFileURL(join(sources, relative(target, path).replace(/js$/, "ts")));
    return writeFile(path, `const ${PLACE} = ${JSON.stringify(href)};\n${code}`);
  });
  await Promise.all(written);
  // Without it Node.js reads each file as CommonJS first, and then once more.
  await writeFile(join(target, "package.json"), '{ "type": "module" }\n');
}
