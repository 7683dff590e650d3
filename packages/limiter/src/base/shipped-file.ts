/** Files that the package ships with its code, such as pages and the zip files of Lambdas. */

import { existsSync } from "node:fs";

/**
 * `dist`, as seen from the code that asks: a chunk or an entry point of the build, or a source file
 * of a room, which uses the build of the same checkout.
 */
const FOLDERS = ["../", "./", "../../", "../../../dist/", "../../../../dist/"];

/** Returns the address of a file of `dist`, or `undefined` where it was not built. */
export function shippedFile(path: string, from: string): URL | undefined {
  return FOLDERS.map((folder) => new URL(folder + path, from)).find((url) => existsSync(url));
}
