/**
 * `npm run bench`: us and what a user would pick instead, in one run on one machine.
 *
 * Installs the rivals and local DynamoDB into this folder when they are missing, builds the package
 * beside them (so that both use the same SQLite driver), and starts the measurements with
 * `--expose-gc`.
 */

import { spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { buildEngine } from "./engine.mjs";

const here = fileURLToPath(new URL(".", import.meta.url));
const root = fileURLToPath(new URL("..", import.meta.url));

/** Runs a command to its end; what goes wrong there ends this process too. */
function run(command, args, cwd) {
  const { status } = spawnSync(command, args, { cwd, stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) process.exit(status ?? 1);
}

const RIVALS = [
  "@fastify/rate-limit",
  "better-sqlite3",
  "express-rate-limit",
  "rate-limiter-flexible",
];
if (!RIVALS.every((name) => existsSync(`${here}node_modules/${name}/package.json`))) {
  console.error("Installing the rivals; better-sqlite3 may have to be compiled …");
  run("npm", ["install", "--no-package-lock"], here);
}
buildEngine();
rmSync(`${here}dist`, { recursive: true, force: true });
run(process.execPath, ["scripts/bundle.mjs", "bench/dist"], root);
const options = ["--expose-gc", "--no-warnings", `${here}main.mjs`, ...process.argv.slice(2)];
run(process.execPath, options, root);
