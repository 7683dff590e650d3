/** The demo in a fresh store in a temporary folder, which is removed afterwards. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Random } from "@zae-limiter/limiter/base/random.ts";
import { type Clock, systemClock } from "@zae-limiter/limiter/base/time.ts";
import { InfrastructureError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { interruptible } from "../terminal/interruption.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type Shown, show } from "./show.ts";
import { noPace, realPace, StageTime } from "./stage-time.ts";

export interface DemoOptions {
  readonly random: Random;
  /** Whether a second of the demo takes a second. */
  readonly isPaced: boolean;
}

export function runDemo(terminal: Terminal, options: DemoOptions): Promise<Shown> {
  return withTemporaryStore(terminal, (url, signal) => perform(terminal, url, options, signal));
}

/** Runs the work with the address of a new store, which is gone when the work ends. */
export function withTemporaryStore<T>(
  terminal: Terminal,
  work: (url: string, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return interruptible(terminal, async (signal) => {
    const folder = await temporaryFolder();
    try {
      return await work(`sqlite:${join(folder, "limits.db")}`, signal);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
}

async function temporaryFolder(): Promise<string> {
  try {
    return await mkdtemp(join(tmpdir(), "zae-limiter-demo-"));
  } catch (cause) {
    throw new InfrastructureError(
      `The demo needs a writable temporary folder; "${tmpdir()}" is not writable. Set TMPDIR`,
      { cause },
    );
  }
}

async function perform(
  terminal: Terminal,
  url: string,
  { random, isPaced }: DemoOptions,
  signal: AbortSignal,
): Promise<Shown> {
  const time = new StageTime((terminal.clock ?? systemClock)());
  const pace = (isPaced ? realPace : noPace)(terminal.timer, signal);
  const repository = await openStage(url, time.clock);
  try {
    return await show({ terminal, repository, time, random, pace });
  } finally {
    await repository.close();
  }
}

/** Opens the file, or memory where there is no SQLite driver: the demonstration needs no file. */
export async function openStage(url: string, clock: Clock): Promise<Repository> {
  const options = { clock, namespace: "demo" };
  try {
    return await Repository.open(url, options);
  } catch (error) {
    if (!(error instanceof InfrastructureError)) throw error;
    return Repository.open("memory:", options);
  }
}
