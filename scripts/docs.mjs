/**
 * Builds the documentation site; `--serve` shows what was built, `--dev` what is being written. The
 * site has its own dependencies, which are installed by the first run, and again when its lock file
 * has changed. The API reference is made from the types, so the packages of the project itself must
 * be there too.
 */
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const site = join(root, "site");

function changedAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/** Installs the packages of a folder, and leaves its lock file as it is. */
function install(folder) {
  console.log(`Installing the packages of ${folder} ...`);
  run("npm", ["install", "--no-save", "--ignore-scripts", "--no-progress"], folder);
}

function run(command, args, cwd) {
  const { status } = spawnSync(command, args, {
    cwd,
    stdio: "inherit",
    shell: process.platform === "win32",
  });
  if (status !== 0) process.exit(status ?? 1);
}

const locked = changedAt(join(site, "package-lock.json"));
if (changedAt(join(root, "node_modules/.package-lock.json")) === 0) install(root);
if (changedAt(join(site, "node_modules/.package-lock.json")) < locked) install(site);
run(process.execPath, ["build.mjs", ...process.argv.slice(2)], site);
const isServed = ["--dev", "--serve"].some((flag) => process.argv.includes(flag));
if (!isServed) console.log("The site is in site/.vitepress/dist; npm run docs -- --serve shows it");
