/**
 * Shows the state of the house: lines and files per room, files that are long, small or crowded,
 * duplicated code, the walks of calls, the time of the tests. `--json` prints all of it as JSON,
 * `--no-walks` leaves out what has to run. Fails when a folder is crowded.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { compile } from "./compile.mjs";
import { entryPoints, root } from "./entry-points.mjs";
import { duplicatedRuns } from "./house/duplicates.mjs";
import { crowdedFolders, longFiles, roomRows, smallFiles, totalRow } from "./house/figures.mjs";
import { pageOf } from "./house/page.mjs";
import { importersOf, readSources } from "./house/sources.mjs";
import { readTestTime } from "./house/test-time.mjs";

const isGiven = (flag) => process.argv.includes(flag);

/** Measures the walks in a process of its own, because V8 counts for the whole process. */
async function measureWalks() {
  await compile(join(root, "bench/dist/modules"), { inPlaceOfSources: true });
  const env = { ...process.env, AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true" };
  const { status, stdout } = spawnSync(process.execPath, ["bench/walks.mjs", "--json"], {
    cwd: root,
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status !== 0) throw new Error(`bench/walks.mjs ended with ${status}.`);
  return JSON.parse(stdout);
}

const sources = readSources();
const crowded = crowdedFolders(sources);
const report = {
  rooms: roomRows(sources),
  total: totalRow(sources),
  crowded,
  long: longFiles(sources),
  small: smallFiles(sources, importersOf(sources), new Set(Object.values(entryPoints()))),
  duplicates: duplicatedRuns(sources),
  walks: isGiven("--no-walks") ? undefined : await measureWalks(),
  testTime: readTestTime(),
};
console.log(isGiven("--json") ? JSON.stringify(report, undefined, 2) : pageOf(report));
if (crowded.length > 0) process.exitCode = 1;
