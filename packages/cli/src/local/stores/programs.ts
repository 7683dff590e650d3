/** Programs that are installed here: in the PATH, in packages, by their path. */

import { accessSync, constants, existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join, resolve } from "node:path";
import { CommandFailure } from "../../frame/command.ts";

const EXECUTABLE = process.platform === "win32" ? ".exe" : "";

/** Returns the folders of the PATH. */
export function foldersOf(path: string | undefined): string[] {
  return (path ?? "").split(delimiter).filter((folder) => folder !== "");
}

/** Returns the first executable file of that name. */
export function executableIn(folders: readonly string[], name: string): string | undefined {
  return folders.map((folder) => join(folder, `${name}${EXECUTABLE}`)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Returns the path that an option names; throws a `CommandFailure` when nothing is there. */
export function existing(option: string, path: string): string {
  if (existsSync(path)) return resolve(path);
  throw new CommandFailure(`${option} names ${path}, which does not exist`);
}

/** Returns the folder of an installed package: of the project first, then of this program. */
export function packageFolder(name: string, from: string | undefined): string | undefined {
  const file = packageFile(`${name}/package.json`, from);
  return file === undefined ? undefined : dirname(file);
}

/** Returns a file of an installed package: of the project first, then of this program. */
export function packageFile(specifier: string, from: string | undefined): string | undefined {
  if (from === undefined) return undefined;
  for (const place of [join(from, "package.json"), import.meta.url]) {
    try {
      return createRequire(place).resolve(specifier);
    } catch {
      // Not there; perhaps elsewhere.
    }
  }
  return undefined;
}
