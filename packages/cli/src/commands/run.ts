/** `run`: consumes, runs a command, and refunds everything if the command fails. */

import { constants } from "node:os";
import type { JsonValue } from "@zae-limiter/limiter/domain/json.ts";
import { type Call, CommandFailure, leaf, UsageError } from "../frame/command.ts";
import { EXIT } from "../frame/exit-codes.ts";
import {
  CONSUME_OPTIONS,
  type ConsumeOptions,
  decide,
  refused,
  TARGET_ARGUMENTS,
} from "../store/consume.ts";
import { interruptible } from "../terminal/interruption.ts";
import { finiteOrNull } from "../terminal/json.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** As in shells: not found, and found but not executable. */
const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;
const SIGNAL_BASE = 128;

export const run = leaf<ConsumeOptions>({
  name: "run",
  summary: "consumes, runs a command, refunds if it fails",
  details:
    "The exit code is that of the command. When a limit has too little, the command does not run and the " +
    "exit code is 3. Slots are held until the command has ended: with -c parallel=1, as many run at " +
    "once as there are slots. When the command fails, its tokens are refunded. Signals are passed on. The " +
    "output of the command is its own; with --json, the report goes to stderr.",
  arguments: [
    ...TARGET_ARGUMENTS,
    { name: "<command...>", text: "the command and its arguments, after --" },
  ],
  options: CONSUME_OPTIONS,
  store: "change",
  examples: [
    "run key-1 gpt-4 -c rpm=1 --wait 30 -- curl -sf https://example.com/",
    "run nightly render -l 'parallel:2 concurrent' -c parallel=1 -- ./render.sh",
  ],
  json: {
    granted: "boolean",
    entity_id: "text",
    resource: "text",
    exit_code: "number",
    given_back: "boolean",
    retry_after_seconds: "number | null",
  },
  run: async (call) => {
    const { args, terminal, progress } = call;
    const [entityId = "", resource = "", command, ...rest] = args;
    if (command === undefined) throw new UsageError("expected a command after --");
    const lease = await interruptible(terminal, async (signal) => {
      const decision = await decide(call, signal);
      progress("");
      return decision;
    });
    const target = { entity_id: entityId, resource };
    if (!lease.granted) {
      const { line, retryAfterSeconds } = refused(lease);
      if (!call.json) throw new CommandFailure(`Not run: ${line}`, EXIT.limitExceeded);
      return reported(call, EXIT.limitExceeded, {
        granted: false,
        ...target,
        exit_code: EXIT.limitExceeded,
        given_back: false,
        retry_after_seconds: finiteOrNull(retryAfterSeconds),
      });
    }
    const code = await exitCodeOf(command, rest, terminal);
    const failed = code !== 0;
    await (failed ? lease.lease.rollback() : lease.lease.commit());
    if (failed && !call.json) call.note(`The command ended with ${code}; everything was refunded`);
    return reported(call, code, {
      granted: true,
      ...target,
      exit_code: code,
      given_back: failed,
      retry_after_seconds: 0,
    });
  },
});

/** Prints a report to stderr, because stdout belongs to the command. */
function reported({ json, terminal }: Call<ConsumeOptions>, code: number, report: JsonValue) {
  if (json) terminal.err(`${JSON.stringify(report)}\n`);
  return { code };
}

/** Runs the command on this terminal until its end. */
async function exitCodeOf(
  command: string,
  args: readonly string[],
  terminal: Terminal,
): Promise<number> {
  const { spawn } = await import("node:child_process");
  const child = spawn(command, [...args], { stdio: "inherit" });
  const stop = terminal.onInterruption((interruption) => {
    if (interruption === "SIGPIPE") return;
    // A terminal sends Ctrl-C to the child too; it must not get the signal twice.
    if (interruption === "SIGINT" && process.stdin.isTTY) return;
    child.kill(interruption);
  });
  try {
    return await new Promise<number>((resolve) => {
      child.once("error", (error: NodeJS.ErrnoException) => {
        terminal.err(
          `${terminal.errPalette.bad("zae-limiter:")} ${spawnFailure(command, error)}\n`,
        );
        resolve(error.code === "ENOENT" ? NOT_FOUND : NOT_EXECUTABLE);
      });
      child.once("close", (code, signal) => {
        resolve(code ?? SIGNAL_BASE + (signal === null ? 0 : constants.signals[signal]));
      });
    });
  } finally {
    stop();
  }
}

function spawnFailure(command: string, error: NodeJS.ErrnoException): string {
  const why = error.code === "ENOENT" ? "it was not found" : error.message;
  return `The command "${command}" could not be run: ${why}`;
}
