/** Runs scenarios and reports them. Started by `run.mjs`. */

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { PACE } from "./measure.mjs";
import { markdown, rowOf, table } from "./report.mjs";
import { dynamodb } from "./scenarios/dynamodb.mjs";
import { growth } from "./scenarios/growth.mjs";
import { memory } from "./scenarios/memory.mjs";
import { sqlite } from "./scenarios/sqlite.mjs";
import { starting } from "./scenarios/start.mjs";

const SCENARIOS = [...memory, ...sqlite, ...dynamodb, ...growth, ...starting];
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
  const row = rowOf(scenario, await scenario.run(pace));
  rows.push(row);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
  process.stderr.write(`${row.summary} (${seconds} s)\n`);
}
console.log(table(rows));
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(rows, null, 2)}\n`);
if (values.markdown !== undefined) writeFileSync(values.markdown, markdown(rows, values));
// Sockets of the rivals may be kept open by their agents.
process.exit(0);
