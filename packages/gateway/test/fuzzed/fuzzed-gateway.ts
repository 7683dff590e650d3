/** A gateway in a process of its own, with clients that send hostile bytes. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createKey } from "@zae-limiter/gateway/keys.ts";
import { Repository } from "@zae-limiter/limiter/index.ts";
import { builtSources } from "@zae-limiter/test-support/build.ts";
import { BillingUpstream } from "@zae-limiter/test-support/llm/billing-upstream.ts";
import { bodyFor } from "../attacked-gateway.ts";
import type { Hostile } from "./hostile-requests.ts";

const MEASURE = fileURLToPath(new URL("measure.mjs", import.meta.url));
export const PLAN = "plan-ok";

/** The resources that the process of a gateway has used so far. */
export interface Cost {
  readonly cpuUs: number;
  readonly heapBytes: number;
  readonly rssBytes: number;
  /** The longest time in which it did nothing else since it was asked before. */
  readonly delayNs: number;
}

export class FuzzedGateway {
  readonly upstream: BillingUpstream;
  readonly key: string;
  readonly #child: ChildProcess;
  readonly #url: URL;
  readonly #folder: string;
  #errors = "";

  private constructor(upstream: BillingUpstream, key: string, folder: string, started: Started) {
    this.upstream = upstream;
    this.key = key;
    this.#folder = folder;
    this.#child = started.child;
    this.#url = new URL(started.url);
    started.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#errors += text;
    });
  }

  static async start(): Promise<FuzzedGateway> {
    const folder = mkdtempSync(join(tmpdir(), "zae-limiter-fuzz-"));
    const store = `sqlite:${join(folder, "limits.db")}`;
    const repository = await Repository.open(store);
    await repository.limits.setSystem(["rpm:1000000000", "tpm:1000000000000"]);
    const { key } = await createKey(repository, "team-a", undefined);
    await repository.close();
    const upstream = await BillingUpstream.start();
    upstream.plan(PLAN, { text: 2 });
    const child = spawn(
      process.execPath,
      ["--expose-gc", "--import", MEASURE, builtSources().binary, "gateway"].concat([
        "--upstream",
        `${upstream.url}/v1`,
        "--port",
        "0",
        "--json",
      ]),
      {
        env: { PATH: process.env.PATH ?? "", ZAEL_URL: store, OPENAI_API_KEY: "sk-real" },
        stdio: ["ignore", "pipe", "pipe", "ipc"],
      },
    );
    const [line] = (await once(child.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
    const { url } = JSON.parse(line.toString()) as { url: string };
    return new FuzzedGateway(upstream, key, folder, { child, url });
  }

  /** Lines of warnings that the process has written. */
  get warnings(): string[] {
    return this.#errors.split("\n").filter((line) => line.includes("Warning"));
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, "close");
    this.#child.kill("SIGKILL");
    await ended;
    await this.upstream.stop();
    rmSync(this.#folder, { recursive: true });
  }

  /** Returns how many requests are open besides the one that asks. */
  async openRequests(): Promise<number> {
    const text = await (await fetch(new URL("/metrics", this.#url))).text();
    const line = text.split("\n").find((each) => each.startsWith("zae_limiter_gateway_open_req"));
    return Number(line?.slice(line.lastIndexOf(" "))) - 1;
  }

  async cost(): Promise<Cost> {
    const answered = once(this.#child, "message");
    this.#child.send("measure");
    const [cost] = (await answered) as [Cost];
    return cost;
  }

  /** Sends a valid call with a prompt of about `promptBytes`; returns the status. */
  async call(promptBytes = 100): Promise<number> {
    const body = bodyFor("/v1/chat/completions", PLAN, "gpt-4o", Math.ceil(promptBytes / 4));
    const answer = await fetch(new URL("/v1/chat/completions", this.#url), {
      method: "POST",
      headers: { authorization: `Bearer ${this.key}` },
      body: JSON.stringify(body),
    });
    await answer.arrayBuffer();
    return answer.status;
  }

  /** Sends bytes on a connection of their own; returns the status of the first answer, or 0. */
  send({ bytes, isWhole }: Hostile): Promise<number> {
    return new Promise((resolve) => {
      const socket = connect(Number(this.#url.port), this.#url.hostname);
      let status = 0;
      socket.on("error", () => {});
      socket.on("close", () => resolve(status));
      socket.on("data", (data) => {
        if (status === 0) status = Number(data.toString("latin1").slice(9, 12));
        socket.destroy();
      });
      // A request without an end would wait for its rest.
      if (isWhole) socket.write(bytes);
      else socket.end(bytes);
    });
  }
}

interface Started {
  readonly child: ChildProcess;
  readonly url: string;
}
