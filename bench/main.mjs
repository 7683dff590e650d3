/** Runs scenarios and reports them. Started by `run.mjs`. */

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { PACE } from "./measure.mjs";
import { markdown, rowOf, table } from "./report.mjs";
import { dashboards } from "./scenarios/dashboard.mjs";
import { dynamodb } from "./scenarios/dynamodb.mjs";
import { dynamodbSame } from "./scenarios/dynamodb-same.mjs";
import { growth } from "./scenarios/growth.mjs";
import { http } from "./scenarios/http.mjs";
import { llm } from "./scenarios/llm.mjs";
import { llmGateway } from "./scenarios/llm-gateway.mjs";
import { memory } from "./scenarios/memory.mjs";
import { observed } from "./scenarios/observe.mjs";
import { postgresql } from "./scenarios/postgres.mjs";
import { redis } from "./scenarios/redis.mjs";
import { sqlite } from "./scenarios/sqlite.mjs";
import { starting } from "./scenarios/start.mjs";

const SCENARIOS = [
  ...memory,
  ...observed,
  ...sqlite,
  ...postgresql,
  ...redis,
  ...dynamodb,
  ...dynamodbSame,
  ...http,
  ...llm,
  ...llmGateway,
  ...dashboards,
  ...growth,
  ...starting,
];
const USAGE = `npm run bench -- [--only id,id] [--quick] [--json FILE] [--markdown FILE]
  scenarios: ${SCENARIOS.map(({ id }) => id).join(", ")}`;

const { values } = parseArgs({
  options: {
    only: { type: "string" },
    quick: { type: "boolean", default: false },
    json: { type: "string" },
    markdown: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  console.log(USAGE);
  process.exit();
}
const wanted = values.only?.split(",");
const unknown = wanted?.find((id) => !SCENARIOS.some((scenario) => scenario.id === id));
if (unknown !== undefined) {
  console.error(`There is no scenario "${unknown}".\n${USAGE}`);
  process.exit(2);
}
const pace = values.quick ? PACE.quick : PACE.full;
const chosen = SCENARIOS.filter(({ id }) => wanted === undefined || wanted.includes(id));
const rows = [];
for (const [at, scenario] of chosen.entries()) {
  const startedAt = performance.now();
  process.stderr.write(`${String(at + 1).padStart(2)}/${chosen.length} ${scenario.id} … `);
  const row = chosen.length === 1 ? await rowHere(scenario) : rowElsewhere(scenario);
  rows.push(row);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
  process.stderr.write(`${row.summary} (${seconds} s)\n`);
}
console.log(table(rows));
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(rows, null, 2)}\n`);
if (values.markdown !== undefined) writeFileSync(values.markdown, markdown(rows, values));
// Sockets of the rivals may be kept open by their agents.
process.exit(0);

async function rowHere(scenario) {
  return rowOf(scenario, await scenario.run(pace));
}

/** Runs a row in a new process: the heap that one scenario leaves would slow down the next. */
function rowElsewhere({ id }) {
  const folder = mkdtempSync(join(tmpdir(), "zae-limiter-bench-"));
  const json = join(folder, "row.json");
  const args = [...process.execArgv, process.argv[1], "--only", id, "--json", json];
  const options = values.quick ? ["--quick"] : [];
  const { status, stderr } = spawnSync(process.execPath, [...args, ...options], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  try {
    if (status !== 0) throw new Error(`${id} ended with ${status}:\n${stderr}`);
    return JSON.parse(readFileSync(json, "utf8"))[0];
  } finally {
    rmSync(folder, { recursive: true });
  }
}
