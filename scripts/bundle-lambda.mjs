/**
 * The Lambda functions: `dist/lambda/<name>.zip`, each with one module that needs nothing else. This
 * is the file that is uploaded, so it is packed the same way each time. Another folder may be given.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { build } from "esbuild";
import { zipSync } from "fflate";
import { root } from "./entry-points.mjs";

const outdir = resolve(root, process.argv[2] ?? "dist/lambda");
/** The file in a package, which `index.handler` finds. */
const FILE = "index.mjs";
/** Fixed time of the files: an equal bundle makes an equal package, which is not uploaded again. */
const MODIFIED = new Date(1980, 0, 1);

const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: {
    aggregator: "packages/aws/src/aggregator/lambda-entry.ts",
    provisioner: "packages/aws/src/limits-resource/lambda-entry.ts",
  },
  outdir,
  bundle: true,
  minify: true,
  legalComments: "none",
  platform: "node",
  format: "esm",
  target: "node20",
  // The ES modules of a package, of which the bundler takes only what is used.
  mainFields: ["module", "main"],
  // CommonJS packages call `require` for Node's own modules, which an ES module does not have.
  banner: {
    js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
  },
  logLevel: "warning",
  write: false,
});
await mkdir(outdir, { recursive: true });
for (const { path, contents } of outputFiles) {
  const zip = zipSync({ [FILE]: contents }, { mtime: MODIFIED, level: 9 });
  await writeFile(join(outdir, path.replace(/^.*\/(\w+)\.js$/, "$1.zip")), zip);
}
