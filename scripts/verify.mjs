/**
 * Everything a contributor must pass, the quick things first; it stops at the first that fails.
 * `npm test` runs all of it, `npm run check` all but the tests, `npm run test:quick` types, style
 * and the tests that need no engine, no browser and no Python.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { compile } from "./compile.mjs";
import { writeTestTime } from "./house/test-time.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "zae-limiter-verify-"));
const report = join(scratch, "tests.json");
/** Inside node_modules, so that packages are found from there. */
const compiled = join(root, "node_modules", ".cache", `zae-limiter-compiled-${process.pid}`);

/**
 * Scripts of package.json, so that each can be run alone. The lanes run beside each other: most
 * checks use one core. The checks of the package use the build before them and do not make another.
 */
const LANES = [
  ["check:types", "check:style", "check:promises", "check:unused"],
  ["build", "check:package", "check:package-types --ignore-scripts"],
];
const QUICK_LANES = [["check:types"], ["check:style"]];
const TESTS = `vitest run --reporter=default --reporter=json --outputFile.json="${report}"`;
const QUICK_TESTS =
  "vitest run --reporter=dot --silent=passed-only --project unit --project contract";

/** Runs a command; returns its exit code and output. With `show`, it is printed at once. */
function run(command, show, env) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, {
      cwd: root,
      shell: true,
      stdio: ["ignore", show ? "inherit" : "pipe", show ? "inherit" : "pipe"],
      env: {
        ...process.env,
        // Compilers written in Go end before their garbage is worth collecting: a quarter less CPU.
        GOGC: "off",
        ...env,
        PATH: join(root, "node_modules", ".bin") + delimiter + process.env.PATH,
      },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    }
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? 1, output }));
  });
}

/** Runs one step and prints its result; the output of a check is printed only when it failed. */
async function step(name, command, { show = false, env = {} } = {}) {
  const startedAt = performance.now();
  const { code, output } = await run(command, show, env);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  if (code !== 0 && !show) console.log(output);
  console.log(`${code === 0 ? "ok    " : "FAILED"} ${name.padEnd(20)} ${seconds.padStart(6)} s`);
  return code;
}

/** Returns the line of counts. A test file that does not load counts as one failed test. */
function closingLine(code) {
  try {
    const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = JSON.parse(
      readFileSync(report, "utf8"),
    );
    const failed = code === 0 ? numFailedTests : Math.max(1, numFailedTests);
    const skipped = numPendingTests + numTodoTests;
    return `${numPassedTests} passed, ${failed} failed, ${skipped} skipped`;
  } catch {
    return "0 passed, 1 failed";
  }
}

/** Returns the exit code of the first check that failed; no other check starts after it. */
async function check(lanes) {
  let failed = 0;
  const runLane = async (lane) => {
    for (const script of lane) {
      if (failed !== 0) return;
      const [name] = script.split(" ");
      const code = await step(name, `npm run --silent ${script}`);
      failed ||= code;
    }
  };
  await Promise.all(lanes.map(runLane));
  return failed;
}

async function verifyQuickly() {
  const checked = await check(QUICK_LANES);
  if (checked !== 0) return checked;
  await compile(compiled, { inPlaceOfSources: true });
  const env = { ZAEL_COMPILED: compiled, ZAEL_QUICK: "1" };
  return step("tests", QUICK_TESTS, { show: true, env });
}

async function verify(withTests) {
  const startedAt = performance.now();
  const checked = await check(LANES);
  if (checked !== 0 || !withTests) return checked;
  await compile(compiled, { inPlaceOfSources: true });
  const code = await step("tests", TESTS, { show: true, env: { ZAEL_COMPILED: compiled } });
  const result = closingLine(code);
  console.log(result);
  writeTestTime((performance.now() - startedAt) / 1000, result);
  return code;
}

try {
  console.log(`Node.js ${process.versions.node}`);
  process.exitCode = process.argv.includes("--quick")
    ? await verifyQuickly()
    : await verify(!process.argv.includes("--no-tests"));
} finally {
  for (const folder of [scratch, compiled]) rmSync(folder, { recursive: true, force: true });
}
