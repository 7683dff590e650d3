/**
 * The JavaScript of the package: one file per entry point, and what they share in `chunks`.
 *
 * A program that starts pays for every file it loads more than for what is in it: as many files as
 * there are sources, importing the package and the first acquire took 90 ms, and take 25 like this.
 * The folder to write to may be given.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { noticesOf } from "./notices.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const outdir = resolve(root, process.argv[2] ?? "dist");
const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8"));

/** Everything that loads the library at all loads this. */
const LIBRARY = "src/index.ts";
/** These answer `--version` and `--help`, and wait for nothing. */
const WITHOUT_LIBRARY = new Set([
  "src/cli/main.ts",
  "src/cli/process-terminal.ts",
  "src/cli/program.ts",
  "src/domain/version.ts",
]);

const OPTIONS = {
  absWorkingDir: root,
  entryPoints: entryPoints(),
  outdir,
  bundle: true,
  splitting: true,
  chunkNames: "chunks/[name]-[hash]",
  platform: "node",
  format: "esm",
  target: "node20",
  // What users install stays outside; small packages of ours to develop with are taken in.
  external: [
    ...Object.keys(manifest.dependencies),
    ...Object.keys(manifest.optionalDependencies),
    ...Object.keys(manifest.peerDependencies),
  ],
  // Else the import that `wholeLibrary` adds would be dropped, since nothing is taken from it.
  ignoreAnnotations: true,
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
  write: false,
};

/** The sources behind `exports` and `bin`: `./dist/infra/cdk.js` is `src/infra/cdk.ts`. */
function entryPoints() {
  const exported = Object.values(manifest.exports).map((entry) => entry.default ?? entry);
  const names = [...exported, ...Object.values(manifest.bin)]
    .map((path) => /^(?:\.\/)?dist\/(.+)\.js$/.exec(path)?.[1])
    .filter((name) => name !== undefined);
  return Object.fromEntries(names.map((name) => [name, `src/${name}.ts`]));
}

/**
 * Keeps the library in one piece. The bundler puts sources together that are wanted by the same
 * starting points, and there are a hundred of these; so each of them is made to want the library.
 */
function wholeLibrary(starts) {
  const library = JSON.stringify(join(root, LIBRARY));
  return {
    name: "whole-library",
    setup: ({ onLoad }) =>
      onLoad({ filter: /\/src\/.+\.ts$/ }, async ({ path }) => {
        const text = await readFile(path, "utf8");
        const starting = starts.has(path.slice(root.length));
        return { loader: "ts", contents: starting ? `import ${library};\n${text}` : text };
      }),
  };
}

/** The bundler calls a class that mentions itself `_Limit`, and so would whoever prints one. */
function withProperNames(text) {
  const names = [...text.matchAll(/^var (\w+) = class _\1\b/gm)].map(([, name]) => name);
  return names.reduce((done, name) => done.replace(new RegExp(`\\b_${name}\\b`, "g"), name), text);
}

const { metafile: first } = await build(OPTIONS);
const starts = new Set(
  Object.values(first.outputs)
    .map(({ entryPoint }) => entryPoint)
    .filter((path) => path !== undefined && path !== LIBRARY && !WITHOUT_LIBRARY.has(path)),
);
const { outputFiles, metafile } = await build({ ...OPTIONS, plugins: [wholeLibrary(starts)] });
for (const { path, text } of outputFiles) {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, withProperNames(text));
}
await writeFile(join(outdir, "notices.txt"), await noticesOf(root, metafile));
