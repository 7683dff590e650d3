/** A server under the keeper, which ends it with this process and removes its data. */

import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const KEEPER = fileURLToPath(new URL("./keeper.mjs", import.meta.url));
const START_TIMEOUT_MS = 30_000;
const POLL_MS = 20;

export class KeptServer {
  readonly #data: string;
  #keeper: ChildProcess | undefined;

  constructor(data: string) {
    this.#data = data;
  }

  /** Starts a program, and waits until it accepts connections. */
  async start(
    [program, ...args]: readonly [string, ...string[]],
    options: Pick<SpawnOptions, "cwd" | "env" | "uid" | "gid">,
    accepts: () => Promise<boolean>,
  ): Promise<void> {
    const keeper = spawn(process.execPath, [KEEPER, program, ...args], {
      ...options,
      stdio: ["pipe", "ignore", "pipe"],
      env: { ...process.env, ...options.env, ZAEL_KEEPER_REMOVES: this.#data },
    });
    this.#keeper = keeper;
    let said = "";
    keeper.stderr?.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-2000);
    });
    const deadline = Date.now() + START_TIMEOUT_MS;
    while (!(await accepts())) {
      if (keeper.exitCode === null && Date.now() < deadline) await pause(POLL_MS);
      else throw new Error(`The server does not start: ${said.trim().slice(-500)}`);
    }
  }

  /** Ends the server by an act, such as a signal, and waits for it. */
  async end(act: () => void): Promise<void> {
    const keeper = this.#keeper;
    if (keeper === undefined || keeper.exitCode !== null) return;
    const ended = once(keeper, "exit");
    act();
    await ended;
  }

  /** Ends the server and removes its data. */
  async remove(): Promise<void> {
    await this.end(() => this.#keeper?.stdin?.end());
    rmSync(this.#data, { recursive: true, force: true });
  }
}
