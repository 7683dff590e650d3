/**
 * Runs the simulator: random seeds, or one of the scenarios of the scale report.
 * The sources are bundled for this run, so that no build is needed and none is in the way.
 */

import { bundled } from "./src/command/bundle.mjs";
import { CommandLine, USAGE } from "./src/command/command-line.mjs";
import { runScenarios } from "./src/command/scenarios.mjs";
import { runSeeds } from "./src/command/seeds.mjs";

let stopped = false;
process.once("SIGINT", () => {
  stopped = true;
});

/** Returns the exit code: 0 clean, 1 a rule was broken, 2 wrong flags, 130 stopped by a key. */
async function main() {
  const options = CommandLine.parse(process.argv.slice(2));
  if (options.help) {
    console.log(USAGE);
    return 0;
  }
  if (options.error !== undefined) {
    console.error(`${options.error}\n\n${USAGE}`);
    return 2;
  }
  const { simulator, remove } = await bundled();
  try {
    const run = options.scenario === undefined ? runSeeds : runScenarios;
    const code = await run(simulator, options, () => stopped);
    return stopped ? 130 : code;
  } finally {
    remove();
  }
}

process.exitCode = await main();
