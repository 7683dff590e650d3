/**
 * Lambda that runs code, in front of moto, which does not. Code that is uploaded goes to moto and
 * is kept here; an invocation gets a Node process of its own, which speaks the runtime API and
 * serves later invocations too, as an instance of a function does. All other requests are moto's.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import {
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { unzipSync } from "fflate";

const RUNTIME = fileURLToPath(new URL("lambda-runtime.mjs", import.meta.url));
const FUNCTION = /^\/2015-03-31\/functions\/([^/]+)\/(code|invocations)/;
const CONTAINER =
  /^\/container-(\d+)\/2018-06-01\/runtime\/invocation\/(next|\d+\/(response|error))/;

/** One process, and the invocation that it works on. */
interface Container {
  readonly child: ChildProcess;
  invocation?: { readonly id: number; readonly payload: Buffer; readonly answer: ServerResponse };
  /** The request of the process for its next invocation, while there is none. */
  waiting?: ServerResponse;
}

export class LocalLambda {
  readonly #server: Server;
  readonly #moto: URL;
  readonly #folder = mkdtempSync(join(tmpdir(), "zae-limiter-lambda-"));
  readonly #containers: Container[] = [];
  #code = "";
  #versions = 0;
  #invocations = 0;

  private constructor(moto: string) {
    this.#moto = new URL(moto);
    this.#server = createServer((incoming, answer) => void this.#receive(incoming, answer));
  }

  static async start(moto: string): Promise<LocalLambda> {
    const lambda = new LocalLambda(moto);
    lambda.#server.listen(0, "127.0.0.1");
    await once(lambda.#server, "listening");
    return lambda;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** How many processes were started. */
  get started(): number {
    return this.#containers.length;
  }

  async stop(): Promise<void> {
    for (const { child } of this.#containers) child.kill("SIGKILL");
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #receive(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const { url = "" } = incoming;
    const [, number, , outcome] = CONTAINER.exec(url) ?? [];
    if (number !== undefined) return this.#runtime(Number(number), outcome, body, answer);
    const [, , part] = FUNCTION.exec(url) ?? [];
    if (part === "invocations") return this.#invoke(body, answer);
    if (part === "code") this.#keep(body);
    this.#forward(incoming, body, answer);
  }

  /** Unpacks what is uploaded; invocations from now on run it. */
  #keep(body: Buffer): void {
    const { ZipFile } = JSON.parse(body.toString("utf8")) as { ZipFile: string };
    this.#versions += 1;
    const folder = join(this.#folder, String(this.#versions));
    mkdirSync(folder);
    this.#code = join(folder, "index.mjs");
    const { "index.mjs": code } = unzipSync(Buffer.from(ZipFile, "base64"));
    writeFileSync(this.#code, code as Uint8Array);
  }

  #invoke(payload: Buffer, answer: ServerResponse): void {
    this.#invocations += 1;
    const invocation = { id: this.#invocations, payload, answer };
    const idle = this.#containers.find(({ waiting }) => waiting !== undefined);
    if (idle === undefined) this.#start(invocation);
    else this.#hand(idle, invocation);
  }

  #start(invocation: NonNullable<Container["invocation"]>): void {
    const number = this.#containers.length;
    const api = `${this.endpoint.replace("http://", "")}/container-${number}`;
    const child = spawn(process.execPath, [RUNTIME, pathToFileURL(this.#code).href], {
      env: {
        AWS_LAMBDA_RUNTIME_API: api,
        AWS_REGION: "us-east-1",
        AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: "true",
      },
      stdio: ["ignore", "inherit", "inherit"],
    });
    const container: Container = { child, invocation };
    this.#containers.push(container);
    // As Lambda answers for an instance that is gone.
    child.once("exit", (code, signal) => {
      const reason = `RequestId: ${number} Error: Runtime exited with error: ${signal ?? code}`;
      const text = JSON.stringify({ errorType: "Runtime.ExitError", errorMessage: reason });
      container.invocation?.answer
        .writeHead(200, { "x-amz-function-error": "Unhandled" })
        .end(text);
      delete container.invocation;
      delete container.waiting;
    });
  }

  #hand(container: Container, invocation: NonNullable<Container["invocation"]>): void {
    const { waiting } = container;
    delete container.waiting;
    container.invocation = invocation;
    const id = String(invocation.id);
    waiting?.writeHead(200, { "lambda-runtime-aws-request-id": id }).end(invocation.payload);
  }

  /** A process asks for an invocation, or has answered one. */
  #runtime(
    number: number,
    outcome: string | undefined,
    body: Buffer,
    answer: ServerResponse,
  ): void {
    const container = this.#containers[number] as Container;
    const { invocation } = container;
    if (outcome === undefined) {
      container.waiting = answer;
      if (invocation !== undefined) this.#hand(container, invocation);
      return;
    }
    delete container.invocation;
    answer.writeHead(202).end();
    const failed = outcome === "error" ? { "x-amz-function-error": "Unhandled" } : {};
    invocation?.answer.writeHead(200, failed).end(body);
  }

  #forward({ method, url, headers }: IncomingMessage, body: Buffer, answer: ServerResponse): void {
    const { hostname, port } = this.#moto;
    const forwarded = request({ hostname, port, method, path: url, headers }, (reply) => {
      answer.writeHead(reply.statusCode ?? 500, reply.headers);
      reply.pipe(answer);
    });
    forwarded.on("error", () => answer.destroy());
    forwarded.end(body);
  }
}
