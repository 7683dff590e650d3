/**
 * Bundles the sources once per run, for tests that start child processes. Several projects use this
 * file, each with its own copy of the module, so the folder is shared through `globalThis`.
 */

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { TestProject } from "vitest/node";
import { sourcePath } from "../../scripts/entry-points.mjs";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder with the bundled sources: `index.js`, `cli/main.js` and others. */
    builtSources: string;
  }
}

interface Shared {
  users: number;
  readonly folder: Promise<string>;
}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Modules that child processes load, by their places below `dist`. */
const ENTRIES = [
  "index",
  "cli/main",
  "loadtest/index",
  "loadtest/worker-entry",
  "limiter/storage/sqlite/connection",
];
const SHARED = Symbol.for("zae-limiter.test.built-sources");
const place = globalThis as { [SHARED]?: Shared };

/** Called by vitest once per project; what it returns is called after the project's tests. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  place[SHARED] ??= { users: 0, folder: bundle() };
  const shared = place[SHARED];
  shared.users += 1;
  const folder = await shared.folder;
  project.provide("builtSources", folder);
  return async () => {
    shared.users -= 1;
    if (shared.users > 0) return;
    delete place[SHARED];
    rmSync(folder, { recursive: true, force: true });
  };
}

/**
 * Inside node_modules, so that peers are found from there; with chunks as in `dist`. Other packages
 * are part of the bundle, as they are for users: a child that loads the AWS SDK file by file takes
 * half as long again to start.
 */
async function bundle(): Promise<string> {
  const parent = join(ROOT, "node_modules", ".cache");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, "zae-limiter-bundle-"));
  const { peerDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  await build({
    absWorkingDir: ROOT,
    entryPoints: Object.fromEntries(ENTRIES.map((built) => [built, `${sourcePath(built)}.ts`])),
    outdir: folder,
    bundle: true,
    splitting: true,
    chunkNames: "chunks/[name]-[hash]",
    platform: "node",
    format: "esm",
    target: "node20",
    external: Object.keys(peerDependencies),
    mainFields: ["module", "main"],
    // CommonJS packages call `require` for Node's own modules, which an ES module does not have.
    banner: {
      js: 'import { createRequire as own } from "node:module"; const require = own(import.meta.url);',
    },
    logLevel: "warning",
  });
  // Without it Node.js reads each file as CommonJS first, and then once more.
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');
  return folder;
}
