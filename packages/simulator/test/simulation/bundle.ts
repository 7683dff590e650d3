/** The simulator from sources that were changed on purpose. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type * as Simulator from "@zae-limiter/simulator/index.ts";
import type { Plugin } from "esbuild";

const ROOT = fileURLToPath(new URL("../../../..", import.meta.url));
const SCRIPT = new URL("../../src/command/bundle.mjs", import.meta.url).href;

/** A text of a file, and its replacement. */
export interface Change {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

interface Bundle {
  readonly simulator: typeof Simulator;
  readonly remove: () => void;
}

export async function bundledWith(changes: readonly Change[]): Promise<Bundle> {
  const script = (await import(SCRIPT)) as { bundled(plugins: Plugin[]): Promise<Bundle> };
  return script.bundled([mutating(changes)]);
}

function mutating(changes: readonly Change[]): Plugin {
  return {
    name: "mutating",
    setup(build) {
      build.onLoad({ filter: /\/(?:src|simulator)\/.*\.ts$/ }, ({ path }) => {
        const mine = changes.filter(({ file }) => path === `${ROOT}${file}`);
        if (mine.length === 0) return undefined;
        let contents = readFileSync(path, "utf8");
        for (const { file, from, to } of mine) {
          // A mutant that changes nothing could not be caught.
          if (!contents.includes(from)) throw new Error(`${file} does not say: ${from}`);
          contents = contents.replaceAll(from, to);
        }
        return { contents, loader: "ts" };
      });
    },
  };
}
