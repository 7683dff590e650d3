/**
 * What attackers tried, again, in about ten minutes: ids without end, hostile items, a bad network,
 * killed processes, a full disk, forged index keys and clocks that are set. Prints what it measured.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const vitest = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
const LIMIT_MS = 600_000;
const startedAt = Date.now();

const tests = (project, ...files) => [vitest, "run", "--project", project, ...files];
const STEPS = [
  ["hostile items", tests("unit", "test/unit/untrusted")],
  ["histories against an ideal bucket", tests("unit", "test/unit/buckets/model.test.ts")],
  ["the same answers on every store", tests("unit", "test/unit/limiter/same-answers.test.ts")],
  [
    "a bad network, a full disk, kill -9",
    tests("integration", "transport-faults", "sqlite-full-disk", "sqlite-crash"),
  ],
  ["forged index keys through IAM", tests("integration", "iam-forgery", "iam-matrix")],
  ["two million ids in an hour", ["--expose-gc", "scripts/attack/churn.mjs", "2000000"]],
];

let failed = 0;
for (const [title, command] of STEPS) {
  const stepStartedAt = Date.now();
  const leftMs = LIMIT_MS - (stepStartedAt - startedAt);
  if (leftMs <= 0) {
    console.log(`not begun in time: ${title}`);
    failed += 1;
    continue;
  }
  const { status } = spawnSync(process.execPath, command, {
    cwd: root,
    env: { ...process.env, ZAEL_SOAK: "1" },
    stdio: "inherit",
    timeout: leftMs,
  });
  const seconds = Math.round((Date.now() - stepStartedAt) / 1000);
  console.log(`${status === 0 ? "held" : "DID NOT HOLD"}: ${title} (${seconds} s)`);
  if (status !== 0) failed += 1;
}
process.exitCode = failed === 0 ? 0 : 1;
