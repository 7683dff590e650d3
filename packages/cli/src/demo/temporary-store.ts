/** A store in a temporary folder, which is removed at the end. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "@zae-limiter/limiter/base/time.ts";
import { InfrastructureError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { interruptible } from "../terminal/interruption.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** Runs the work with the address of a new store, which is gone when the work ends. */
export function withTemporaryStore<T>(
  terminal: Terminal,
  work: (url: string, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return interruptible(terminal, async (signal) => {
    const folder = await mkdtemp(join(tmpdir(), "zae-limiter-demo-")).catch((cause: unknown) => {
      const said = `The demo needs a writable temporary folder; "${tmpdir()}" is not writable`;
      throw new InfrastructureError(`${said}. Set TMPDIR`, { cause });
    });
    try {
      return await work(`sqlite:${join(folder, "limits.db")}`, signal);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
}

/** Opens the file, or memory where there is no SQLite driver: the demo needs no file. */
export async function openTemporary(url: string, clock: Clock): Promise<Repository> {
  const options = { clock, namespace: "demo" };
  try {
    return await Repository.open(url, options);
  } catch (error) {
    if (!(error instanceof InfrastructureError)) throw error;
    return Repository.open("memory:", options);
  }
}
