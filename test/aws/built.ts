/** The command and its Lambdas, built from the sources as they are, as the package ships them. */

import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { collect, type Ran } from "../integration/cli/binary.ts";
import { buildSources } from "../integration/sqlite/build.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);

export interface Built {
  /** The file of the command. */
  readonly binary: string;
  /** The entry point of the package, to import. */
  readonly index: string;
  remove(): void;
}

export async function build(): Promise<Built> {
  const { binary, index, remove } = buildSources();
  const folder = dirname(dirname(binary));
  await run(process.execPath, [join(ROOT, "scripts", "bundle-lambda.mjs"), join(folder, "lambda")]);
  return { binary, index, remove };
}

export { collect, type Ran };
