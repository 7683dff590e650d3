/**
 * Builds the documentation site, or serves it with `--dev`. The site has its own dependencies,
 * which are installed by the first run, and again when its lock file has changed.
 */
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const site = fileURLToPath(new URL("../site", import.meta.url));

function changedAt(path) {
  return statSync(join(site, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function run(command, args) {
  const { status } = spawnSync(command, args, {
    cwd: site,
    stdio: "inherit",
    shell: process.platform === "win32",
  });
  if (status !== 0) process.exit(status ?? 1);
}

if (changedAt("node_modules/.package-lock.json") < changedAt("package-lock.json")) {
  console.log("Installing the tools of the site in site/node_modules ...");
  run("npm", ["ci", "--ignore-scripts", "--no-progress"]);
}
run(process.execPath, ["build.mjs", ...process.argv.slice(2)]);
if (!process.argv.includes("--dev")) console.log("The site is in site/.vitepress/dist");
