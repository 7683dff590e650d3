/** A reverse proxy that enforces limits in front of providers of language models. */

import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { randomToken, systemRandom } from "@zae-limiter/limiter/base/random.ts";
import { TextMemo } from "@zae-limiter/limiter/base/text-memo.ts";
import { Metering } from "@zae-limiter/limiter/llm/metering.ts";
import { checkLlmOptions } from "@zae-limiter/limiter/llm/options.ts";
import { PROMETHEUS_TYPE } from "@zae-limiter/limiter/otel/prometheus-meter.ts";
import type { SignedWebhook } from "@zae-limiter/limiter/records/alerts/webhooks.ts";
import { INTERNALS } from "@zae-limiter/limiter/repository/internals.ts";
import type { AccessLog } from "./access-log.ts";
import { AlertSender } from "./alerts/sender.ts";
import type { Provider } from "./answers.ts";
import { BackgroundResponses } from "./background.ts";
import { type CallEntry, type CallSetup, HEADERS_MAX, serveCall } from "./call.ts";
import { Cancellation } from "./cancellation.ts";
import { GatewayMetrics } from "./gateway-metrics.ts";
import { KeyLookup } from "./key-lookup.ts";
import { hashOf } from "./keys.ts";
import { allowedFor } from "./models/allowed-resources.ts";
import { Models } from "./models/models.ts";
import { ReadingOn } from "./reading-on.ts";
import { RequestBodies } from "./request-body.ts";
import { readAllowedPath } from "./routes.ts";
import { StoreWatch } from "./store-watch.ts";
import { UpstreamConnection } from "./upstream-connection.ts";
import type { UpstreamSpec } from "./upstreams.ts";
import { UsageAnswers } from "./usage-answers.ts";

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
  /** Names that no upstream lists: they count for the resource `other`, or are a 404. */
  readonly unknownModels: "other" | "refuse";
  /** Beginnings of paths that are forwarded although their tokens cannot be estimated. */
  readonly allowPaths: readonly string[];
  /** Background responses keep their reserve until a poll brings their usage, or are a 400. */
  readonly background: "hold" | "refuse";
  /** Calls of models without a price where a limit in money applies. */
  readonly unpriced: "refuse" | "allow";
  /** Whether calls that money may apply to pass while the store is away. */
  readonly passesUncounted: boolean;
  /** How much output money reserves before it is known. */
  readonly reserveMoney: "learned" | "max";
  /** Whether the bound of the output is lowered to what a budget still pays for. */
  readonly capOutput: boolean;
  /** Whether `/v1/usage` has the limits of ancestors too; not by default. */
  readonly showAncestors?: boolean | undefined;
  /** Names of cost centres that clients may name by `x-zael-tag`; all others are `other`. */
  readonly tags?: readonly string[] | undefined;
  /** Addresses that alerts are posted to, besides those that the namespace stores. */
  readonly webhooks?: readonly SignedWebhook[] | undefined;
  /** Plain answers that are read on at a time after their clients have left. */
  readonly readOnMax: number;
  readonly accessLog?: AccessLog | undefined;
  /** Gets a line for the operator when the store goes away, and when it is back. */
  readonly tell: (line: string) => void;
}

/** The status of requests whose client hung up, as other proxies write it. */
const HUNG_UP = 499;
const HEALTH_PATH = "/healthz";
const METRICS_PATH = "/metrics";
const HEADER_BYTES_MAX = 32 * 1024;
/** How long a request may take to come, and how fast its body has to come after that. */
const REQUEST_MS = 30_000;
const BODY_BYTES_PER_MS = 128;
const GATEWAY_ID_BYTES = 9;

/** Makes every entry of the access log have all fields, in one order. */
const NOTHING_KNOWN = {
  key: undefined,
  entity_id: undefined,
  method: "",
  path: "",
  api: undefined,
  model: undefined,
  resource: undefined,
  tag: undefined,
  upstream: undefined,
  status: 0,
  input_tokens: undefined,
  output_tokens: undefined,
  cached_tokens: undefined,
  is_estimated: undefined,
  wait_ms: undefined,
  first_byte_ms: undefined,
  total_ms: 0,
  refused_by: undefined,
};

export class Gateway {
  readonly #server: Server;
  readonly #setup: CallSetup;
  readonly #metrics: GatewayMetrics;
  readonly #watch: StoreWatch;
  readonly #alerts: AlertSender;
  readonly #accessLog: AccessLog | undefined;
  /** Requests whose response or lease has not ended. */
  readonly #open = new Set<Promise<void>>();
  readonly #closings = new Closings();
  /** Begins the ids of requests, which count up. */
  readonly #id = randomToken(systemRandom, GATEWAY_ID_BYTES);
  #requests = 0;
  #isStopping = false;

  private constructor(options: GatewayOptions, models: Models, keys: KeyLookup | undefined) {
    const { limiter, upstreams, maxWaitSeconds, timeoutMs, tell } = options;
    const { repository } = limiter;
    const { clock, timer } = repository[INTERNALS];
    this.#metrics = new GatewayMetrics(limiter, () => this.#open.size);
    this.#watch = new StoreWatch({ isAvailable: () => limiter.isAvailable(), timer, tell });
    this.#alerts = new AlertSender(repository, { tell, webhooks: options.webhooks ?? [] });
    this.#accessLog = options.accessLog;
    this.#setup = {
      metering: new Metering(
        limiter,
        checkLlmOptions({
          entityId: "gateway",
          maxWaitSeconds,
          prices: upstreams.flatMap(({ prices }) => prices),
          unpriced: options.unpriced,
          reserveMoney: options.reserveMoney,
          capOutput: options.capOutput,
        }),
        !options.passesUncounted,
      ),
      models,
      connections: new Map(
        upstreams.map((spec) => [spec, new UpstreamConnection(spec, timeoutMs, timer.nowMs)]),
      ),
      bodies: new RequestBodies(options.bodyBytesMax),
      readingOn: new ReadingOn({
        max: options.readOnMax,
        timeoutMs,
        timer,
        onOutcome: (outcome) => this.#metrics.readOn(outcome),
      }),
      background: options.background === "hold" ? new BackgroundResponses(limiter) : undefined,
      allowPaths: options.allowPaths.map(readAllowedPath),
      tags: new Set(options.tags),
      usage: new UsageAnswers(limiter, options.showAncestors === true),
      identify: identifierOf(keys),
      allowedFor: (entityId) => allowedFor(repository, entityId),
      clock,
      timer,
      onRefused: (reason) => this.#metrics.refused(reason),
      onStoreLost: (error) => this.#watch.lost(error),
    };
    const requestTimeout = REQUEST_MS + Math.ceil(options.bodyBytesMax / BODY_BYTES_PER_MS);
    const bounds = { maxHeaderSize: HEADER_BYTES_MAX, requestTimeout };
    this.#server = createServer(bounds, (request, response) => this.#receive(request, response));
    this.#server.maxHeadersCount = HEADERS_MAX + 1;
  }

  static async start(options: GatewayOptions): Promise<Gateway> {
    const { limiter, upstreams, unknownModels, tell } = options;
    const { notes, timer } = limiter.repository[INTERNALS];
    const { limits } = limiter.repository;
    const models = await Models.start({ upstreams, unknownModels, notes, limits, timer, tell });
    const keys = options.isOpen ? undefined : new KeyLookup(limiter.repository);
    // A store that is away must not keep the gateway from starting: its calls get a 503.
    await keys?.start().catch(() => {});
    const gateway = new Gateway(options, models, keys);
    try {
      gateway.#server.listen(options.port, options.host);
      await once(gateway.#server, "listening");
    } catch (error) {
      await gateway.stop(Promise.resolve());
      throw error;
    }
    gateway.#alerts.start();
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
    this.#setup.models.stop();
    this.#server.close();
    this.#server.closeIdleConnections();
    const alerts = this.#alerts.stop();
    await Promise.race([Promise.all([this.#untilEnded(), alerts]), deadline]);
    this.#setup.readingOn.stop();
    this.#server.closeAllConnections();
    await this.#untilEnded();
    for (const connection of this.#setup.connections.values()) connection.close();
    this.#metrics.stop();
    await this.#accessLog?.close();
  }

  async #untilEnded(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open);
  }

  #receive(request: IncomingMessage, response: ServerResponse): void {
    // A client would go on using its connection.
    if (this.#isStopping) response.shouldKeepAlive = false;
    // Begins a moment later, so that the request counts as open from its first step on.
    const served = Promise.resolve().then(() => this.#serve(request, response));
    this.#open.add(served);
    void served.finally(() => this.#open.delete(served));
  }

  /** Serves a request until its response has closed and its lease has ended. Never rejects. */
  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const closed = this.#closings.of(request, response);
    const { url = "/", method } = request;
    if (url === HEALTH_PATH && method === "GET") await this.#answerHealth(response);
    else if (url === METRICS_PATH && method === "GET") {
      response.writeHead(200, { "content-type": PROMETHEUS_TYPE }).end(this.#metrics.text());
    } else await this.#serveCall(request, response, closed);
    await closed;
    this.#metrics.answered(response.writableFinished ? response.statusCode : HUNG_UP);
  }

  async #serveCall(
    request: IncomingMessage,
    response: ServerResponse,
    closed: Promise<void>,
  ): Promise<void> {
    const { timer, clock } = this.#setup;
    const { url = "/", method = "GET" } = request;
    this.#requests += 1;
    const requestId = `req_${this.#id}${this.#requests.toString(36)}`;
    const provider = providerOf(request);
    const startedMs = timer.nowMs();
    const elapsedMs = () => Math.round(timer.nowMs() - startedMs);
    const entry: CallEntry = {};
    const time = clock();
    const left = leavingOf(response, closed);
    const setup = this.#setup;
    await serveCall({ setup, request, response, left, provider, requestId, elapsedMs, entry });
    if (this.#accessLog === undefined) return;
    const status = left.isCancelled ? HUNG_UP : response.statusCode;
    const total_ms = elapsedMs();
    const known = { ...NOTHING_KNOWN, ...entry, method, path: url, status, total_ms };
    this.#accessLog.write({ time, request_id: requestId, ...known });
  }

  async #answerHealth(response: ServerResponse): Promise<void> {
    const isAvailable = await this.#watch.health();
    response.writeHead(isAvailable ? 200 : 503, { "content-type": "application/json" });
    response.end(JSON.stringify({ status: isAvailable ? "ok" : "store unavailable" }));
  }
}

/** Returns what is cancelled when a client hangs up before it has its whole answer. */
function leavingOf(response: ServerResponse, closed: Promise<void>): Cancellation {
  const left = new Cancellation();
  void closed.then(() => {
    if (!response.writableFinished) left.cancel();
  });
  return left;
}

/** Returns the provider whose shapes the client of a request expects. */
function providerOf({ url = "", headers }: IncomingMessage): Provider {
  const isAnthropic = headers["anthropic-version"] !== undefined || /\/messages\b/.test(url);
  return isAnthropic ? "anthropic" : "openai";
}

/** Returns how keys are looked up: in the store, or by their hash where clients bring their own. */
function identifierOf(keys: KeyLookup | undefined): CallSetup["identify"] {
  if (keys !== undefined) return (key, address) => keys.find(key, address);
  const hashes = new TextMemo(hashOf);
  return async (key) => {
    const entityId = `sha256:${hashes.of(key)}`;
    const hint = entityId.slice(0, 16);
    return { id: entityId, entityId, hint, name: undefined, isDisabled: false };
  };
}

/**
 * Reports when responses close. A response that waits behind another one on its connection, because
 * its client did not wait for the first answer, never closes by itself when the connection ends.
 */
class Closings {
  /** Callbacks for the end of a connection. */
  readonly #waiting = new WeakMap<Socket, Set<() => void>>();

  /** Resolves when a response has closed, or its connection has. */
  of({ socket }: IncomingMessage, response: ServerResponse): Promise<void> {
    const waiting = this.#on(socket);
    return new Promise((resolve) => {
      const close = () => {
        waiting.delete(close);
        response.off("close", close);
        resolve();
      };
      waiting.add(close);
      response.once("close", close);
      if (socket.destroyed) close();
    });
  }

  /** Returns the callbacks of a connection, which one listener calls for all of its responses. */
  #on(socket: Socket): Set<() => void> {
    const before = this.#waiting.get(socket);
    if (before !== undefined) return before;
    const waiting = new Set<() => void>();
    this.#waiting.set(socket, waiting);
    socket.once("close", () => {
      for (const close of waiting) close();
    });
    return waiting;
  }
}
