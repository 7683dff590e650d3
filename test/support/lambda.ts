/** The code of a Lambda as AWS runs it: unpacked from the package that is uploaded. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { unzipSync } from "fflate";

/** Writes the module in `<folder>/<name>.zip` to `<folder>/<name>.mjs`. */
export function unpackLambda(folder: string, name: string): void {
  const files = unzipSync(new Uint8Array(readFileSync(join(folder, `${name}.zip`))));
  writeFileSync(join(folder, `${name}.mjs`), files["index.mjs"] as Uint8Array);
}
