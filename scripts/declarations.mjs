/**
 * Puts the declarations that users need next to the JavaScript. The compiler has written those of
 * all sources to `dist/types`; most are left out, because no entry point leads to them. One that
 * names a package which is inside the bundle, or a file that only hands on such a package, is made
 * opaque, because users do not have the types of that package. Another folder than `dist` may be
 * given.
 */
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import {
  entryPoints,
  externalPackages,
  manifest,
  root,
  sourcePath,
  withRelativeImports,
} from "./entry-points.mjs";

const folder = resolve(root, process.argv[2] ?? "dist");
const written = join(folder, "types");
/** `from "./limit.ts"`, `import("./limit.ts")`; the compiler writes the ending of the sources. */
const REFERENCE = /(?:from |import\()"(\.[^"]+)\.(?:ts|js)"/g;

/** `from "undici"`: a package, which may be one of Node's own modules. */
const PACKAGE = /from "((?:@[^/"]+\/)?[^./"][^/"]*)[^"]*"/g;
/** `export type Input<Name …`. Only types can be made opaque; a value would be a mistake of ours. */
const EXPORTED = /^export (?:declare )?(\w+) (\w+)/gm;

/** Returns the same exports without what they are made of. */
function opaque(path, text) {
  const lines = [...text.matchAll(EXPORTED)].map(([line, kind, name]) => {
    if (kind === "type") return `export type ${name}<_Parameter = unknown> = any;`;
    throw new Error(`${path} exports "${line}" and names a package that users do not have`);
  });
  return `/** Internal to this package. */\n${lines.join("\n")}\n`;
}

/** Returns whether all packages that a declaration names are on the machines of users. */
function isSelfContained(text) {
  return [...text.matchAll(PACKAGE)].every(
    ([, name]) => name.startsWith("node:") || externalPackages().includes(name),
  );
}

/** Reads a declaration as the compiler wrote it, with relative imports of what is in other rooms. */
async function declarationOf(built) {
  const text = await readFile(join(written, `${sourcePath(built)}.d.ts`), "utf8");
  return withRelativeImports(text, built, "ts");
}

/** Returns whether a declaration only hands on what packages that users do not have export. */
async function isHollow(built) {
  const text = await declarationOf(built);
  return !isSelfContained(text) && text.match(EXPORTED) === null;
}

const reached = new Set();
async function visit(built) {
  if (reached.has(built)) return;
  reached.add(built);
  const text = await declarationOf(built);
  const references = [...text.matchAll(REFERENCE)].map(([, target]) =>
    join(dirname(built), target),
  );
  const hollow = await Promise.all(references.map(isHollow));
  const isOpaque = !isSelfContained(text) || hollow.includes(true);
  const path = join(folder, `${built}.d.ts`);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, isOpaque ? opaque(path, text) : text);
  if (isOpaque) return;
  for (const reference of references) await visit(reference);
}

for (const name of Object.keys(entryPoints({ exports: manifest.exports, bin: {} }))) {
  await visit(name);
}
await rm(written, { recursive: true });
