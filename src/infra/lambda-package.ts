/** The packages of our Lambdas: bundled ahead, and shipped beside this code. */

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { zipSync } from "fflate";
import { InfrastructureError } from "../domain/errors.ts";
import type { LambdaName } from "../domain/function-names.ts";

/** The file in a package, which `index.handler` finds. */
const FILE = "index.mjs";
/** The same bundle has to make the same package, or it would be uploaded again and again. */
const MODIFIED = new Date(1980, 0, 1);
/**
 * In the package: beside this file's folder, or in it, wherever the bundler has put this code. When
 * this runs as source: in the build of the same tree.
 */
const FOLDERS = ["../lambda/", "./lambda/", "../../dist/lambda/"].map(
  (path) => new URL(path, import.meta.url),
);

/** Where the bundle is; `undefined` where it was not built. */
export function lambdaBundlePath(name: LambdaName): string | undefined {
  return FOLDERS.map((folder) => fileURLToPath(new URL(`${name}.mjs`, folder))).find((path) =>
    existsSync(path),
  );
}

/** Packing takes a while, and deploying asks several times. */
const packed = new Map<LambdaName, Uint8Array>();

/**
 * The package of a Lambda, as it is uploaded: a zip file with one module.
 *
 * @example
 * ```ts no-run: needs a build
 * import { writeFileSync } from 'node:fs';
 * import { lambdaPackage } from 'zae-limiter/infra';
 * writeFileSync('lambda.zip', lambdaPackage('aggregator'));
 * ```
 */
export function lambdaPackage(name: LambdaName): Uint8Array {
  const path = lambdaBundlePath(name);
  if (path === undefined) {
    throw new InfrastructureError(
      `The code of the ${name} is not in this installation: install zae-limiter again, or run ` +
        "npm run build in a checkout of it",
    );
  }
  const known = packed.get(name);
  if (known !== undefined) return known;
  const zip = zipSync(
    { [FILE]: new Uint8Array(readFileSync(path)) },
    { mtime: MODIFIED, level: 9 },
  );
  packed.set(name, zip);
  return zip;
}
