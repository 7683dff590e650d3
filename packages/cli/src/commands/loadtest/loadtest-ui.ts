/** `loadtest ui`: a scenario in the browser, with load that changes while it runs. */

import { basename } from "node:path";
import { announce, ended } from "../../dashboard/announce.ts";
import { checkedToken, DASHBOARD_OPTIONS, type DashboardFlags } from "../../dashboard/options.ts";
import { type Call, leaf } from "../../frame/command.ts";
import {
  CLASSES_ARGUMENT,
  FILE_OPTION,
  type ScenarioOptions,
  USERS_OPTION,
  WORKERS_OPTION,
} from "../../loadtest/options.ts";
import { prepare, refuseUnshared, step } from "../../loadtest/prepared.ts";
import { localWorkers } from "../../loadtest/run.ts";
import { interruptible } from "../../terminal/interruption.ts";

interface UiOptions extends ScenarioOptions, DashboardFlags {
  readonly users: number;
  readonly workers: number;
  readonly token?: string;
}

export const loadtestUi = leaf<UiOptions>({
  name: "ui",
  summary: "a scenario in the browser: start, stop, change the load",
  details:
    "Prints an address with a random token and opens it. Ctrl-C ends the run and the page, with " +
    "130. An address that other machines reach needs --token.",
  arguments: [CLASSES_ARGUMENT],
  options: [
    FILE_OPTION,
    USERS_OPTION,
    WORKERS_OPTION,
    ...DASHBOARD_OPTIONS,
    { flags: "--token <secret>", text: "the token instead of a random one" },
  ],
  store: "write",
  examples: ["loadtest ui -f max-rps.mjs --workers 2 --name my-app -N loadtest"],
  json: { url: "text" },
  run: (call) => interruptible(call.terminal, (signal) => serve(call, signal)),
});

async function serve(call: Call<UiOptions>, signal: AbortSignal): Promise<never> {
  const { options, terminal, json } = call;
  const [{ servePage }, { UiRun }, { uiHandler }] = await Promise.all([
    import("@zae-limiter/dashboard/server/serve.ts"),
    import("@zae-limiter/loadtest/ui/ui-run.ts"),
    import("@zae-limiter/loadtest/ui/ui-server.ts"),
  ]);
  const token = checkedToken(options.host, options.token);
  const prepared = await prepare(call);
  const { workers, users } = options;
  const { classes, storeName: store } = prepared;
  refuseUnshared(workers, prepared);
  await step("setup", prepared);
  const makeFleet = localWorkers(prepared, workers);
  const title = basename(options.file);
  const run = new UiRun({ title, store, classes, workers, users, makeFleet });
  const served = await servePage({ ...options, token }, (guard) => uiHandler(run, guard));
  try {
    announce(served.url, terminal, { json, open: options.open, name: "Load test" });
    return await ended(signal);
  } finally {
    await run.close();
    await served.close();
    await step("teardown", prepared);
  }
}
