/** A folder of a test file's own. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** Returns a new folder, which goes when the tests around the call are done. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  return folder;
}
