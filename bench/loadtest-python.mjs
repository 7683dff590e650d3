/**
 * `npm run bench:loadtest`: the scenario `max-rps` with this library and with the Python library, one
 * after the other on the same table of the same local DynamoDB, with the same number of users in one
 * process each. Needs Python 3 and, once, a registry of its packages.
 */

import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { homedir, loadavg } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { Repository } from "../dist/index.js";
import { startDynoxide } from "./support.mjs";

const RELEASE = "0.17.0";
const CACHE =
  process.env.ZAEL_PYTHON_VENVS ?? join(homedir(), ".cache", "zae-limiter", "python-venvs");
const run = promisify(execFile);
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const { values } = parseArgs({
  options: {
    users: { type: "string", default: "20" },
    seconds: { type: "string", default: "10" },
  },
});

/** Returns the interpreter with the Python library, which `npm run test:python` installs. */
function interpreter() {
  const venv = join(CACHE, `v${RELEASE}`);
  const python = join(venv, "bin", "python");
  if (existsSync(join(venv, ".installed"))) return python;
  mkdirSync(CACHE, { recursive: true });
  execFileSync("python3", ["-m", "venv", venv]);
  execFileSync(python, ["-m", "pip", "install", "--quiet", `zae-limiter==${RELEASE}`]);
  mkdirSync(join(venv, ".installed"));
  return python;
}

async function ours(url, userClass) {
  const load = ["--users", values.users, "--spawn-rate", "100000", "-d", values.seconds];
  const args = ["loadtest", "run", "-f", here("../examples/loadtest/max-rps.mjs"), userClass];
  const store = ["--url", url, "-N", "default", "--json"];
  const { stdout } = await run(process.execPath, [
    here("../dist/cli/main.js"),
    ...args,
    ...load,
    ...store,
  ]);
  const { total, wcu_per_acquire, rcu_per_acquire } = JSON.parse(stdout);
  return {
    who: `zae-limiter (TypeScript), ${wcu_per_acquire.toFixed(2)} WCU, ${rcu_per_acquire.toFixed(2)} RCU`,
    granted: total.granted,
    errors: total.errors,
    perSecond: total.per_second,
    p50: total.p50_ms,
    p95: total.p95_ms,
    p99: total.p99_ms,
    max: total.max_ms,
  };
}

async function theirs(table, endpoint, kind) {
  const args = [table, endpoint, "default", values.users, values.seconds, kind];
  const env = {
    ...process.env,
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    AWS_DEFAULT_REGION: "us-east-1",
  };
  const { stdout } = await run(interpreter(), [here("children/max_rps.py"), ...args], { env });
  const { errors, version, ...figures } = JSON.parse(stdout);
  const failed = Object.values(errors).reduce((sum, count) => sum + count, 0);
  if (failed > 0) console.error(errors);
  return { who: `zae-limiter ${version} (Python)`, errors: failed, ...figures };
}

/** Returns what the table has counted for a prefix of users. */
async function counted(repository, prefix) {
  const ids = Array.from({ length: Number(values.users) }, (_, user) => `${prefix}-${user}`);
  const states = (await Promise.all(ids.map((id) => repository.buckets.list(id)))).flat();
  return states
    .filter(({ limitName }) => limitName === "rpm")
    .reduce((sum, state) => sum + state.totalConsumed, 0);
}

const engine = await startDynoxide();
const rows = [];
try {
  const table = "rival";
  const { endpoint } = engine;
  const repository = await Repository.createTable(table, {
    endpoint,
    gsi2Projection: "ALL",
    maxShards: 32,
    timeoutMs: 20_000,
  });
  const url = `dynamodb://${table}?endpoint=${endpoint}`;
  for (const [userClass, kind] of [
    ["MaxRpsUser", "standalone"],
    ["MaxRpsCascadeUser", "cascade"],
  ]) {
    rows.push({
      kind,
      ...(await ours(url, userClass)),
      counted: await counted(repository, userClass),
    });
    const python = await theirs(table, endpoint, kind);
    rows.push({ kind, ...python, counted: await counted(repository, `python-${kind}`) });
  }
  await repository.close();
} finally {
  await engine.stop();
}
const ms = (value) => `${value.toFixed(2)} ms`;
console.log(
  `${values.users} users, ${values.seconds} s each; load of the machine ${loadavg()[0].toFixed(1)}`,
);
console.log(
  "| scenario | library | acquires/s | granted | counted by the table | errors | p50 | p95 | p99 |",
);
console.log("|---|---|---|---|---|---|---|---|---|");
for (const row of rows) {
  const cells = [
    row.kind,
    row.who,
    Math.round(row.perSecond),
    row.granted,
    row.counted,
    row.errors,
    ms(row.p50),
    ms(row.p95),
    ms(row.p99),
  ];
  console.log(`| ${cells.join(" | ")} |`);
}
