/** A demonstration from nothing: a fresh store in a temporary folder, which is gone afterwards. */

import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../domain/clock.ts";
import { InfrastructureError } from "../../domain/errors.ts";
import { CLIENT_VERSION } from "../../domain/version.ts";
import { Repository } from "../../repository/repository.ts";
import { exitCodeOf } from "../interruption.ts";
import type { Terminal } from "../terminal.ts";
import type { Act } from "./act.ts";
import { showLevels } from "./levels.ts";
import { Narrator } from "./narrator.ts";
import { showTraffic } from "./traffic.ts";

const ACTS: readonly Act[] = [showLevels, showTraffic];

export async function runDemo(terminal: Terminal): Promise<void> {
  const folder = await temporaryFolder();
  // Ctrl-C ends a process without its `finally`, and would leave the folder behind.
  const stop = terminal.onInterruption((interruption) => {
    if (interruption === "SIGPIPE") return;
    rmSync(folder, { recursive: true, force: true });
    process.exit(exitCodeOf(interruption));
  });
  try {
    await perform(`sqlite:${join(folder, "limits.db")}`, new Narrator(terminal));
  } finally {
    stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function temporaryFolder(): Promise<string> {
  try {
    return await mkdtemp(join(tmpdir(), "zae-limiter-demo-"));
  } catch (cause) {
    throw new InfrastructureError(
      `The demonstration needs a folder it can write to, and "${tmpdir()}" is none: set TMPDIR`,
      { cause },
    );
  }
}

async function perform(url: string, narrator: Narrator): Promise<void> {
  narrator.say(`zae-limiter ${CLIENT_VERSION}, on a temporary SQLite file`);
  let nowMs = systemClock();
  const repository = await Repository.open(url, { clock: () => nowMs });
  const pass = (seconds: number) => {
    nowMs += Math.ceil(seconds * 1000);
  };
  try {
    for (const act of ACTS) await act({ repository, narrator, pass });
  } finally {
    await repository.close();
  }
}
