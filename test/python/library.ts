/**
 * The Python library in a process of its own: a cached venv per release, and calls as JSON lines.
 */

import {
  type ChildProcessWithoutNullStreams,
  type ExecFileSyncOptions,
  execFileSync,
  spawn,
} from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** The releases that are tested: the oldest with our layout, and the one that we keep up with. */
export const RELEASES = ["0.10.3", "0.17.0"] as const;
export type Release = (typeof RELEASES)[number];

const DRIVER = fileURLToPath(new URL("./driver.py", import.meta.url));
/** Outside of the repository, so that a fresh clone finds what an earlier one has installed. */
const CACHE =
  process.env["ZAEL_PYTHON_VENVS"] ?? join(homedir(), ".cache", "zae-limiter", "python-venvs");

const ENVIRONMENT = {
  ...process.env,
  AWS_ACCESS_KEY_ID: "test",
  AWS_SECRET_ACCESS_KEY: "test",
  AWS_DEFAULT_REGION: "us-east-1",
  PYTHONWARNINGS: "ignore",
};

/** An error of the Python library. */
export class PythonError extends Error {
  constructor(
    readonly type: string,
    message: string,
  ) {
    super(`${type}: ${message}`);
  }
}

/** The interpreter of a release, which `setup.ts` has installed. */
function interpreterOf(release: Release): string {
  return join(CACHE, `v${release}`, "bin", "python");
}

/** Installs a release, unless an earlier run has. Not for workers, which would do it at once. */
export function install(release: Release): void {
  const venv = join(CACHE, `v${release}`);
  const python = interpreterOf(release);
  if (existsSync(python) && existsSync(join(venv, ".installed"))) return;
  rmSync(venv, { recursive: true, force: true });
  mkdirSync(CACHE, { recursive: true });
  const quiet: ExecFileSyncOptions = { stdio: ["ignore", "ignore", "pipe"] };
  execFileSync("python3", ["-m", "venv", venv], quiet);
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
  execFileSync(python, [...pip, `zae-limiter==${release}`], quiet);
  mkdirSync(join(venv, ".installed"));
}

/** Runs the command of a release to its end; what it printed. Throws when it fails. */
export function pythonCommand(release: Release, args: readonly string[]): string {
  const command = join(dirname(interpreterOf(release)), "zae-limiter");
  return execFileSync(command, args, { env: ENVIRONMENT, encoding: "utf8" });
}

/** A limit as the driver takes it; refills over a minute unless said otherwise. */
export function limit(name: string, capacity: number, periodSeconds = 60) {
  const refill = { refill_amount: capacity, refill_period_seconds: periodSeconds };
  return { $limit: { name, capacity, ...refill } };
}

interface Reply {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { readonly type: string; readonly message: string };
}

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A table, for the parts of the library that are no client. */
export interface Place {
  readonly table: string;
  readonly endpoint: string;
}

interface Aggregated {
  readonly snapshots_updated: number;
  readonly errors: readonly string[];
}

interface Provisioned {
  readonly changes: readonly { action: string; level: string; target: string | null }[];
  readonly errors?: readonly string[];
}

interface AcquireOptions {
  readonly adjust?: object;
  readonly how?: "commit" | "rollback";
  readonly limits?: readonly unknown[];
  /** Amounts of further resources, from 0.17 on. */
  readonly also?: Readonly<Record<string, object>>;
}

/** One client of the Python library. */
export class PythonClient {
  readonly release: Release;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #waiting = new Map<number, Waiting>();
  readonly #said: string[] = [];
  #next = 1;

  constructor(release: Release) {
    this.release = release;
    this.#child = spawn(interpreterOf(release), [DRIVER], {
      env: ENVIRONMENT,
    });
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => this.#said.push(text));
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.#answer(line));
    this.#child.on("exit", () => {
      for (const { reject } of this.#waiting.values()) {
        reject(new Error(`Python ended: ${this.#said.join("").slice(-2000)}`));
      }
    });
  }

  /** Opens a table. Python creates no stack here: the table is there, and local. */
  async open(stack: string, endpoint: string, namespace: string, connect = false): Promise<void> {
    const options = connect ? { connect } : { auto_update: false };
    await this.#send({ do: "open", stack, endpoint, namespace, ...options });
  }

  /** Calls a method of its repository. */
  repo<Result = unknown>(
    method: string,
    args: readonly unknown[] = [],
    kwargs: object = {},
  ): Promise<Result> {
    return this.#send({ do: "call", on: "repo", method, args, kwargs }) as Promise<Result>;
  }

  /** Calls a method of its limiter. */
  limiter<Result = unknown>(method: string, kwargs: object): Promise<Result> {
    return this.#send({ do: "call", on: "limiter", method, kwargs }) as Promise<Result>;
  }

  /** Acquires and ends the lease at once. */
  async acquire(
    entity: string,
    resource: string,
    consume: object,
    options: AcquireOptions = {},
  ): Promise<void> {
    const { adjust, how = "commit", ...more } = options;
    const request = { do: "acquire", entity, resource, consume, ...more };
    const { lease } = (await this.#send(request)) as { lease: number };
    if (adjust !== undefined) await this.#send({ do: "adjust", lease, amounts: adjust });
    await this.#send({ do: "end", lease, how });
  }

  /** Whether an acquire was granted; any other error than a refusal is thrown. */
  async grants(entity: string, resource: string, consume: object): Promise<boolean> {
    try {
      await this.acquire(entity, resource, consume);
      return true;
    } catch (error) {
      if (error instanceof PythonError && error.type === "RateLimitExceeded") return false;
      throw error;
    }
  }

  /** Calls the Lambda handler of its aggregator with records of a stream. */
  aggregate(place: Place, records: readonly object[]): Promise<Aggregated> {
    return this.#send({ do: "aggregate", ...place, records }) as Promise<Aggregated>;
  }

  /** Calls the Lambda handler that its commands `limits plan`, `diff` and `apply` call. */
  provision(
    place: Place,
    namespaceId: string,
    action: "plan" | "apply",
    manifest: object,
  ): Promise<Provisioned> {
    const request = { do: "provision", ...place, namespace_id: namespaceId, action, manifest };
    return this.#send(request) as Promise<Provisioned>;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.stdin.end();
    await ended;
  }

  #send(request: object): Promise<unknown> {
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.stdin.write(`${JSON.stringify({ id, ...request })}\n`);
    });
  }

  #answer(line: string): void {
    const { id, result, error } = JSON.parse(line) as Reply;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(new PythonError(error.type, error.message));
  }
}
