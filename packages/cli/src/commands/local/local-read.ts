/** `local env` and `local logs`. */

import { CommandFailure, leaf, UsageError } from "../../frame/command.ts";
import { EXIT } from "../../frame/exit-codes.ts";
import { isRunning } from "../../local/background-process.ts";
import { LocalFolder } from "../../local/local-folder.ts";
import { LogFollower, lastLines } from "../../local/log-tail.ts";
import { SHELLS, type Shell, shellLines, variablesOf } from "../../local/shell-lines.ts";
import { interruptible } from "../../terminal/interruption.ts";
import { wholeNumber } from "../../terminal/numbers.ts";
import type { Terminal } from "../../terminal/terminal.ts";
import {
  DEFAULT_PORT,
  FOLDER_OPTION,
  type FolderOptions,
  localHint,
  readPort,
} from "./local-folder-option.ts";

const POLL_MS = 200;
const LINES_MAX = 100_000;

export const env = leaf<FolderOptions & { format: Shell; port?: number }>({
  name: "env",
  summary: "prints the variables that lead programs to the local store",
  details:
    'For a shell to evaluate, as in: eval "$(zae-limiter local env)". While the server runs, ' +
    "ZAEL_URL is among them, so that the library and this command use it by default. The others " +
    "are for the AWS SDK, and left out for PostgreSQL and Valkey.",
  options: [
    {
      flags: "-f, --format <shell>",
      text: `for ${SHELLS.join(", ")}`,
      default: "bash",
      parse: readShell,
    },
    {
      flags: "--port <number>",
      text: `for a server elsewhere (default: the port of the running one, else ${DEFAULT_PORT})`,
      parse: readPort,
    },
    FOLDER_OPTION,
  ],
  examples: ["local env -f fish | source", "local env -f direnv > .envrc"],
  json: {
    "AWS_ENDPOINT_URL?": "text",
    "AWS_ACCESS_KEY_ID?": "text",
    "AWS_SECRET_ACCESS_KEY?": "text",
    "AWS_SESSION_TOKEN?": "text",
    "AWS_REGION?": "text",
    "AWS_DEFAULT_REGION?": "text",
    "ZAEL_URL?": "text",
  },
  run: async ({ options, note }) => {
    const state = new LocalFolder(options.folder).read();
    const running = state !== undefined && isRunning(state.process) ? state : undefined;
    const port = options.port ?? running?.port ?? DEFAULT_PORT;
    if (running === undefined && options.port === undefined) {
      const start = localHint("up", options);
      note(`Nothing runs here; these are for DynamoDB on port ${port}. Start it with: ${start}`);
    }
    const variables = variablesOf(port, running?.port === port ? running : undefined);
    return { json: () => variables, text: () => shellLines(options.format, variables) };
  },
});

type LogOptions = FolderOptions & { readonly follow?: boolean; readonly tail: number };

export const logs = leaf<LogOptions>({
  name: "logs",
  summary: "prints the logs of the local store and the aggregator",
  options: [
    { flags: "-f, --follow", text: "continue with new lines as they come" },
    {
      flags: "--tail <lines>",
      text: "how many lines of the end",
      default: 100,
      parse: wholeNumber(0, LINES_MAX),
    },
    FOLDER_OPTION,
  ],
  json: { source: "text", line: "text" },
  run: async ({ options, json, terminal, note }) => {
    const folder = new LocalFolder(options.folder);
    const state = folder.read();
    if (state === undefined) {
      throw new CommandFailure(`Nothing runs here. Start it with: ${localHint("up", options)}`);
    }
    if (!isRunning(state.process)) note(`${state.engine} is not running any more`);
    const sources = [
      { source: "engine", path: folder.engineLog },
      ...(state.aggregator === undefined
        ? []
        : [{ source: "aggregator", path: folder.aggregatorLog }]),
    ];
    const print = (source: string, lines: readonly string[]) => {
      for (const line of lines) terminal.out(logLine(source, line, json, terminal));
    };
    const followed = sources.map(({ source, path }) => ({ source, log: new LogFollower(path) }));
    for (const { source, path } of sources) print(source, lastLines(path, options.tail));
    if (options.follow !== true) return { code: EXIT.ok };
    await interruptible(terminal, async (signal) => {
      while (!signal.aborted) {
        for (const { source, log } of followed) print(source, log.newLines());
        await terminal.timer.sleep(POLL_MS, signal);
      }
    });
    // Ctrl-C is how following ends.
    return { code: EXIT.ok };
  },
});

function logLine(source: string, line: string, json: boolean, { palette }: Terminal): string {
  if (json) return `${JSON.stringify({ source, line })}\n`;
  return `${palette.faint(`${source.padEnd(10)} |`)} ${line}\n`;
}

/** Accepts capitals too, as the Python library does. */
function readShell(text: string): Shell {
  const shell = SHELLS.find((name) => name === text.toLowerCase());
  if (shell !== undefined) return shell;
  throw new UsageError(`expected one of ${SHELLS.join(", ")}`);
}
