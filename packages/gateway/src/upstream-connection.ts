/** Sends requests to one upstream, over connections that are used again. */

import { Agent, type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps, Agent as SecureAgent } from "node:https";
import type { Cancellation } from "./cancellation.ts";
import type { HeaderList } from "./headers.ts";
import type { UpstreamSpec } from "./upstreams.ts";

/** Idle connections that stay open, and for how long. */
const IDLE_MAX = 64;
const IDLE_MS = 60_000;
/** A reused connection that ends this soon was closed before the request arrived. */
const REPEAT_WITHIN_MS = 1000;

const TIMED_OUT = new Error("The upstream was silent for too long");
const STOPPED = new Error("The gateway has ended the call");

export interface UpstreamRequest {
  readonly method: string;
  /** Path and query below the upstream's base URL. */
  readonly path: string;
  readonly headers: HeaderList;
  readonly body: Buffer | string;
  /** Ends the request, and its answer. */
  readonly stop: Cancellation;
}

/** Says that no answer came. */
export class UpstreamFailure extends Error {
  constructor(
    message: string,
    /** Whether no byte of the request can have reached the upstream. */
    readonly isUnsent: boolean,
    readonly mayRepeat: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export class UpstreamConnection {
  readonly spec: UpstreamSpec;
  readonly #timeoutMs: number;
  readonly #nowMs: () => number;
  readonly #request: typeof requestHttp;
  readonly #reused: Agent;
  /** Opens a connection for each request. */
  readonly #fresh: Agent;
  /** The address of all connections. */
  readonly #place: { readonly hostname: string; readonly port: string };
  readonly #base: string;

  constructor(spec: UpstreamSpec, timeoutMs: number, nowMs: () => number) {
    const { protocol, pathname, hostname, port } = spec.url;
    const AgentOf = protocol === "https:" ? SecureAgent : Agent;
    this.spec = spec;
    this.#timeoutMs = timeoutMs;
    this.#nowMs = nowMs;
    this.#request = protocol === "https:" ? requestHttps : requestHttp;
    this.#reused = new AgentOf({ keepAlive: true, maxFreeSockets: IDLE_MAX, timeout: IDLE_MS });
    this.#fresh = new AgentOf({ keepAlive: false });
    // All connections go to one place. Node.js takes 2 us to name it for each request.
    for (const agent of [this.#reused, this.#fresh]) agent.getName = () => this.spec.url.host;
    // A URL has an address of IPv6 in brackets, and a socket wants it without.
    this.#place = { hostname: hostname.replace(/^\[|\]$/g, ""), port };
    this.#base = pathname.endsWith("/") ? pathname.slice(0, -1) : pathname;
  }

  /**
   * Returns the answer once its headers are there. Sends the request at most once more: where it
   * was never sent, or where the upstream closed a reused connection at once.
   */
  async send(request: UpstreamRequest): Promise<IncomingMessage> {
    try {
      return await this.#attempt(request, this.#reused);
    } catch (error) {
      if (!(error instanceof UpstreamFailure && error.mayRepeat)) throw error;
      return this.#attempt(request, this.#fresh);
    }
  }

  close(): void {
    this.#reused.destroy();
    this.#fresh.destroy();
  }

  #attempt(request: UpstreamRequest, agent: Agent): Promise<IncomingMessage> {
    const { method, headers, body, stop } = request;
    const path = this.#base + request.path;
    const timeout = this.#timeoutMs;
    const { hostname, port } = this.#place;
    // Written out: a spread object makes Node.js take twice as long for the request.
    const sent = this.#request({ hostname, port, path, method, headers, agent, timeout });
    stop.onCancel(() => void sent.destroy(STOPPED));
    const answer = this.#answerTo(sent, stop);
    sent.end(body);
    return answer;
  }

  /** Waits for an answer. Its listeners live as long as the answer, and must not hold the body. */
  #answerTo(sent: ClientRequest, stop: Cancellation): Promise<IncomingMessage> {
    const wasUnused = noticeConnection(sent);
    const startedMs = this.#nowMs();
    return new Promise((resolve, reject) => {
      sent.on("timeout", () => sent.destroy(TIMED_OUT));
      sent.on("response", resolve);
      // A switch of protocols that was not asked for ends at once.
      sent.on("upgrade", (_, socket) => {
        socket.destroy();
        reject(new UpstreamFailure("The upstream switched protocols.", false, false));
      });
      sent.on("error", (cause) => {
        const { isUnsent, isUnread } = wasUnused();
        const isSoon = this.#nowMs() - startedMs < REPEAT_WITHIN_MS;
        const isStale = sent.reusedSocket && isUnread && isSoon;
        const mayRepeat = !stop.isCancelled && cause !== TIMED_OUT && (isUnsent || isStale);
        const message =
          cause === TIMED_OUT
            ? "The upstream did not answer in time."
            : "The upstream could not be reached.";
        reject(new UpstreamFailure(message, isUnsent, mayRepeat, { cause }));
      });
    });
  }
}

/** Returns a function that says how far a request has come on its connection. */
function noticeConnection(sent: ClientRequest): () => { isUnsent: boolean; isUnread: boolean } {
  let isConnected = false;
  let readBefore = 0;
  sent.on("socket", (socket) => {
    readBefore = socket.bytesRead;
    isConnected = sent.reusedSocket;
    if (isConnected) return;
    socket.once("encrypted" in socket ? "secureConnect" : "connect", () => {
      isConnected = true;
    });
  });
  return () => ({
    isUnsent: !isConnected,
    isUnread: (sent.socket?.bytesRead ?? readBefore) === readBefore,
  });
}
