/** A child process that runs one of the scripts in this folder and answers in lines. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

/** The scripts. They are plain JavaScript, and are given the built sources as an argument. */
export const SCRIPTS = {
  count: new URL("./count.mjs", import.meta.url),
  open: new URL("./open.mjs", import.meta.url),
  put: new URL("./put.mjs", import.meta.url),
  take: new URL("../contention/take.mjs", import.meta.url),
  tour: new URL("./tour.mjs", import.meta.url),
} as const;

export class Child {
  readonly lines: AsyncIterableIterator<string>;
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #exit: Promise<unknown>;
  #complaints = "";

  constructor(script: URL, args: readonly string[], node: string = process.execPath) {
    this.#process = spawn(node, [fileURLToPath(script), ...args], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#process.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#complaints += text;
    });
    this.#exit = once(this.#process, "exit");
    this.lines = createInterface({ input: this.#process.stdout })[Symbol.asyncIterator]();
  }

  /** The text that it wrote to stderr. */
  get complaints(): string {
    return this.#complaints;
  }

  /** The next line, read as JSON. */
  async answer(): Promise<unknown> {
    const { value, done } = await this.lines.next();
    if (done === true) throw new Error(`The child ended early: ${this.#complaints}`);
    return JSON.parse(value);
  }

  /** Lets a child go on that waits for it. */
  go(): void {
    this.#process.stdin.write("go\n");
  }

  /** Lets a child go on that was stopped, or has stopped itself. */
  goOn(): void {
    this.signal("SIGCONT");
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }

  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.#exit;
  }

  async ended(): Promise<void> {
    await this.#exit;
  }
}
