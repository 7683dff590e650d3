/** Loads a scenario from its file, in JavaScript or TypeScript. */

import { existsSync, statSync } from "node:fs";
import { createRequire, register } from "node:module";
import { extname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { shippedFile } from "@zae-limiter/limiter/base/shipped-file.ts";
import { show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError, ZaeLimiterError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkLoad } from "./define-load.ts";
import type { Load } from "./load.ts";

const ENDINGS = [".js", ".mjs", ".ts", ".mts"];

/**
 * Runs in the thread of the module loader. Scenarios get this very package, whatever is installed
 * where they are, because a class of another copy is another class. Types are stripped where Node
 * does not do that itself.
 */
const HOOKS = `
let own, esbuild;
export function initialize(data) { ({ own, esbuild } = data); }
export async function resolve(specifier, context, next) {
  const url = Object.hasOwn(own, specifier) ? own[specifier] : undefined;
  return url === undefined ? next(specifier, context) : { url, shortCircuit: true };
}
export async function load(url, context, next) {
  const path = url.split("?")[0];
  if (esbuild === undefined || !/\\.m?ts$/.test(path)) return next(url, context);
  const { readFile } = await import("node:fs/promises");
  const { transform } = await import(esbuild);
  const text = await readFile(new URL(path), "utf8");
  const options = { loader: "ts", format: "esm", target: "node20", sourcefile: path };
  const { code } = await transform(text, options);
  return { format: "module", source: code, shortCircuit: true };
}
`;

let isRegistered = false;

/** Loads and checks a scenario. A `ValidationError` says in one sentence why it cannot. */
export async function loadScenario(file: string): Promise<Load> {
  const path = checkScenarioPath(file);
  registerHooks(path);
  const { href } = pathToFileURL(path);
  let loaded: { readonly default?: unknown };
  try {
    loaded = (await import(/* @vite-ignore */ href)) as { readonly default?: unknown };
  } catch (error) {
    if (error instanceof ZaeLimiterError) throw error;
    throw new ValidationError("file", file, `cannot load ${file}: ${messageOf(error)}`);
  }
  if (loaded.default === undefined) {
    const reason = `${file} has no default export; expected export default defineLoad({ … })`;
    throw new ValidationError("file", file, reason);
  }
  return checkLoad(loaded.default);
}

/** Returns the absolute path of a file that can be a scenario. */
export function checkScenarioPath(file: string): string {
  const path = resolve(file);
  if (!ENDINGS.includes(extname(path))) {
    const reason = `expected a file that ends in ${ENDINGS.join(", ")}, got ${show(file)}`;
    throw new ValidationError("file", file, reason);
  }
  if (existsSync(path) && statSync(path).isFile()) return path;
  throw new ValidationError("file", file, `there is no file ${file}`);
}

/** Returns the files of this package by the names that scenarios import. */
export function ownModules(): Readonly<Record<string, string>> {
  const load = shippedFile("loadtest/index.js", import.meta.url);
  if (load === undefined) return {};
  const names = {
    "zae-limiter": "index.js",
    "zae-limiter/loadtest": "loadtest/index.js",
    "zae-limiter/loadtest/worker": "loadtest/worker-entry.js",
  };
  return Object.fromEntries(
    Object.entries(names).map(([name, file]) => [name, new URL(`../${file}`, load).href]),
  );
}

/** Returns the address of esbuild: the one of the scenario's project, else ours. */
export function findEsbuild(scenario: string): string | undefined {
  for (const from of [scenario, fileURLToPath(import.meta.url)]) {
    try {
      return pathToFileURL(createRequire(from).resolve("esbuild")).href;
    } catch {
      // Not installed there.
    }
  }
  return undefined;
}

function registerHooks(path: string): void {
  const isTypeScript = /\.m?ts$/.test(path);
  const esbuild = stripsTypes() ? undefined : findEsbuild(path);
  if (isTypeScript && esbuild === undefined && !stripsTypes()) {
    const reason =
      `Node ${process.versions.node} does not run TypeScript: install esbuild ` +
      "(npm install --save-dev esbuild), use Node 22.18 or later, or write the scenario in JavaScript";
    throw new ValidationError("file", path, reason);
  }
  if (isRegistered) return;
  isRegistered = true;
  register(`data:text/javascript,${encodeURIComponent(HOOKS)}`, {
    parentURL: import.meta.url,
    data: { own: ownModules(), esbuild },
  });
}

/** Whether this Node runs TypeScript itself. */
function stripsTypes(): boolean {
  return (process.features as { readonly typescript?: unknown }).typescript === "strip";
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
