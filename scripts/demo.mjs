/**
 * `npm run demo` in a fresh clone: says at once that it builds, builds what the commands need (no
 * declarations), and starts the demonstration.
 */
import { spawn } from "node:child_process";
import { root } from "./entry-points.mjs";

const [node, , ...flags] = process.argv;

/** Runs a script of ours to its end and returns its exit code; a signal counts as Ctrl-C. */
function run(...args) {
  return new Promise((resolve, reject) => {
    const child = spawn(node, args, { cwd: root, stdio: "inherit" });
    child.on("error", reject);
    child.on("close", (code) => resolve(code ?? 130));
  });
}

// The demonstration answers Ctrl-C itself and removes its folder; this process waits for it.
process.on("SIGINT", () => undefined);
process.stderr.write("building…\n");
const builds = await Promise.all([
  run("scripts/bundle.mjs"),
  run("scripts/bundle-lambda.mjs"),
  run("scripts/bundle-page.mjs"),
]);
process.exitCode =
  builds.find((code) => code !== 0) ?? (await run("dist/cli/main.js", "demo", ...flags));
