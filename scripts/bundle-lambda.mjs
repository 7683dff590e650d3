/**
 * The Lambda functions, each as one file that needs nothing beside it: `dist/lambda/<name>.mjs`.
 * The folder to write to may be given; it is made when it is not there.
 */
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));

await build({
  absWorkingDir: root,
  entryPoints: {
    aggregator: "src/aggregator/lambda-entry.ts",
    provisioner: "src/infra/limits-resource/lambda-entry.ts",
  },
  outdir: process.argv[2] ?? "dist/lambda",
  outExtension: { ".js": ".mjs" },
  bundle: true,
  minify: true,
  legalComments: "none",
  platform: "node",
  format: "esm",
  target: "node20",
  // Packages that are CommonJS ask for Node's own modules, which a module of today does not offer.
  banner: {
    js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
  },
  logLevel: "warning",
});
