/** How long until the first acquire, against merely importing the rival. Fresh processes each. */

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { median } from "../measure.mjs";

const OURS = fileURLToPath(new URL("../children/start-ours.mjs", import.meta.url));
const THEIRS = fileURLToPath(new URL("../children/start-theirs.mjs", import.meta.url));

function once(file) {
  const { stdout } = spawnSync(process.execPath, [file], { encoding: "utf8" });
  return Number(stdout);
}

async function start(pace) {
  const [ours, theirs] = [[], []];
  for (let round = 0; round < pace.rounds * 2; round += 1) {
    const order = round % 2 === 0 ? [OURS, THEIRS] : [THEIRS, OURS];
    for (const file of order) (file === OURS ? ours : theirs).push(once(file));
  }
  const [oursMs, theirsMs] = [median(ours), median(theirs)];
  return { oursMs, theirsMs, timeRatio: oursMs / theirsMs };
}

export const starting = [
  {
    id: "start",
    title: "import zae-limiter and the first acquire on memory:, against importing the rival",
    marks: [{ of: "timeRatio", most: 1.5 }],
    run: start,
  },
];
