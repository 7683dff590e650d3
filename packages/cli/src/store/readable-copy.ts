/**
 * A SQLite file that this user may read but not write. SQLite writes files next to such a file, so
 * commands that only read work on a copy of it.
 */

import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  mkdtempSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CommandFailure } from "../frame/command.ts";

/** What was written last is in the log until SQLite folds it into the file. */
const LOG = "-wal";
const ATTEMPTS_MAX = 5;

interface ReadableCopy {
  readonly path: string;
  remove(): void;
}

export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** Copies the file and its log as they are at one time. */
export function readableCopy(path: string): ReadableCopy {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-"));
  const copy = { path: join(folder, "limits.db"), remove: () => rmSync(folder, REMOVAL) };
  try {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const before = stampOf(path);
      rmSync(copy.path + LOG, { force: true });
      copyFileSync(path, copy.path);
      if (statSync(path + LOG, OPTIONAL) !== undefined) copyFileSync(path + LOG, copy.path + LOG);
      if (stampOf(path) === before) return owned(copy);
    }
    throw new CommandFailure(
      `${path} is read-only here and changes all the time, so it cannot be copied. Try again later`,
    );
  } catch (error) {
    copy.remove();
    throw error;
  }
}

/** A copy keeps the mode of its file, and reading usage counts in it what was not counted yet. */
function owned(copy: ReadableCopy): ReadableCopy {
  for (const file of [copy.path, copy.path + LOG]) {
    if (statSync(file, OPTIONAL) !== undefined) chmodSync(file, 0o600);
  }
  return copy;
}

const REMOVAL = { recursive: true, force: true } as const;
const OPTIONAL = { throwIfNoEntry: false, bigint: true } as const;

/** Differs when another process has written to either file. */
function stampOf(path: string): string {
  return [path, path + LOG]
    .map((file) => statSync(file, OPTIONAL))
    .map((stat) => (stat === undefined ? "none" : `${stat.size} ${stat.mtimeNs}`))
    .join(", ");
}
