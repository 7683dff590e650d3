/**
 * The JavaScript of the package: one file per entry point, and what they share in `chunks`.
 *
 * A program that starts pays for every file it loads more than for what is in it: as many files as
 * there are sources, importing the package and the first acquire took 90 ms, and take 25 like this.
 * The folder to write to may be given.
 */
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { build } from "esbuild";
import { entryPoints, externalPackages, OURS, rooms, root } from "./entry-points.mjs";
import { importedPackages, noticesOf } from "./notices.mjs";

const outdir = resolve(root, process.argv[2] ?? "dist");

/** Packages that the packages of the rooms contain. */
const TAKEN_ALONG = ["@assemblyscript/loader", "base64-js"];
/**
 * Packages that the bundle contains: the dependencies of the rooms. Any other package that the
 * sources import must be a peer in package.json.
 */
const TAKEN_IN = [
  ...rooms.flatMap((room) => Object.keys(room.manifest.dependencies ?? {})),
  ...TAKEN_ALONG,
];

/** Everything that loads the library at all loads this: the package, and the list of its names. */
const LIBRARY = "src/index.ts";
const NAMES = "packages/limiter/src/index.ts";
/** These answer `--version` and `--help`, and wait for nothing. */
const WITHOUT_LIBRARY = new Set([
  "packages/cli/src/main.ts",
  "packages/cli/src/terminal/process-terminal.ts",
  "packages/cli/src/frame/program.ts",
  "packages/limiter/src/domain/version.ts",
]);

/** Parts of the AWS SDK: they contain nothing of the library. */
const ONLY_PACKAGES = /\/sdk[-/][a-z0-9]+\.ts$/;

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
  // The ES modules of a package, of which the bundler takes only what is used.
  mainFields: ["module", "main"],
  // Its other build imports node:crypto for a source of random numbers; ours is an argument.
  alias: { ulid: join(root, "node_modules/ulid/dist/browser/index.js") },
  legalComments: "none",
  logLevel: "warning",
  metafile: true,
  write: false,
};

/**
 * Keeps the library in one piece. The bundler puts sources together that are wanted by the same
 * starting points, and there are a hundred of these; so each of them is made to want the library.
 * The library has a namespace of its own, because an import of a file that its manifest declares
 * free of side effects is dropped when nothing is taken from it.
 */
function wholeLibrary(starts) {
  const parts = [LIBRARY, NAMES].map((path) => join(root, path));
  const start = `import ${JSON.stringify(parts[0])};\n`;
  return {
    name: "whole-library",
    setup: ({ onLoad, onResolve }) => {
      onResolve({ filter: /index\.ts$/ }, ({ path, resolveDir }) => {
        const found = roomFile(path) ?? resolve(resolveDir, path);
        return parts.includes(found) ? { path: found, namespace: "library" } : undefined;
      });
      onLoad({ filter: /./, namespace: "library" }, async ({ path }) => ({
        loader: "ts",
        contents: await readFile(path, "utf8"),
        resolveDir: dirname(path),
      }));
      onLoad({ filter: /\/src\/.+\.ts$/ }, async ({ path }) => {
        const text = await readFile(path, "utf8");
        const starting = starts.has(path.slice(root.length));
        return { loader: "ts", contents: starting ? start + text : text };
      });
    },
  };
}

/** Takes rooms from this checkout, wherever its node_modules lead, and never for packages. */
const roomsAreOurs = {
  name: "rooms-are-ours",
  setup: ({ onResolve }) =>
    onResolve({ filter: /^@zae-limiter\// }, ({ path }) => ({
      path: roomFile(path),
      sideEffects: false,
    })),
};

/**
 * Leaves out the warning of the SDK that the next one will need a newer Node.js: a user of this
 * package has no SDK to update, and cannot do anything about it.
 */
const withoutSdkWarning = {
  name: "without-sdk-warning",
  setup: ({ onLoad }) =>
    onLoad({ filter: /emitWarningIfUnsupportedVersion\.js$/ }, () => ({
      contents:
        "export const state = { warningEmitted: true };\n" +
        "export const emitWarningIfUnsupportedVersion = () => {};\n",
    })),
};

/** Returns the source that an import by the name of a room means; `undefined` for others. */
function roomFile(specifier) {
  const [, room, path] = /^@zae-limiter\/(\w+)\/(.+)$/.exec(specifier) ?? [];
  return room && join(root, "packages", room, "src", path);
}

/** Restores the names of our classes: the bundler calls a class that mentions itself `_Limit`. */
function withProperNames(text, ours) {
  const names = [...text.matchAll(/^var (\w+) = class _\1\b/gm)]
    .map(([, name]) => name)
    .filter((name) => ours.has(name));
  return names.reduce((done, name) => done.replace(new RegExp(`\\b_${name}\\b`, "g"), name), text);
}

/**
 * Defines `require` in the chunk in which the bundler expects it: CommonJS packages call it for
 * Node's own modules, and an ES module has none.
 */
function withRequire(text) {
  if (!text.includes("var __require =")) return text;
  return `import { createRequire } from "node:module";
const require = createRequire(import.meta.url);
${text}`;
}

/**
 * Leaves out imports of which nothing is taken, where the chunk has helpers of the bundler only:
 * a file that is loaded for nothing makes every start longer.
 */
function withoutIdleImports(text, helpers) {
  return helpers.reduce(
    (done, name) => done.replaceAll(new RegExp(`^import "[./a-z]*/${name}";\\n`, "gm"), ""),
    text,
  );
}

/** Returns the names of the chunks that contain nothing of any source. */
function helperChunks({ outputs }) {
  return Object.entries(outputs)
    .filter(([, { entryPoint, inputs }]) => !entryPoint && Object.keys(inputs).length === 0)
    .map(([path]) => basename(path));
}

/** Returns the names of all classes in our own sources. */
async function classNames({ inputs }) {
  const paths = Object.keys(inputs).filter((path) => OURS.test(path));
  const texts = await Promise.all(paths.map((path) => readFile(join(root, path), "utf8")));
  return new Set(texts.flatMap((text) => [...text.matchAll(/\bclass (\w+)/g)].map(([, n]) => n)));
}

// The starting points are among our own sources.
const { metafile: first } = await build({
  ...OPTIONS,
  packages: "external",
  plugins: [roomsAreOurs],
});
const starts = new Set(
  Object.values(first.outputs)
    .map(({ entryPoint }) => entryPoint)
    .filter((path) => OURS.test(path ?? "") && path !== LIBRARY && !WITHOUT_LIBRARY.has(path))
    .filter((path) => !ONLY_PACKAGES.test(path)),
);
const { outputFiles, metafile } = await build({
  ...OPTIONS,
  plugins: [wholeLibrary(starts), roomsAreOurs, withoutSdkWarning],
});
const stray = importedPackages(metafile).filter((name) => !TAKEN_IN.includes(name));
if (stray.length > 0) {
  throw new Error(
    `The bundle would contain ${stray.join(", ")}. Make it an optional peer in package.json, ` +
      "or list it in TAKEN_IN of scripts/bundle.mjs.",
  );
}
const ours = await classNames(first);
const helpers = helperChunks(metafile);
// Their names change with their contents: those of an earlier build would stay.
await rm(join(outdir, "chunks"), { recursive: true, force: true });
for (const { path, text } of outputFiles) {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, withRequire(withProperNames(withoutIdleImports(text, helpers), ours)));
}
await writeFile(join(outdir, "notices.txt"), await noticesOf(root, metafile));
