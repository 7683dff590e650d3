/** The packages of our Lambdas: built and compressed with this code, and shipped next to it. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { shippedFile } from "@zae-limiter/limiter/base/shipped-file.ts";
import { InfrastructureError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { LambdaName } from "./function-names.ts";

/** Returns the path of the package, or `undefined` where it was not built. */
export function lambdaPackagePath(name: LambdaName): string | undefined {
  const url = shippedFile(`lambda/${name}.zip`, import.meta.url);
  return url && fileURLToPath(url);
}

/**
 * Returns the package of a Lambda, as it is uploaded: a zip file with one module.
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
