/**
 * Repeats attacks in at most ten minutes: random histories against an ideal bucket, killed
 * processes, a bad network, a full disk, hostile items, cascades under contention, forged index keys, ids without end, two million where the machine is quick enough. Prints what was
 * measured; what does not begin in time counts as failed, and so does what this machine cannot do,
 * unless `--may-skip` is given.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
const LIMIT_MS = 600_000;
/** The exit code of a script for which the machine lacks something. */
const NOT_POSSIBLE = 3;
const MAY_SKIP = process.argv.includes("--may-skip");
const startedAt = Date.now();
const scratch = mkdtempSync(join(tmpdir(), "zae-limiter-attack-"));

const script = (name, ...args) => [`scripts/attack/${name}.mjs`, ...args.map(String)];
/** Returns the command for test files. A single test may use all of the ten minutes. */
const tests = (project, ...files) => [
  ...[vitest, "run", "--testTimeout=300000", "--project", project],
  ...files,
];
const STEPS = [
  ["histories against an ideal bucket", script("histories", 30)],
  ["processes killed with -9", script("kills", 30)],
  ["a full disk, freed again", script("full-disk", 30)],
  ["hostile items", tests("unit", "/untrusted-")],
  ["a bad network", tests("integration", "transport-faults")],
  ["cascades of four clients, three levels", script("cascades", 4, 24, 15)],
  ["forged index keys, and every policy", tests("integration", "iam-forgery", "iam-matrix")],
];
/** Needs a core of its own for minutes, and no local DynamoDB: it goes along with the others. */
const ASIDE = [
  ["ids without end", ["--expose-gc", ...script("churn", 2_000_000, LIMIT_MS / 1000 - 60)]],
];

/** Ends with the exit code and all that was printed. */
function run(command, figures, timeoutMs) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, command, {
      cwd: root,
      env: {
        ...process.env,
        ZAEL_SOAK: "1",
        ZAEL_FIGURES: figures,
        AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const timer = setTimeout(() => child.kill("SIGTERM"), timeoutMs);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        output += text;
      });
    }
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ code, output });
    });
  });
}

/** Lines of figures: what scripts print as JSON, and what tests append to the file. */
function figuresIn(output, figures) {
  const printed = output.split("\n").filter((line) => line.startsWith("{"));
  const appended = readFileSync(figures, "utf8").split("\n").filter(Boolean);
  return [...printed, ...appended];
}

async function step(title, command) {
  const stepStartedAt = Date.now();
  const leftMs = LIMIT_MS - (stepStartedAt - startedAt);
  if (leftMs <= 0) {
    console.log(`NOT BEGUN IN TIME: ${title}`);
    return false;
  }
  const figures = join(scratch, `figures-${command.at(-1).replace(/\W/g, "-")}`);
  writeFileSync(figures, "");
  const { code, output } = await run(command, figures, leftMs);
  const seconds = Math.round((Date.now() - stepStartedAt) / 1000);
  const isSkipped = code === NOT_POSSIBLE;
  if (code !== 0) console.log(output);
  const verdict = isSkipped ? "SKIPPED" : code === 0 ? "held" : "DID NOT HOLD";
  console.log(`${verdict}: ${title} (${seconds} s)`);
  for (const line of figuresIn(output, figures)) console.log(`  ${line}`);
  return code === 0 || (isSkipped && MAY_SKIP);
}

/** Runs steps one after the other; returns how many failed. */
async function lane(steps) {
  let failed = 0;
  for (const [title, command] of steps) if (!(await step(title, command))) failed += 1;
  return failed;
}

let failed = 0;
try {
  const lanes = await Promise.all([STEPS, ASIDE].map(lane));
  failed = lanes.reduce((sum, each) => sum + each, 0);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
const minutes = ((Date.now() - startedAt) / 60_000).toFixed(1);
const all = STEPS.length + ASIDE.length;
console.log(`${all - failed} of ${all} held, in ${minutes} minutes`);
process.exitCode = failed === 0 ? 0 : 1;
