/** `loadtest`: scenarios against any store. */

import type { Group } from "../command.ts";
import { loadtestRun } from "./loadtest-run.ts";
import { loadtestDelete, loadtestDeploy, loadtestList, loadtestPush } from "./loadtest-stack.ts";
import { loadtestTune } from "./loadtest-tune.ts";

export const loadtest: Group = {
  name: "loadtest",
  summary: "load tests: scenarios against any store",
  commands: [loadtestRun, loadtestTune, loadtestDeploy, loadtestPush, loadtestList, loadtestDelete],
};
