/** The code of Lambda workers: scenarios with everything they import, in one module. */

import { basename, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import {
  checkScenarioPath,
  findEsbuild,
  loadScenario,
  ownModules,
} from "@zae-limiter/loadtest/scenario-file.ts";
import type { Plugin } from "esbuild";
import { zipSync } from "fflate";
import { CommandFailure } from "../frame/command.ts";

const FILE = "index.mjs";
/** A constant date: equal code makes an equal package, which is then not uploaded again. */
const MODIFIED = new Date(1980, 0, 1);
/** CommonJS packages call `require`, which an ES module does not have. */
const REQUIRE =
  'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';

export async function bundleScenarios(files: readonly string[]): Promise<Uint8Array> {
  const paths = files.map(checkScenarioPath);
  const names = paths.map((path) => basename(path));
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) {
    throw new CommandFailure(`Two scenarios are called ${twice}; give each file its own name`);
  }
  for (const path of paths) await loadScenario(path);
  const address = findEsbuild(paths[0] as string);
  if (address === undefined) {
    throw new CommandFailure(
      "The code of Lambda workers is bundled by esbuild, which is not installed here: " +
        "npm install --save-dev esbuild",
    );
  }
  const { build } = (await import(/* @vite-ignore */ address)) as typeof import("esbuild");
  const imports = paths.map((path, at) => `import load${at} from ${JSON.stringify(path)};`);
  const members = names.map((name, at) => `${JSON.stringify(name)}: load${at}`);
  const contents = `${imports.join("\n")}
import { workerHandler } from "zae-limiter/loadtest/worker";
export const handler = workerHandler({ ${members.join(", ")} });`;
  const options = {
    stdin: { contents, resolveDir: dirname(paths[0] as string), loader: "js" as const },
    bundle: true,
    minify: true,
    write: false as const,
    platform: "node" as const,
    format: "esm" as const,
    target: "node22",
    legalComments: "none" as const,
    banner: { js: REQUIRE },
    plugins: [ownPackage()],
    logLevel: "silent" as const,
  };
  const { outputFiles } = await build(options).catch((error: unknown) => {
    throw new CommandFailure(`The scenarios cannot be bundled: ${(error as Error).message}`);
  });
  const code = outputFiles[0]?.contents as Uint8Array;
  return zipSync({ [FILE]: code }, { mtime: MODIFIED, level: 9 });
}

/** Takes this very package; what it imports only if it is there, such as drivers, stays outside. */
function ownPackage(): Plugin {
  const own = ownModules();
  if (own["zae-limiter/loadtest/worker"] === undefined) {
    throw new CommandFailure(
      "The code of the workers is not in this installation: install zae-limiter again, or run npm " +
        "run build in a checkout of it",
    );
  }
  const folder = dirname(fileURLToPath(own["zae-limiter"] as string));
  return {
    name: "own-package",
    setup: ({ onResolve }) => {
      onResolve({ filter: /^zae-limiter(\/|$)/ }, ({ path }) => {
        const url = Object.hasOwn(own, path) ? own[path] : undefined;
        return url === undefined ? undefined : { path: fileURLToPath(url) };
      });
      onResolve({ filter: /^[^./]/ }, ({ path, importer }) =>
        importer.startsWith(folder) ? { path, external: true } : undefined,
      );
    },
  };
}
