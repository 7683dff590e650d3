/** Installs the releases of the Python library before the tests: once, and not in every worker. */

import { install, RELEASES } from "./library.ts";

export function setup(): void {
  for (const release of RELEASES) install(release);
}
