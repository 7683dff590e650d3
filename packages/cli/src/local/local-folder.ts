/** The folder with the state, the logs and the data of a local store, between two commands. */

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { CommandFailure } from "../frame/command.ts";
import { type BackgroundProcess, isRunning } from "./background-process.ts";
import { type LocalState, readState } from "./local-state.ts";

export const LOCAL_FOLDER = join(".zae-limiter", "local");

/** Only the user may see what is in it. */
const PRIVATE_FILE = 0o600;
const PRIVATE_FOLDER = 0o700;

export class LocalFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = resolve(path);
  }

  get engineLog(): string {
    return join(this.path, "engine.log");
  }

  get aggregatorLog(): string {
    return join(this.path, "aggregator.log");
  }

  /** Returns the folder of the data that a store keeps from one start to the next. */
  dataOf(store: string): string {
    return join(this.path, store);
  }

  read(): LocalState | undefined {
    try {
      return readState(JSON.parse(readFileSync(this.#state, "utf8")));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw new CommandFailure(
        `Cannot read ${this.#state}: ${(error as Error).message}. Delete it if you do not need it`,
        1,
        { cause: error },
      );
    }
  }

  /** Writes in one step, so that other processes never read half a file. */
  write(state: LocalState): void {
    const draft = `${this.#state}.new`;
    writeFileSync(draft, `${JSON.stringify(state, null, 2)}\n`, { mode: PRIVATE_FILE });
    renameSync(draft, this.#state);
  }

  forget(): void {
    rmSync(this.#state, { force: true });
  }

  /** Starts new logs for a new server. */
  renewLogs(): void {
    for (const log of [this.engineLog, this.aggregatorLog]) rmSync(log, { force: true });
  }

  /** Runs the work while no other command starts or stops something here. */
  async exclusively<T>(self: BackgroundProcess, work: () => Promise<T>): Promise<T> {
    mkdirSync(dirname(this.path), { recursive: true });
    mkdirSync(this.path, { recursive: true, mode: PRIVATE_FOLDER });
    this.#lock(self);
    try {
      return await work();
    } finally {
      rmSync(this.#lockFile, { force: true });
    }
  }

  #lock(self: BackgroundProcess): void {
    if (this.#tryLock(self)) return;
    if (!this.#isLocked()) {
      // The process that made it has ended without removing it.
      rmSync(this.#lockFile, { force: true });
      if (this.#tryLock(self)) return;
    }
    throw new CommandFailure(
      "Another `zae-limiter local` command runs in this folder; wait until it ends",
    );
  }

  /** Links the lock into place with its contents, so that it is never seen empty. */
  #tryLock(self: BackgroundProcess): boolean {
    const draft = `${this.#lockFile}.${self.pid}`;
    writeFileSync(draft, JSON.stringify(self), { mode: PRIVATE_FILE });
    try {
      linkSync(draft, this.#lockFile);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw error;
    } finally {
      rmSync(draft, { force: true });
    }
  }

  #isLocked(): boolean {
    try {
      return isRunning(JSON.parse(readFileSync(this.#lockFile, "utf8")) as BackgroundProcess);
    } catch {
      return false;
    }
  }

  get #state(): string {
    return join(this.path, "state.json");
  }

  get #lockFile(): string {
    return join(this.path, "lock.json");
  }
}
