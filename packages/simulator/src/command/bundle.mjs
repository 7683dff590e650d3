/** The simulator as one module that this Node.js can load. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const ENTRY = fileURLToPath(new URL("../index.ts", import.meta.url));
/** Adapters for real stores are never loaded here. */
const UNUSED = ["@aws-sdk/*", "@smithy/*", "aws4", "better-sqlite3", "libsql", "undici"];

/** `plugins`: for tests that break the sources on purpose. */
export async function bundled(plugins = []) {
  const outdir = mkdtempSync(join(tmpdir(), "zae-limiter-simulate-"));
  const remove = () => rmSync(outdir, { recursive: true, force: true });
  try {
    await build({
      entryPoints: [ENTRY],
      outdir,
      outExtension: { ".js": ".mjs" },
      bundle: true,
      splitting: true,
      platform: "node",
      format: "esm",
      target: "node20",
      external: UNUSED,
      logLevel: "error",
      plugins,
    });
    return { simulator: await import(pathToFileURL(join(outdir, "index.mjs")).href), remove };
  } catch (error) {
    remove();
    throw error;
  }
}
