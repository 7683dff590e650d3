/** `loadtest`: scenarios against any store. */

import type { Group } from "../../frame/command.ts";
import { loadtestRun } from "./loadtest-run.ts";
import { loadtestDelete, loadtestDeploy, loadtestList, loadtestPush } from "./loadtest-stack.ts";
import { loadtestTune } from "./loadtest-tune.ts";
import { loadtestUi } from "./loadtest-ui.ts";

export const loadtest: Group = {
  name: "loadtest",
  summary: "load tests: scenarios against any store",
  commands: [
    loadtestRun,
    loadtestUi,
    loadtestTune,
    loadtestDeploy,
    loadtestPush,
    loadtestList,
    loadtestDelete,
  ],
};
