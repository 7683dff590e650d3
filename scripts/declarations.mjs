/**
 * Leaves the declarations that users need. Those that no entry point leads to are removed: they
 * would be most of the files in the package. One that names a package which is inside the bundle, or
 * a file that only hands on such a package, is made opaque, because users do not have the types of
 * that package. The folder may be given.
 */
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { entryPoints, externalPackages, manifest, root } from "./entry-points.mjs";

const folder = resolve(root, process.argv[2] ?? "dist");
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

/** Returns whether a declaration only hands on what packages that users do not have export. */
async function isHollow(path) {
  const text = await readFile(path, "utf8");
  return !isSelfContained(text) && text.match(EXPORTED) === null;
}

const reached = new Set();
async function visit(path) {
  if (reached.has(path)) return;
  reached.add(path);
  const text = await readFile(path, "utf8");
  const references = [...text.matchAll(REFERENCE)].map(([, target]) =>
    join(dirname(path), `${target}.d.ts`),
  );
  const hollow = await Promise.all(references.map(isHollow));
  if (!isSelfContained(text) || hollow.includes(true)) return writeFile(path, opaque(path, text));
  for (const reference of references) await visit(reference);
}

for (const name of Object.keys(entryPoints({ exports: manifest.exports, bin: {} }))) {
  await visit(join(folder, `${name}.d.ts`));
}
const files = await readdir(folder, { recursive: true });
const declarations = files
  .filter((file) => file.endsWith(".d.ts"))
  .map((file) => join(folder, file));
await Promise.all(declarations.filter((path) => !reached.has(path)).map((path) => rm(path)));
