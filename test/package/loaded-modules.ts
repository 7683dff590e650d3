/** The modules that a program loads, and so the packages that it needs installed. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Installed, Ran } from "./installed.ts";

/**
 * Runs code and prints every module it loaded. ES modules are seen by a loader hook, which lives in
 * a thread of its own and therefore writes to a file; CommonJS modules are in the cache of
 * `require`.
 */
export async function loadedModules(installed: Installed, code: string): Promise<Ran> {
  await writeFile(
    join(installed.project, "hooks.mjs"),
    `import { appendFileSync } from "node:fs";
     export async function load(url, context, next) {
       appendFileSync("loaded.txt", url + "\\n");
       return next(url, context);
     }`,
  );
  await writeFile(
    join(installed.project, "register.mjs"),
    `import { register } from "node:module";
     register("./hooks.mjs", import.meta.url);`,
  );
  return installed.script(
    "loaded.mjs",
    `import { readFileSync, writeFileSync } from "node:fs";
     import { createRequire } from "node:module";
     writeFileSync("loaded.txt", "");
     const { RateLimiter, Repository } = await import("zae-limiter");
     ${code}
     console.log(readFileSync("loaded.txt", "utf8"));
     console.log(Object.keys(createRequire(import.meta.url).cache).join("\\n"));`,
    "--import",
    "./register.mjs",
  );
}
