/** Starts the parts of `local up`: the server, what is created in it, the aggregator. */

import { fileURLToPath } from "node:url";
import { CommandFailure } from "../frame/command.ts";
import { REGISTRY } from "../frame/registry.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { freePort } from "./answers.ts";
import {
  type BackgroundProcess,
  isRunning,
  kill,
  startInBackground,
  stop,
} from "./background-process.ts";
import type { LocalFolder } from "./local-folder.ts";
import { type LocalState, storeOf, urlOf } from "./local-state.ts";
import { lastLines } from "./log-tail.ts";
import type { Engine, Owner, StorePlace } from "./stores/store.ts";
import { storeNameOf } from "./stores/stores.ts";

const START_MS = 30_000;
const POLL_MS = 50;
const AGGREGATE = "aggregate";
/** This program, as it is installed: in a bundle, and as a source file. */
const PROGRAM = fileURLToPath(
  new URL(import.meta.url.includes("/chunks/") ? "../cli/main.js" : "../main.js", import.meta.url),
);

interface UpRequest extends StorePlace {
  readonly engine: Engine;
  readonly aggregator: boolean;
}

/** The folder, terminal and signal of one `local up`. */
interface UpPlace {
  readonly folder: LocalFolder;
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
  readonly progress: (text: string) => void;
}

/** Starts everything or nothing: if one part fails, the others are stopped again. */
export async function startAll(request: UpRequest, place: UpPlace): Promise<LocalState> {
  const { folder, terminal, progress } = place;
  const { engine, aggregator: aggregates, ...wanted } = request;
  const port = await freePort(request.port);
  folder.renewLogs();
  progress(`Starting ${engine.name}`);
  const data = folder.dataOf(storeNameOf(engine.name));
  await engine.prepare?.(data, place.signal);
  const engineProcess = await start(
    engine.command,
    engine.args(port, data),
    folder.engineLog,
    folder,
    engine.owner,
  );
  let state: LocalState = { ...wanted, engine: engine.name, process: engineProcess, port };
  try {
    // Written before anything can fail, so that `down` finds the process in any case.
    folder.write(state);
    await untilItAnswers(state, place);
    progress(state.table === undefined ? "Migrating" : `Creating the table ${state.table}`);
    await storeOf(state).create(state);
    if (aggregates && storeOf(state).hasTables && canAggregate()) {
      const args = [PROGRAM, AGGREGATE, "--url", urlOf(state)];
      const aggregator = await start(process.execPath, args, folder.aggregatorLog, folder);
      state = { ...state, aggregator };
      folder.write(state);
    }
    if (place.signal.aborted) throw place.signal.reason;
    return state;
  } catch (error) {
    await stopAll(state, folder, terminal);
    throw error;
  }
}

/** Stops the aggregator first, while it can still write its counts. */
export async function stopAll(
  state: LocalState,
  folder: LocalFolder,
  { timer }: Terminal,
): Promise<void> {
  const endAggregator = isRunning(state.process) ? stop : kill;
  if (state.aggregator !== undefined) await endAggregator(state.aggregator, timer);
  await stop(state.process, timer, storeOf(state).stopSignal);
  folder.forget();
}

async function start(
  command: string,
  args: readonly string[],
  log: string,
  folder: LocalFolder,
  owner?: Owner,
): Promise<BackgroundProcess> {
  try {
    return await startInBackground(command, args, log, folder.path, owner);
  } catch (error) {
    const { message } = error as Error;
    throw new CommandFailure(`${command} cannot be started: ${message}`, 1, { cause: error });
  }
}

async function untilItAnswers(state: LocalState, place: UpPlace): Promise<void> {
  const { folder, signal, terminal } = place;
  const { timer } = terminal;
  const startedMs = timer.nowMs();
  while (!(await storeOf(state).answers(state.port, timer))) {
    if (signal.aborted) throw signal.reason;
    if (!isRunning(state.process)) throw failedWith(`${state.engine} ended at once`, folder);
    if (timer.nowMs() - startedMs > START_MS) {
      throw failedWith(`${state.engine} did not answer within ${START_MS / 1000} seconds`, folder);
    }
    await timer.sleep(POLL_MS, signal);
  }
  // Another process may have taken the port in the meantime, and answered instead.
  if (!isRunning(state.process)) throw failedWith(`${state.engine} ended at once`, folder);
}

function failedWith(what: string, folder: LocalFolder): CommandFailure {
  const said = lastLines(folder.engineLog, 10).join(" | ");
  return new CommandFailure(said === "" ? what : `${what}; its last output: ${said}`);
}

/** Whether this program has the command that aggregates. */
function canAggregate(): boolean {
  return REGISTRY.some(({ name }) => name === AGGREGATE);
}
