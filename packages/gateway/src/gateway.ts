/** A reverse proxy that enforces limits in front of providers of language models. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { TextMemo } from "@zae-limiter/limiter/base/text-memo.ts";
import { Metering } from "@zae-limiter/limiter/llm/metering.ts";
import { checkLlmOptions } from "@zae-limiter/limiter/llm/options.ts";
import { errorAnswer } from "@zae-limiter/limiter/llm/refusal-answer.ts";
import { PROMETHEUS_TYPE } from "@zae-limiter/limiter/otel/prometheus-meter.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { AccessLog } from "./access-log.ts";
import { Exchange, type ExchangeSetup } from "./exchange.ts";
import { Forwarder } from "./forwarder.ts";
import { GatewayMetrics } from "./gateway-metrics.ts";
import { hashOf, KeyLookup } from "./keys.ts";
import { routes } from "./routes.ts";
import { send } from "./send.ts";
import { StoreWatch } from "./store-watch.ts";
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
  /** What becomes of models that are on no list. */
  readonly unknownModels?: "other" | "refuse";
  /** Beginnings of paths that are forwarded in addition. */
  readonly allowPaths?: readonly string[];
  readonly background?: "hold" | "refuse";
  /** How many calls are read on at once after their clients hung up. */
  readonly readOnMax?: number;
  readonly accessLog?: AccessLog | undefined;
  /** Gets a line for the operator when the store goes away, and when it is back. */
  readonly tell: (line: string) => void;
}

/** The status of requests whose client hung up, as other proxies write it. */
const HUNG_UP = 499;

const HEALTH_PATH = "/healthz";
const METRICS_PATH = "/metrics";
const NO_URL = errorAnswer(400, "invalid_request_error", "The path is no URL.", "openai");

export class Gateway {
  readonly #server: Server;
  readonly #setup: ExchangeSetup;
  readonly #limiter: RateLimiter;
  readonly #metrics: GatewayMetrics;
  readonly #watch: StoreWatch;
  /** How many exchanges have a lease or a response that has not ended. */
  #openCount = 0;
  /** Called when there is none any more. */
  readonly #onIdle: (() => void)[] = [];
  #isStopping = false;

  private constructor(options: GatewayOptions) {
    const { limiter, upstreams, isOpen, maxWaitSeconds, tell } = options;
    const { clock, timer } = limiter.repository[INTERNALS];
    const keys = new KeyLookup(limiter.repository, clock);
    const hashes = new TextMemo(hashOf);
    this.#limiter = limiter;
    this.#metrics = new GatewayMetrics(limiter, () => this.#openCount);
    this.#watch = new StoreWatch({ isAvailable: () => limiter.isAvailable(), timer, tell });
    this.#setup = {
      metering: new Metering(limiter, checkLlmOptions({ entityId: "gateway", maxWaitSeconds })),
      upstreams: upstreams.map((spec) => ({
        models: spec.models,
        aliases: spec.aliases,
        forwarder: new Forwarder(spec),
      })),
      entityOf: isOpen ? (key) => `sha256:${hashes.of(key)}` : (key) => keys.entityOf(key),
      nowMs: clock,
      bodyBytesMax: options.bodyBytesMax,
      timeoutMs: options.timeoutMs,
      onStoreLost: (error) => this.#watch.lost(error),
      onEnd: (response) => this.#ended(response),
    };
    this.#server = createServer((request, response) => this.#receive(request, response));
  }

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
    this.#watch.stop();
    this.#server.close();
    this.#server.closeIdleConnections();
    await Promise.race([this.#untilAnswered(), deadline]);
    this.#server.closeAllConnections();
    await this.#untilAnswered();
    for (const { forwarder } of this.#setup.upstreams) forwarder.close();
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
    const { url = "/" } = request;
    const route = url === HEALTH_PATH || url === METRICS_PATH ? undefined : routes.of(url);
    if (route !== undefined) {
      new Exchange(this.#setup, route, request, response).start();
      return;
    }
    response.on("close", () => this.#ended(response));
    if (url === HEALTH_PATH) void this.#sayHealth(response);
    else if (url !== METRICS_PATH) send(response, NO_URL);
    else response.writeHead(200, { "content-type": PROMETHEUS_TYPE }).end(this.#metrics.text());
  }

  /** A response has closed, and its lease, if it had one, has ended. */
  #ended(response: ServerResponse): void {
    this.#metrics.answered(response.writableFinished ? response.statusCode : HUNG_UP);
    this.#openCount -= 1;
    if (this.#openCount === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  async #sayHealth(response: ServerResponse): Promise<void> {
    const isAvailable = await this.#limiter.isAvailable();
    if (!isAvailable) this.#watch.lost();
    response.writeHead(isAvailable ? 200 : 503, { "content-type": "application/json" });
    response.end(JSON.stringify({ status: isAvailable ? "ok" : "store unavailable" }));
  }
}
