/** The package as users get it: packed from a clean copy, installed in an empty project. */

import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Not in a fresh clone, and nothing that a build needs. */
const LEFT_OUT: ReadonlySet<string> = new Set(["node_modules", "dist", ".git", ".zae-limiter"]);
/** Variables of npm and vitest for their children, which would change the commands here. */
const INHERITED_PATTERN =
  /^(npm_package_|npm_lifecycle_|npm_config_local_prefix$|VITEST|NODE_|FORCE_COLOR|NO_COLOR|CI$)/;

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface Installed {
  /** Runs a script of package.json in a clean copy of this repository. */
  npmRun(script: string): Promise<Ran>;
  /** The project that the package is installed in. */
  readonly project: string;
  /** The files in the tarball. */
  readonly files: readonly string[];
  /** Result of the installation. */
  readonly installation: Ran;
  /** Runs a command in the project, with a temporary folder of its own. */
  run(command: string, ...args: string[]): Promise<Ran>;
  /** Writes a file into the project and runs it with Node. */
  script(name: string, text: string, ...flags: string[]): Promise<Ran>;
  /** Installs another package into the project. */
  install(name: string): Promise<void>;
  /** Lists the files that commands have left in their temporary folder. */
  leftovers(): Promise<string[]>;
  remove(): Promise<void>;
}

/** The compiler of this repository; the project of a user has another one. */
export const COMPILER = join(ROOT, "node_modules", ".bin", "tsc");

export async function installPackage(...others: string[]): Promise<Installed> {
  const folder = await mkdtemp(join(tmpdir(), "zae-limiter-package-"));
  try {
    return await installInto(folder, others);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function installInto(folder: string, others: readonly string[]): Promise<Installed> {
  const copy = join(folder, "copy");
  const project = join(folder, "project");
  const temporary = join(folder, "temporary");
  for (const path of [project, temporary]) await mkdir(path);
  await cp(ROOT, copy, { recursive: true, filter: (path) => !LEFT_OUT.has(basename(path)) });
  await symlink(join(ROOT, "node_modules"), join(copy, "node_modules"));
  const packed = await run(copy, temporary, "npm", [
    "pack",
    "--json",
    "--pack-destination",
    folder,
  ]);
  if (packed.code !== 0) throw new Error(`npm pack failed: ${packed.err}`);
  const [{ filename, files }] = JSON.parse(packed.out) as [
    { filename: string; files: { path: string }[] },
  ];
  await writeFile(join(project, "package.json"), JSON.stringify({ private: true }));
  const install = async (...names: string[]): Promise<Ran> => {
    const flags = ["--no-audit", "--no-fund", "--prefer-offline"];
    const ran = await run(project, temporary, "npm", ["install", ...flags, ...names]);
    if (ran.code !== 0) throw new Error(`npm install failed: ${ran.err}`);
    return ran;
  };
  const installation = await install(join(folder, filename), ...others);
  return {
    project,
    installation,
    files: files.map(({ path }) => path),
    npmRun: (script) => run(copy, temporary, "npm", ["run", "--silent", script]),
    run: (command, ...args) => run(project, temporary, command, args),
    script: async (name, text, ...flags) => {
      await writeFile(join(project, name), text);
      return run(project, temporary, process.execPath, [...flags, name]);
    },
    install: async (name) => {
      await install(name);
    },
    leftovers: () => readdir(temporary),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

/** The package.json of this repository. */
export async function manifest(): Promise<{ version: string }> {
  return JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
}

function run(
  cwd: string,
  temporary: string,
  command: string,
  args: readonly string[],
): Promise<Ran> {
  const inherited = Object.entries(process.env).filter(([name]) => !INHERITED_PATTERN.test(name));
  const env = {
    ...Object.fromEntries(inherited),
    // The same Node as that of the tests, also for what starts with `#!/usr/bin/env node`.
    PATH: dirname(process.execPath) + delimiter + process.env.PATH,
    TMPDIR: temporary,
  };
  return new Promise((resolve) => {
    const child = execFile(command, args, { cwd, env }, (error, out, err) => {
      const code = error === null ? 0 : Number(error.code ?? 1);
      resolve({ code, out, err });
    });
    child.stdin?.end();
  });
}
