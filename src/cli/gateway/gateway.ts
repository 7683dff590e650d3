/** A reverse proxy that enforces limits in front of providers of language models. */

import { once } from "node:events";
import {
  Agent,
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { Agent as SecureAgent } from "node:https";
import type { AddressInfo } from "node:net";
import type { RateLimiter } from "../../limiter/rate-limiter.ts";
import { Metering } from "../../llm/metering.ts";
import { checkLlmOptions } from "../../llm/options.ts";
import { PROMETHEUS_TYPE } from "../../otel/prometheus-meter.ts";
import { INTERNALS } from "../../repository/internals.ts";
import { Exchange, type ExchangeSetup } from "./exchange.ts";
import { GatewayMetrics } from "./gateway-metrics.ts";
import { KeyHashes, KeyLookup } from "./keys.ts";
import type { UpstreamSpec } from "./upstreams.ts";

export interface GatewayOptions {
  readonly limiter: RateLimiter;
  readonly upstreams: readonly UpstreamSpec[];
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Clients send their own keys of the provider; their hashes are the entities. */
  readonly isOpen: boolean;
  readonly maxWaitSeconds: number;
  readonly bodyBytesMax: number;
  readonly timeoutMs: number;
}

/** The status of requests whose client hung up, as other proxies write it. */
const HUNG_UP = 499;

export class Gateway {
  readonly #server: Server;
  readonly #setup: ExchangeSetup;
  readonly #limiter: RateLimiter;
  readonly #metrics: GatewayMetrics;
  /** How many exchanges have a lease or a response that has not ended. */
  #openCount = 0;
  /** Called when there is none any more. */
  readonly #onIdle: (() => void)[] = [];
  #isStopping = false;

  private constructor(options: GatewayOptions) {
    const { limiter, upstreams, isOpen, maxWaitSeconds } = options;
    const { clock } = limiter.repository[INTERNALS];
    const keys = new KeyLookup(limiter.repository, clock);
    const hashes = new KeyHashes();
    this.#limiter = limiter;
    this.#metrics = new GatewayMetrics(limiter, () => this.#openCount);
    this.#setup = {
      metering: new Metering(limiter, checkLlmOptions({ entityId: "gateway", maxWaitSeconds })),
      upstreams,
      agents: {
        "http:": new Agent({ keepAlive: true }),
        "https:": new SecureAgent({ keepAlive: true }),
      },
      entityOf: isOpen ? (key) => `sha256:${hashes.of(key)}` : (key) => keys.entityOf(key),
      nowMs: clock,
      bodyBytesMax: options.bodyBytesMax,
      timeoutMs: options.timeoutMs,
    };
    this.#server = createServer((request, response) => this.#receive(request, response));
  }

  /** Listens for requests. */
  static async start(options: GatewayOptions): Promise<Gateway> {
    const gateway = new Gateway(options);
    gateway.#server.listen(options.port, options.host);
    await once(gateway.#server, "listening");
    return gateway;
  }

  get url(): string {
    const { address, family, port } = this.#server.address() as AddressInfo;
    return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
  }

  /** Takes no more requests, lets those at work end until `deadline`, and ends all leases. */
  async stop(deadline: Promise<unknown>): Promise<void> {
    this.#isStopping = true;
    this.#server.close();
    this.#server.closeIdleConnections();
    await Promise.race([this.#untilAnswered(), deadline]);
    this.#server.closeAllConnections();
    await this.#untilAnswered();
    for (const agent of Object.values(this.#setup.agents)) agent.destroy();
    this.#metrics.stop();
  }

  async #untilAnswered(): Promise<void> {
    if (this.#openCount === 0) return;
    await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    // A client would go on using its connection.
    if (this.#isStopping) response.shouldKeepAlive = false;
    this.#openCount += 1;
    void this.#serve(request, response);
  }

  /** Never rejects: an error is the request's. */
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const closed = new Promise<void>((resolve) => response.once("close", () => resolve()));
    try {
      await this.#answer(request, response);
    } catch (error) {
      process.emitWarning(`A request failed: ${String(error)}`, { code: "ZAEL_GATEWAY_FAILED" });
      if (!response.headersSent) response.writeHead(500);
      response.end();
    }
    await closed;
    this.#metrics.answered(response.writableFinished ? response.statusCode : HUNG_UP);
    this.#openCount -= 1;
    if (this.#openCount === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  #answer(request: IncomingMessage, response: ServerResponse): Promise<void> | void {
    switch (request.url) {
      case "/healthz":
        return this.#sayHealth(response);
      case "/metrics":
        response.writeHead(200, { "content-type": PROMETHEUS_TYPE });
        return void response.end(this.#metrics.text());
      default:
        return new Exchange(this.#setup, request, response).run();
    }
  }

  async #sayHealth(response: ServerResponse): Promise<void> {
    const isAvailable = await this.#limiter.isAvailable();
    response.writeHead(isAvailable ? 200 : 503, { "content-type": "application/json" });
    response.end(JSON.stringify({ status: isAvailable ? "ok" : "store unavailable" }));
  }
}
