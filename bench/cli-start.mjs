// How long the command takes to start, against Node itself: `--version`, the help, and a read from
// a file. Runs take turns, so that a busy moment of the machine meets all of them. Prints a table;
// `--runs N` changes the number, `--json` the form.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "40" },
    binary: {
      type: "string",
      default: fileURLToPath(new URL("../dist/cli/main.js", import.meta.url)),
    },
    json: { type: "boolean", default: false },
  },
});
const runs = Number(values.runs);
const folder = mkdtempSync(join(tmpdir(), "zae-limiter-bench-"));
const url = `sqlite:${join(folder, "limits.db")}`;

function run(args) {
  const startedAt = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${args.join(" ")} ended with ${status}: ${stderr}`);
  return performance.now() - startedAt;
}

const SUBJECTS = [
  ["node -e 0", ["-e", "0"]],
  ["zae-limiter --version", [values.binary, "--version"]],
  ["zae-limiter --help", [values.binary, "--help"]],
  ["zae-limiter resource list", [values.binary, "resource", "list", "--url", url]],
];

try {
  run([values.binary, "resource", "set-defaults", "gpt-4", "-l", "rpm:100", "--url", url]);
  const times = SUBJECTS.map(() => []);
  for (let round = 0; round < runs; round += 1) {
    SUBJECTS.forEach(([, args], at) => times[at].push(run(args)));
  }
  const medians = times.map((list) => list.sort((a, b) => a - b)[Math.floor(list.length / 2)]);
  const rows = SUBJECTS.map(([what], at) => ({
    what,
    ms: Number(medians[at].toFixed(1)),
    timesNode: Number((medians[at] / medians[0]).toFixed(2)),
  }));
  if (values.json) console.log(JSON.stringify(rows));
  else console.table(rows);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
