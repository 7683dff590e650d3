/** A gateway in front of a double with its own bill, and clients that misbehave. */

import { once } from "node:events";
import { Agent, type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { connect, type Socket } from "node:net";
import type { Gateway, GatewayOptions } from "@zae-limiter/gateway/gateway.ts";
import { createKey } from "@zae-limiter/gateway/keys.ts";
import { RateLimiter } from "@zae-limiter/limiter/index.ts";
import {
  BillingUpstream,
  type CallPlan,
  promptOf,
} from "@zae-limiter/test-support/llm/billing-upstream.ts";
import { startGateway } from "./started-gateway.ts";

export const MODEL = "gpt-4o";
export const CHAT = "/v1/chat/completions";
export const MESSAGES = "/v1/messages";
export const RESPONSES = "/v1/responses";
const LIMITS = ["rpm:100000", "tpm:1000000000"];
/** The constant time of the clock, so that nothing refills. */
const NOW_MS = 1_700_000_000_000;
/** Tokens of every prompt. */
export const INPUT = 25;

/** An answer as a client got it. */
export interface Answered {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

export class AttackedGateway {
  readonly upstream: BillingUpstream;
  readonly limiter: RateLimiter;
  readonly gateway: Gateway;
  /** A key of the entity `team-a`. */
  readonly key: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1000 });
  #plans = 0;

  private constructor(upstream: BillingUpstream, limiter: RateLimiter, rest: Rest) {
    this.upstream = upstream;
    this.limiter = limiter;
    this.gateway = rest.gateway;
    this.key = rest.key;
  }

  static async start(
    options: Partial<GatewayOptions> = {},
    limits: readonly string[] = LIMITS,
    opened?: RateLimiter,
  ): Promise<AttackedGateway> {
    const upstream = await BillingUpstream.start();
    const limiter = opened ?? (await RateLimiter.open("memory:", { clock: () => NOW_MS }));
    await limiter.repository.limits.setSystem([...limits]);
    const { key } = await createKey(limiter.repository, "team-a", undefined);
    const bounds = { bodyBytesMax: 4 * 1024 * 1024, timeoutMs: 30_000 };
    const gateway = await startGateway(limiter, upstream, { ...bounds, ...options });
    return new AttackedGateway(upstream, limiter, { gateway, key });
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    await this.gateway.stop(Promise.resolve());
    await this.limiter.close();
    await this.upstream.stop();
  }

  async keyOf(entityId: string): Promise<string> {
    return (await createKey(this.limiter.repository, entityId, undefined)).key;
  }

  /** Plans a call, and returns its name. */
  plan(plan: Partial<CallPlan> = {}): string {
    this.#plans += 1;
    const name = `plan-${this.#plans}`;
    this.upstream.plan(name, plan);
    return name;
  }

  /** Sends a call to the end of its answer. */
  call(path: string, plan: string, more: object = {}, key = this.key): Promise<Answered> {
    return this.send("POST", path, JSON.stringify({ ...bodyFor(path, plan), ...more }), { key });
  }

  /** Sends a call and hangs up when the double has come to its hold. */
  async hangUp(path: string, plan: string, more: object = {}, key = this.key): Promise<void> {
    const sent = this.#begin(path, plan, more, key);
    const closed = closeOf(sent);
    // What the gateway answers itself has no hold.
    sent.on("response", (answer) => answer.on("error", () => {}).resume());
    await Promise.race([this.upstream.reached(plan), closed]);
    sent.destroy();
    await closed;
  }

  /** Sends a call and hangs up after `bytes` of its answer, or when that has ended. */
  async hangUpAt(bytes: number, path: string, plan: string, more: object, key: string) {
    const sent = this.#begin(path, plan, more, key);
    const closed = closeOf(sent);
    let read = 0;
    if (bytes === 0) sent.on("finish", () => sent.destroy());
    sent.on("response", (answer) => {
      answer.on("error", () => {});
      answer.on("data", (data: Buffer) => {
        read += data.length;
        if (read >= bytes) sent.destroy();
      });
    });
    await closed;
  }

  #begin(path: string, plan: string, more: object, key: string): ClientRequest {
    const body = JSON.stringify({ ...bodyFor(path, plan), ...more });
    const sent = this.#request("POST", path, {
      authorization: `Bearer ${key}`,
      "content-length": String(Buffer.byteLength(body)),
    });
    sent.on("error", () => {});
    sent.end(body);
    return sent;
  }

  async send(
    method: string,
    path: string,
    body: string | Buffer = "",
    { key = this.key, headers = {} }: { key?: string; headers?: Record<string, string> } = {},
  ): Promise<Answered> {
    const auth: Record<string, string> = key === "" ? {} : { authorization: `Bearer ${key}` };
    const length = { "content-length": String(Buffer.byteLength(body)) };
    const sent = this.#request(method, path, { ...auth, ...length, ...headers });
    // A gateway may answer before it has read the body, and hang up.
    sent.on("error", () => {});
    sent.end(body);
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.on("response", resolve);
      sent.on("error", reject);
    });
    let text = "";
    for await (const chunk of answer.setEncoding("utf8")) text += chunk as string;
    return { status: answer.statusCode ?? 0, headers: answer.headers, text };
  }

  #request(method: string, path: string, headers: Record<string, string>) {
    const { hostname, port } = new URL(this.gateway.url);
    return requestHttp({ hostname, port, method, path, headers, agent: this.#agent });
  }

  /** Opens a connection to the gateway for bytes of any kind. */
  async connect(): Promise<Socket> {
    const socket = connect(Number(new URL(this.gateway.url).port), "127.0.0.1");
    socket.on("error", () => {});
    await once(socket, "connect");
    return socket;
  }

  /** Returns what was consumed of a limit. */
  async consumed(entityId = "team-a", resource = MODEL, limit = "tpm"): Promise<number> {
    const statuses = await this.limiter.status({ entityId, resource });
    const own = statuses.find((each) => each.entityId === entityId && each.limitName === limit);
    return own === undefined ? 0 : own.limit.capacity - own.available;
  }

  /** Returns what was consumed when no request is open any more. */
  async consumedAtLast(entityId = "team-a", resource = MODEL): Promise<number> {
    await this.untilIdle();
    return this.consumed(entityId, resource);
  }

  /** Resolves when the gateway has no open request but the one that asks. */
  async untilIdle(): Promise<void> {
    while ((await this.metric("zae_limiter_gateway_open_requests")) > 1) {
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  }

  /** Returns the sum of a metric over its labels. */
  async metric(name: string): Promise<number> {
    const { text } = await this.send("GET", "/metrics");
    const lines = text
      .split("\n")
      .filter((line) => line.startsWith(name) && line[name.length] !== "_");
    return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
  }

  /** Returns what the double has billed for a plan, over all arrivals. */
  billed(plan?: string): number {
    return this.upstream.bill
      .filter((each) => plan === undefined || each.plan === plan)
      .reduce((sum, { input, output }) => sum + input + output, 0);
  }
}

/** Resolves when a request has closed, with an error or without. */
function closeOf(sent: ClientRequest): Promise<void> {
  return new Promise((resolve) => sent.once("close", resolve));
}

interface Rest {
  readonly gateway: Gateway;
  readonly key: string;
}

/** Returns the body of a call whose prompt names its plan. */
export function bodyFor(path: string, plan: string, model = MODEL, input = INPUT): object {
  const prompt = promptOf(plan, input);
  if (path.endsWith("/responses") || path.endsWith("/embeddings")) return { model, input: prompt };
  return { model, max_tokens: 500, messages: [{ role: "user", content: prompt }] };
}
