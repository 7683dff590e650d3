/**
 * The JavaScript of the package: one file per entry point, and what they share in `chunks`.
 *
 * A program that starts pays for every file it loads more than for what is in it: as many files as
 * there are sources, importing the package and the first acquire took 90 ms, and take 25 like this.
 * The folder to write to may be given.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { build } from "esbuild";
import { entryPoints, externalPackages, root } from "./entry-points.mjs";
import { bundledPackages, noticesOf } from "./notices.mjs";

const outdir = resolve(root, process.argv[2] ?? "dist");

/** Packages whose code is taken in. Any other package must be a dependency or a peer. */
const TAKEN_IN = ["lru-cache", "sorted-btree", "ulid"];
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
  external: externalPackages(),
  // Else the import that `wholeLibrary` adds would be dropped, since nothing is taken from it.
  ignoreAnnotations: true,
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
  write: false,
};

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
const stray = bundledPackages(metafile).filter((name) => !TAKEN_IN.includes(name));
if (stray.length > 0) {
  throw new Error(
    `The bundle would contain ${stray.join(", ")}. Make it an optional peer in package.json, ` +
      "or list it in TAKEN_IN of scripts/bundle.mjs.",
  );
}
for (const { path, text } of outputFiles) {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, withProperNames(text));
}
await writeFile(join(outdir, "notices.txt"), await noticesOf(root, metafile));
