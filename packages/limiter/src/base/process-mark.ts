/** Identifies this process on its machine, and finds out whether another one is gone: on Linux. */

import { readFileSync, readlinkSync } from "node:fs";

/** Identifies a process on its machine, and that machine since it was booted. */
export interface ProcessMark {
  /** The boot of the machine, and its space of process ids. */
  readonly machine: string;
  readonly pid: number;
  /** When the process was started, as the machine counts it: ids are used again. */
  readonly started: string;
}

/** Places of a process in `/proc/<pid>/stat`, counted behind its name, which may have spaces. */
const STATE = 0;
const STARTED = 19;
/** States of a process that has ended and whose parent has not asked for its result yet. */
const ENDED: ReadonlySet<string | undefined> = new Set(["Z", "X", "x"]);

/** Returns the mark of this process; `undefined` where the system does not show it. */
export function ownProcess(): ProcessMark | undefined {
  const machine = machineOf();
  const started = machine === undefined ? undefined : ownStart();
  if (machine === undefined || started === undefined) return undefined;
  return { machine, pid: process.pid, started };
}

/** Reads `/proc/<pid>/stat`; throws where that cannot be done. */
type StatReader = (pid: string) => string;

const readStat: StatReader = (pid) => readFileSync(`/proc/${pid}/stat`, "utf8");

/**
 * Returns whether the process of a mark has ended. False where that cannot be known: on another
 * machine, in another space of process ids, without `/proc`, where the processes of other users are
 * hidden, or when this process can open no more files.
 */
export function isProcessGone(
  { machine, pid, started }: ProcessMark,
  own: ProcessMark,
  read: StatReader = readStat,
): boolean {
  if (machine !== own.machine) return false;
  try {
    return startedIn(read(String(pid))) !== started;
  } catch {
    return !exists(pid);
  }
}

/** Whether a process has an id. A process of another user has it too, and gets no signal. */
function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

function machineOf(): string | undefined {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return undefined;
  }
}

/** Returns when this process was started; `undefined` where the system does not show it. */
function ownStart(): string | undefined {
  try {
    return startedIn(readStat("self"));
  } catch {
    return undefined;
  }
}

/** Returns when a process was started; `undefined`: it has ended. */
function startedIn(stat: string): string | undefined {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ENDED.has(fields[STATE]) ? undefined : fields[STARTED];
}
