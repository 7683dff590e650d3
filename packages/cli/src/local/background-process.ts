/** Processes that go on when the command that started them has ended. */

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";

const POLL_MS = 50;
const STOP_MS = 10_000;
/** Only the user may read and write it. */
const PRIVATE = 0o600;
/** Process 1 and negative numbers, which mean groups of processes, are never ours. */
const PID_MIN = 2;

/** A process that was started, distinguished from a later one with the same number. */
export interface BackgroundProcess {
  readonly pid: number;
  /** The time it began, as the system reports it; absent where it does not. */
  readonly stamp?: string;
  /** Words of its command line: a process without them is not the one that was started. */
  readonly words?: readonly string[];
}

/** Returns the process that this code runs in. */
export function thisProcess(): BackgroundProcess {
  return identified(process.pid);
}

/** Returns a process by its number and the time it began. */
export function identified(pid: number): BackgroundProcess {
  const stamp = stampOf(pid);
  return stamp === undefined ? { pid } : { pid, stamp };
}

/** Starts a command of its own; what it says goes to the file. */
export async function startInBackground(
  command: string,
  args: readonly string[],
  log: string,
  cwd: string,
  owner: { readonly uid?: number; readonly gid?: number } = {},
): Promise<BackgroundProcess> {
  const file = openSync(log, "a", PRIVATE);
  try {
    const child = spawn(command, args, {
      cwd,
      detached: true,
      stdio: ["ignore", file, file],
      windowsHide: true,
      ...owner,
    });
    await once(child, "spawn");
    child.unref();
    return identified(child.pid as number);
  } finally {
    closeSync(file);
  }
}

/**
 * Returns whether the same process still runs under this number: the time it began, where the
 * system reports it, and the words of its command line must match.
 */
export function isRunning({ pid, stamp, words = [] }: BackgroundProcess): boolean {
  if (!Number.isSafeInteger(pid) || pid < PID_MIN) return false;
  try {
    process.kill(pid, 0);
  } catch (error) {
    // A process of another user, then; the stamp decides whether it is ours after all.
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  const now = stampOf(pid);
  if (now === "ended" || now !== stamp) return false;
  const line = commandLineOf(pid);
  return line === undefined || words.every((word) => line.includes(word));
}

/** Ends a process, at first with a signal that it can act on; one that is gone is left alone. */
export async function stop(
  background: BackgroundProcess,
  timer: Timer,
  signal: NodeJS.Signals = "SIGTERM",
): Promise<void> {
  await end(background, signal, timer);
  await kill(background, timer);
}

/** Kills a process that has nothing to clean up. */
export async function kill(background: BackgroundProcess, timer: Timer): Promise<void> {
  await end(background, "SIGKILL", timer);
}

async function end(
  background: BackgroundProcess,
  signal: NodeJS.Signals,
  timer: Timer,
): Promise<void> {
  if (!isRunning(background)) return;
  send(background.pid, signal);
  const startedMs = timer.nowMs();
  while (isRunning(background) && timer.nowMs() - startedMs < STOP_MS) await timer.sleep(POLL_MS);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Returns when the process with this number began; `ended` when it only waits to be collected. */
function stampOf(pid: number): string | undefined {
  if (process.platform === "linux") return linuxStampOf(pid);
  if (process.platform === "win32") return undefined;
  try {
    const [state = "", ...began] = execFileSync("ps", ["-o", "stat=,lstart=", "-p", `${pid}`], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    })
      .trim()
      .split(/\s+/);
    return state.startsWith("Z") ? "ended" : began.join(" ");
  } catch {
    return undefined;
  }
}

function linuxStampOf(pid: number): string | undefined {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name comes second, in parentheses, and may have spaces in it.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? "ended" : `${boot} ${fields[19]}`;
  } catch {
    return undefined;
  }
}

/** Returns the words of a command line; `undefined` where the system does not report them. */
function commandLineOf(pid: number): readonly string[] | undefined {
  if (process.platform === "win32") return undefined;
  try {
    if (process.platform === "linux") {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    }
    return execFileSync("ps", ["-ww", "-o", "command=", "-p", `${pid}`], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).split(/\s+/);
  } catch {
    return [];
  }
}
