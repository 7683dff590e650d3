/**
 * Runs the tests of the AI SDK with its major 7, which says that it needs Node 22. As a dependency it
 * would make npm warn at every install on Node 20, so this command installs it in a folder of its own.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const VERSION = "7.0.169";
const root = fileURLToPath(new URL("..", import.meta.url));
const folder = join(homedir(), ".cache", "zae-limiter", `ai-sdk-${VERSION}`);

function run(command, args, options) {
  const { status } = spawnSync(command, args, { stdio: "inherit", ...options });
  if (status !== 0) process.exit(status ?? 1);
}

if (!existsSync(join(folder, "node_modules", "ai"))) {
  console.log(`Installing ai@${VERSION}…`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
  run(npm, ["install", ...quiet, `ai@${VERSION}`], { cwd: folder });
}
const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
run(process.execPath, [vitest, "run", "--project", "integration", "llm/ai-sdk.test.ts"], {
  cwd: root,
  env: { ...process.env, ZAEL_AI_SDK: join(folder, "node_modules", "ai") },
});
