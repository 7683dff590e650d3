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
  const started = machine === undefined ? undefined : startedAt("self");
  if (machine === undefined || started === undefined) return undefined;
  return { machine, pid: process.pid, started };
}

/**
 * Returns whether the process of a mark has ended. False where that cannot be known: on another
 * machine, in another space of process ids, or without `/proc`.
 */
export function isProcessGone({ machine, pid, started }: ProcessMark, own: ProcessMark): boolean {
  return machine === own.machine && startedAt(String(pid)) !== started;
}

function machineOf(): string | undefined {
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return undefined;
  }
}

/** Returns when a process was started; `undefined` where there is none, or it has ended. */
function startedAt(pid: string): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return ENDED.has(fields[STATE]) ? undefined : fields[STARTED];
  } catch {
    return undefined;
  }
}
