/**
 * The command as it is shipped, on moto. In a process of its own it has neither
 * credentials nor a region; in this one it costs a tenth of that.
 */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { collect, type Ran } from "@zae-limiter/test-support/binary.ts";
import { type Circumstances, cli } from "@zae-limiter/test-support/captured.ts";
import type { RunningAws } from "./aws.ts";

const ANONYMOUS = {
  PATH: process.env.PATH ?? "",
  AWS_CONFIG_FILE: "/nowhere",
  AWS_SHARED_CREDENTIALS_FILE: "/nowhere",
  AWS_EC2_METADATA_DISABLED: "true",
  AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
};

export class Command {
  /** The folder in which the command runs. */
  readonly folder = mkdtempSync(join(tmpdir(), "zae-limiter-stack-"));
  /** The entry point of the package, to import. */
  readonly index: string;
  readonly #build: string;
  readonly #binary: string;
  readonly #place: readonly string[];
  readonly #endpoint: string;
  readonly #region: string;

  /** Test files share one moto; a region of its own keeps the stacks of each apart. */
  constructor({ endpoint, build }: RunningAws, region: string) {
    this.index = pathToFileURL(join(build, "package", "index.js")).href;
    this.#build = build;
    this.#binary = join(build, "package", "cli", "main.js");
    this.#place = ["--endpoint-url", endpoint, "--region", region];
    this.#endpoint = endpoint;
    this.#region = region;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Without moto. */
  run(...args: string[]): Promise<Ran> {
    const env = ANONYMOUS;
    const child = spawn(process.execPath, [this.#binary, ...args], { env, cwd: this.folder });
    child.stdin.end();
    return collect(child);
  }

  /** On moto, in a process of its own. */
  spawned(...args: string[]): Promise<Ran> {
    return this.run(...args, ...this.#place);
  }

  /** On moto, in this process. */
  async tries(...args: string[]): Promise<Ran> {
    return this.watched({}, ...args);
  }

  /** Runs a command under circumstances. */
  async watched(circumstances: Circumstances, ...args: string[]): Promise<Ran> {
    const { href } = pathToFileURL(join(this.#build, "cli", "frame", "program.js"));
    const { runProgram: program } = (await import(
      href
    )) as typeof import("@zae-limiter/cli/frame/program.ts");
    return cli([...args, ...this.#place], { ...circumstances, program });
  }

  /** On moto; it must succeed. */
  async on(...args: string[]): Promise<string> {
    const { code, out, err } = await this.tries(...args);
    if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${err}`);
    return out;
  }

  async json<T>(...args: string[]): Promise<T> {
    return JSON.parse(await this.on(...args, "--json")) as T;
  }

  /** Asks AWS itself: a path of Lambda, or an operation of DynamoDB. */
  async lambda<T>(functionName: string): Promise<T> {
    return this.#ask("lambda", `/2015-03-31/functions/${functionName}`);
  }

  async dynamodb<T>(operation: string, body: object): Promise<T> {
    const target = { "x-amz-target": `DynamoDB_20120810.${operation}` };
    return this.#ask("dynamodb", "/", { headers: target, body: JSON.stringify(body) });
  }

  /** The answer is XML. */
  async query(service: string, parameters: Readonly<Record<string, string>>): Promise<string> {
    const text = new URLSearchParams(parameters).toString();
    const type = { "content-type": "application/x-www-form-urlencoded" };
    return (await this.#send(service, "/", { headers: type, body: text })).text();
  }

  async #ask<T>(service: string, path: string, init: { headers?: object; body?: string } = {}) {
    return (await this.#send(service, path, init)).json() as Promise<T>;
  }

  #send(
    service: string,
    path: string,
    { headers = {}, body }: { headers?: object; body?: string },
  ) {
    // moto finds service and region by it.
    const scope = `local/20260101/${this.#region}/${service}/aws4_request`;
    return fetch(`${this.#endpoint}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `AWS4-HMAC-SHA256 Credential=${scope}`, ...headers },
      ...(body === undefined ? {} : { body }),
    });
  }
}
