/** The packages of our Lambdas: built and compressed with this code, and shipped next to it. */

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { InfrastructureError } from "../domain/errors.ts";
import type { LambdaName } from "./function-names.ts";

/**
 * In the package: next to this file's folder, or in it, wherever the bundler has put this code.
 * When this runs as source: in the build of the same tree.
 */
const FOLDERS = ["../lambda/", "./lambda/", "../../dist/lambda/"].map(
  (path) => new URL(path, import.meta.url),
);

/** Returns the path of the package, or `undefined` where it was not built. */
export function lambdaPackagePath(name: LambdaName): string | undefined {
  return FOLDERS.map((folder) => fileURLToPath(new URL(`${name}.zip`, folder))).find((path) =>
    existsSync(path),
  );
}

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
  const path = lambdaPackagePath(name);
  if (path === undefined) {
    throw new InfrastructureError(
      `The code of the ${name} is not in this installation: install zae-limiter again, or run ` +
        "npm run build in a checkout of it",
    );
  }
  return new Uint8Array(readFileSync(path));
}
