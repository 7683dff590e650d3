/** One request through the gateway, from its first byte to the end of its lease. */

import type {
  Agent,
  ClientRequest,
  IncomingMessage,
  OutgoingHttpHeaders,
  ServerResponse,
} from "node:http";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { LimitStatus } from "../../domain/limit-status.ts";
import { type HeaderStyle, headersOf } from "../../http/headers.ts";
import { type AnswerMeter, answerMeter } from "../../llm/answer-meter.ts";
import { type HttpCall, readHttpCall } from "../../llm/http-call.ts";
import { MeteredCall } from "../../llm/metered-call.ts";
import type { Metering } from "../../llm/metering.ts";
import { errorAnswer, type RefusalAnswer, refusalAnswer } from "../../llm/refusal-answer.ts";
import { clientHeaders, clientKey, upstreamHeaders } from "./headers.ts";
import { type UpstreamSpec, upstreamFor } from "./upstreams.ts";

/** In which headers clients learn what they have left. */
const STYLES: readonly HeaderStyle[] = ["draft", "openai"];

/** What all exchanges of a gateway share. */
export interface ExchangeSetup {
  readonly metering: Metering;
  readonly upstreams: readonly UpstreamSpec[];
  readonly agents: { readonly "http:": Agent; readonly "https:": Agent };
  /** Returns the entity of a key; `undefined` when it may not pass. */
  readonly entityOf: (key: string) => string | undefined | Promise<string | undefined>;
  readonly nowMs: () => number;
  readonly bodyBytesMax: number;
  readonly timeoutMs: number;
}

type Provider = "openai" | "anthropic";

/** A request that was granted and is on its way to an upstream. */
interface Forwarding {
  readonly path: string;
  readonly key: string;
  readonly upstream: UpstreamSpec;
  readonly body: Buffer;
}

export class Exchange {
  readonly #setup: ExchangeSetup;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  /** The request to the upstream, while there is one. */
  #forwarded: ClientRequest | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(setup: ExchangeSetup, request: IncomingMessage, response: ServerResponse) {
    this.#setup = setup;
    this.#request = request;
    this.#response = response;
  }

  /** Answers the request; resolves when its lease has ended. */
  async run(): Promise<void> {
    const { entityOf, bodyBytesMax, upstreams } = this.#setup;
    const path = pathOf(this.#request);
    const provider = path.includes("/messages") ? "anthropic" : "openai";
    const key = clientKey(this.#request.headers);
    const found = key === undefined ? undefined : entityOf(key);
    const entityId = found instanceof Promise ? await found : found;
    if (key === undefined || entityId === undefined) {
      const kind = provider === "anthropic" ? "authentication_error" : "invalid_api_key";
      return this.#refuse(401, kind, "The request has no key that this gateway knows.", provider);
    }
    const body = await bodyOf(this.#request, bodyBytesMax);
    if (body === undefined) {
      const message = `The body has more than ${bodyBytesMax} bytes.`;
      return this.#refuse(413, "request_too_large", message, provider);
    }
    const call = this.#read(path, body);
    const { model } = call.facts.call;
    const upstream = upstreamFor(upstreams, model);
    if (upstream === undefined) {
      const message = `No upstream of this gateway serves "${model}".`;
      return this.#refuse(404, "model_not_found", message, provider);
    }
    const metered = await this.#begin(call, entityId);
    if (metered === undefined) return;
    if (!(metered instanceof MeteredCall)) {
      return send(this.#response, refusalAnswer(metered, provider, false));
    }
    const sent = call.body === undefined || !call.hidesUsage ? body : Buffer.from(call.body);
    await this.#answer({ path, key, upstream, body: sent }, call, metered, provider);
  }

  #refuse(status: number, kind: string, message: string, provider: Provider): void {
    send(this.#response, errorAnswer(status, kind, message, provider));
  }

  #read(path: string, body: Buffer): HttpCall {
    const { maxWaitSeconds } = this.#setup.metering.options;
    return readHttpCall({
      url: path,
      method: this.#request.method ?? "GET",
      body: body.length === 0 ? undefined : body.toString("utf8"),
      signal: maxWaitSeconds > 0 ? goneSignal(this.#response) : undefined,
      headersOf: noHeaders,
    });
  }

  /** Acquires; `undefined` for a client that hung up while it waited for tokens. */
  #begin({ facts }: HttpCall, entityId: string) {
    const begun = this.#setup.metering.begin(facts, entityId);
    if (facts.signal === undefined) return begun;
    return begun.catch((error) => {
      if (facts.signal?.aborted === true) return undefined;
      throw error;
    });
  }

  async #answer(
    forwarding: Forwarding,
    call: HttpCall,
    metered: MeteredCall,
    provider: Provider,
  ): Promise<void> {
    const response = this.#response;
    response.once("close", () => {
      clearTimeout(this.#timer);
      this.#forwarded?.destroy();
    });
    let answer: IncomingMessage;
    try {
      answer = await this.#ask(forwarding);
    } catch (error) {
      if (response.destroyed) return metered.breakOff();
      await metered.fail({ error });
      return this.#refuse(502, "api_error", "The upstream could not be reached.", provider);
    }
    const status = answer.statusCode ?? 502;
    const headers = clientHeaders(answer.headers, call.hidesUsage);
    addLimits(headers, this.#setup.nowMs(), metered.statuses);
    response.writeHead(status, headers);
    if (status >= 400) {
      await metered.fail({ status });
      return this.#pump(answer);
    }
    if (call.format === undefined) {
      await metered.keepEstimate();
      return this.#pump(answer);
    }
    const type = answer.headers["content-type"] ?? "";
    const meter = answerMeter(type, call.format, metered, call.hidesUsage);
    try {
      await this.#pump(answer, meter, metered);
    } finally {
      // An answer that was complete has ended its lease already.
      await metered.breakOff();
    }
  }

  /** Forwards each chunk as it comes, at the speed of the client. */
  async #pump(answer: IncomingMessage, meter?: AnswerMeter, metered?: MeteredCall): Promise<void> {
    const response = this.#response;
    const isComplete = await new Promise<boolean>((resolve) => {
      answer.on("data", (chunk: Buffer) => {
        this.#heard(metered);
        const bytes = meter === undefined ? chunk : meter.push(chunk);
        if (bytes.length === 0 || response.write(bytes)) return;
        answer.pause();
        response.once("drain", () => answer.resume());
      });
      answer.once("end", () => resolve(true));
      // After an end these come too late to matter.
      const broken = () => resolve(false);
      answer.once("close", broken);
      answer.once("error", broken);
      response.once("close", broken);
    });
    clearTimeout(this.#timer);
    if (!isComplete) return void response.destroy();
    if (meter === undefined) return void response.end();
    const { rest, ended } = meter.finish();
    if (rest.length > 0) response.write(rest);
    await ended;
    response.end();
  }

  /** Sends the request, once more where the connection turns out to be closed. */
  #ask(forwarding: Forwarding): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const forwarded = forward(this.#setup, this.#request, forwarding);
      this.#forwarded = forwarded;
      this.#startTimer();
      let isAnswered = false;
      forwarded.once("response", (answer) => {
        isAnswered = true;
        resolve(answer);
      });
      forwarded.on("error", (error: NodeJS.ErrnoException) => {
        // Without a byte of an answer, the upstream has most likely closed an idle connection just
        // as it was used again.
        const isStale = !isAnswered && forwarded.reusedSocket && error.code === "ECONNRESET";
        if (isStale && !this.#response.destroyed) resolve(this.#ask(forwarding));
        else reject(error);
      });
    });
  }

  /** Ends the request to the upstream when nothing comes from it for too long. */
  #startTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#forwarded?.destroy(new Error("The upstream did not answer in time"));
    }, this.#setup.timeoutMs);
  }

  /** Something came from the upstream. */
  #heard(metered: MeteredCall | undefined): void {
    this.#timer?.refresh();
    metered?.touch();
  }
}

function forward(
  { agents }: ExchangeSetup,
  { method, headers }: IncomingMessage,
  { path, key, upstream, body }: Forwarding,
): ClientRequest {
  const { url } = upstream;
  const isSecure = url.protocol === "https:";
  const base = url.pathname.endsWith("/") ? url.pathname.slice(0, -1) : url.pathname;
  const forwarded = (isSecure ? requestHttps : requestHttp)({
    hostname: url.hostname,
    port: url.port,
    method,
    // The version is part of the base URL of clients and of upstreams.
    path: base + (path.startsWith("/v1/") ? path.slice("/v1".length) : path),
    headers: upstreamHeaders(headers, upstream, key, body),
    agent: agents[isSecure ? "https:" : "http:"],
  });
  forwarded.end(body);
  return forwarded;
}

/** A gateway finds the entity by the key, and never looks at headers. */
function noHeaders(): Headers {
  return new Headers();
}

/** Aborts when the client hangs up while its call waits for tokens. */
function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once("close", () => gone.abort("closed"));
  return gone.signal;
}

/** Adds what the client has left, and nothing about its ancestors. */
function addLimits(headers: OutgoingHttpHeaders, nowMs: number, all: readonly LimitStatus[]): void {
  const own = all[0]?.entityId;
  const statuses = all.every(({ entityId }) => entityId === own)
    ? all
    : all.filter(({ entityId }) => entityId === own);
  for (const { name, value } of headersOf(STYLES, { statuses, nowMs })) headers[name] = value;
}

/** A path that needs no normalizing: no dots, no escapes, no query. */
const PLAIN_PATH = /^(?:\/[\w-]+)+$/;

/** Returns the path and the query of a request, in the form that the upstream gets. */
function pathOf({ url = "/" }: IncomingMessage): string {
  if (PLAIN_PATH.test(url)) return url;
  const { pathname, search } = new URL(url, "http://localhost");
  return pathname + search;
}

/** Reads the body; `undefined` when it is too long. */
function bodyOf(request: IncomingMessage, bytesMax: number): Promise<Buffer | undefined> {
  const announced = Number(request.headers["content-length"] ?? 0);
  if (announced > bytesMax) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= bytesMax) chunks.push(chunk);
      else resolve(undefined);
    });
    request.once("end", () => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
    request.once("error", reject);
  });
}

function send(response: ServerResponse, { status, headers, body }: RefusalAnswer): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, { ...headers, "content-length": String(Buffer.byteLength(body)) });
  response.end(body);
}
