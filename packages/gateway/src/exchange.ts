/** One request through the gateway, from its first byte to the end of its lease. */

import type { ClientRequest, IncomingMessage, ServerResponse } from "node:http";
import { Refusal } from "@zae-limiter/limiter/acquire/decision.ts";
import { ENDED } from "@zae-limiter/limiter/acquire/lease/lease-holdings.ts";
import { TextMemo } from "@zae-limiter/limiter/base/text-memo.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkResource } from "@zae-limiter/limiter/domain/names.ts";
import { type AnswerMeter, answerMeter } from "@zae-limiter/limiter/llm/answer-meter.ts";
import { formatAt, type HttpCall, readHttpCall } from "@zae-limiter/limiter/llm/call.ts";
import { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import type { Metering, NotGranted } from "@zae-limiter/limiter/llm/metering.ts";
import { errorAnswer, refusalAnswer } from "@zae-limiter/limiter/llm/refusal-answer.ts";
import { failureAnswer } from "./failure-answer.ts";
import type { Forwarder, Forwarding } from "./forwarder.ts";
import { addLimits, clientHeaders, clientKey } from "./headers.ts";
import { wasClosed } from "./idle-connections.ts";
import type { Route } from "./routes.ts";
import { send } from "./send.ts";
import { Steps } from "./steps.ts";
import { type UpstreamSpec, upstreamFor } from "./upstreams.ts";

/** Why a step ends whose client is gone. */
const HUNG_UP = new Error("The client has hung up");

const BROKEN_OFF = "The answer of the upstream broke off.";
const UNREAD =
  "The body must be a JSON object in UTF-8, not compressed, and its model must be a text.";
const AMBIGUOUS =
  "Servers read this path in different ways. Write it without semicolons, spaces and escapes.";
const HOW_TO_SEND = 'Send one as "Authorization: Bearer <key>" or as "x-api-key: <key>".';
const NO_KEY = `The request has no key. ${HOW_TO_SEND}`;
const BAD_KEY = `The key of the request is not valid: unknown, revoked or expired. ${HOW_TO_SEND}`;

/** Returns why a text cannot be the name of a model; empty when it can. Calls may name none. */
const problems = new TextMemo((model) => {
  try {
    if (model !== "") checkResource(model);
    return "";
  } catch (error) {
    return `No model can have this name. ${(error as Error).message}`;
  }
});

/** What all exchanges of a gateway share. */
export interface ExchangeSetup {
  readonly metering: Metering;
  readonly upstreams: readonly UpstreamRoute[];
  /** Returns the entity of a key; `undefined` when it may not pass. */
  readonly entityOf: (key: string) => string | undefined | Promise<string | undefined>;
  readonly nowMs: () => number;
  readonly bodyBytesMax: number;
  readonly timeoutMs: number;
  /** Called when the store could not be asked; without an error where the call passed uncounted. */
  readonly onStoreLost: (error?: RateLimiterUnavailable) => void;
  /** Called when the response has closed and the lease has ended. */
  readonly onEnd: (response: ServerResponse) => void;
}

interface UpstreamRoute extends Pick<UpstreamSpec, "models" | "aliases"> {
  readonly forwarder: Forwarder;
}

export class Exchange extends Steps {
  readonly #setup: ExchangeSetup;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #route: Route;
  #key = "";
  #call: HttpCall | undefined;
  #metered: MeteredCall | undefined;
  #meter: AnswerMeter | undefined;
  /** The request to the upstream, while there is one. */
  #forwarded: ClientRequest | undefined;
  #isAnswered = false;
  #timer: NodeJS.Timeout | undefined;
  #gone: AbortController | undefined;
  #isClosed = false;
  #isEnded = false;

  constructor(
    setup: ExchangeSetup,
    route: Route,
    request: IncomingMessage,
    response: ServerResponse,
  ) {
    super();
    this.#setup = setup;
    this.#route = route;
    this.#request = request;
    this.#response = response;
  }

  start(): void {
    this.on(this.#response, "close", this.#close);
    this.attempt(this.#identify, undefined);
  }

  #identify(): void {
    this.#key = clientKey(this.#request.headers) ?? "";
    this.with(this.#key === "" ? undefined : this.#setup.entityOf(this.#key), this.#readBody);
  }

  #readBody(entityId: string | undefined): void {
    if (entityId === undefined) {
      const isAnthropic = this.#route.provider === "anthropic";
      const kind = isAnthropic ? "authentication_error" : "invalid_api_key";
      return void this.#refuse(401, kind, this.#key === "" ? NO_KEY : BAD_KEY);
    }
    if (this.#isClosed) return;
    const request = this.#request;
    const { bodyBytesMax } = this.#setup;
    if (Number(request.headers["content-length"] ?? 0) > bodyBytesMax) {
      return void this.#refuseBody();
    }
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= bodyBytesMax) chunks.push(chunk);
      else this.#refuseBody();
    });
    this.on(request, "end", () => {
      if (bytes > bodyBytesMax || this.#isClosed) return;
      this.#acquire(entityId, chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
    });
  }

  #refuseBody(): void {
    const message = `The body has more than ${this.#setup.bodyBytesMax} bytes.`;
    this.#refuse(413, "request_too_large", message);
  }

  #acquire(entityId: string, body: Buffer): void {
    const { metering, upstreams } = this.#setup;
    const { method = "GET", rawHeaders } = this.#request;
    const { path, isAmbiguous } = this.#route;
    if (isAmbiguous && method === "POST") {
      return void this.#refuse(400, "invalid_request_error", AMBIGUOUS);
    }
    if (metering.options.maxWaitSeconds > 0) this.#gone = new AbortController();
    const text = body.length === 0 ? undefined : body.toString("utf8");
    const signal = this.#gone?.signal;
    const headers = new Headers();
    const call = readHttpCall({ url: path, method, body: text, signal, headers });
    const { model } = call.facts.call;
    const isUnread = formatAt(method, path) !== undefined && !namesModel(call.facts.call.body);
    const problem = isUnread ? UNREAD : problems.of(model);
    if (problem !== "") return void this.#refuse(400, "invalid_request_error", problem);
    const upstream = upstreamFor(upstreams, model);
    if (upstream === undefined) {
      const what = model === "" ? "calls without a model" : `"${model}"`;
      const message = `No upstream of this gateway serves ${what}.`;
      return void this.#refuse(404, "model_not_found", message);
    }
    this.#call = call;
    const sent = call.body === undefined || !call.hidesUsage ? body : Buffer.from(call.body);
    const forwarding = { method, path, rawHeaders, key: this.#key, body: sent };
    const target = { entityId, resource: model || "llm" };
    this.with(metering.begin(call.facts, target), (begun) => {
      if (!(begun instanceof MeteredCall)) return this.#refuseBy(begun);
      this.#metered = begun;
      if (begun.isDegraded) this.#setup.onStoreLost();
      // A client that hung up before its request was forwarded has used nothing.
      if (this.#isClosed) return this.with(begun.refund(), () => {});
      this.#forward(upstream.forwarder, forwarding);
    });
  }

  #refuseBy(reason: NotGranted): void {
    const response = this.#response;
    if (reason instanceof Refusal) {
      addLimits(reason.statuses, this.#setup.nowMs(), response.setHeader.bind(response));
    }
    if (reason instanceof RateLimiterUnavailable) this.#setup.onStoreLost(reason);
    send(response, refusalAnswer(reason, this.#route.provider, false));
  }

  #refuse(status: number, kind: string, message: string): void {
    send(this.#response, errorAnswer(status, kind, message, this.#route.provider));
  }

  /** Sends the request, once more where the connection turns out to be closed. */
  #forward(forwarder: Forwarder, forwarding: Forwarding): void {
    const forwarded = forwarder.send(forwarding);
    this.#forwarded = forwarded;
    if (this.#timer === undefined) this.#startTimer();
    else this.#timer.refresh();
    this.on(forwarded, "response", this.#answer);
    this.on(forwarded, "error", (error: NodeJS.ErrnoException) => {
      const isOpen = !this.#isAnswered && !this.#isClosed;
      if (isOpen && wasClosed(forwarded, error)) this.#forward(forwarder, forwarding);
      else this.#unanswered(error);
    });
  }

  /** An error after the answer has begun is told by the events of the answer. */
  #unanswered(error: unknown, message = "The upstream could not be reached."): void {
    // The lease of a client that hung up has ended with its response.
    if (this.#isAnswered || this.#isClosed) return;
    this.#isAnswered = true;
    clearTimeout(this.#timer);
    this.with(this.#metered?.fail({ error }) ?? ENDED, () => {
      this.#refuse(502, "api_error", message);
    });
  }

  #answer(answer: IncomingMessage): void {
    this.#isAnswered = true;
    const call = this.#call as HttpCall;
    const metered = this.#metered as MeteredCall;
    const status = answer.statusCode ?? 502;
    const { headers, contentType } = clientHeaders(answer.rawHeaders, call.hidesUsage);
    const add = (name: string, value: string) => void headers.push(name, value);
    addLimits(metered.statuses, this.#setup.nowMs(), add);
    let ended = ENDED;
    if (status >= 400) ended = metered.fail({ status });
    else if (call.format === undefined) ended = metered.keepEstimate();
    else {
      const contentEncoding = answer.headers["content-encoding"] ?? "";
      const read = { contentType, contentEncoding };
      this.#meter = answerMeter(read, call.format, metered, call.hidesUsage);
    }
    this.with(ended, () => {
      // The answer may have broken off while the store was asked.
      if (answer.destroyed) return this.#refuse(502, "api_error", BROKEN_OFF);
      this.#response.writeHead(status, headers);
      this.#pump(answer);
    });
  }

  /** Forwards each chunk as it comes, at the speed of the client. */
  #pump(answer: IncomingMessage): void {
    const response = this.#response;
    const meter = this.#meter;
    this.on(answer, "data", (chunk: Buffer) => {
      this.#timer?.refresh();
      if (meter !== undefined) this.#metered?.touch();
      const bytes = meter === undefined ? chunk : meter.push(chunk);
      if (bytes.length === 0 || response.write(bytes)) return;
      answer.pause();
      response.once("drain", () => answer.resume());
    });
    this.on(answer, "end", this.#complete);
    // An answer that has ended closes too. Without a listener for its error it has none.
    this.on(answer, "close", () => {
      if (!answer.readableEnded) response.destroy();
    });
  }

  #complete(): void {
    clearTimeout(this.#timer);
    const response = this.#response;
    if (this.#meter === undefined) return void response.end();
    this.with(this.#meter.finish(), ({ rest, pendingId }) => {
      if (rest.length > 0) response.write(rest);
      this.with(pendingId === undefined ? ENDED : this.#metered?.chargeMost(), () =>
        response.end(),
      );
    });
  }

  /** Ends the request to the upstream when nothing comes from it for too long. */
  #startTimer(): void {
    this.#timer = setTimeout(() => {
      const error = new Error("The upstream did not answer in time.");
      this.#forwarded?.destroy(error);
      this.#unanswered(error, error.message);
    }, this.#setup.timeoutMs);
  }

  /** The response has been sent, or its client has hung up. */
  #close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#gone?.abort(HUNG_UP);
    this.#forwarded?.destroy();
    // An answer that was complete has ended its lease already.
    const ended = this.#metered?.breakOff() ?? ENDED;
    this.with(ended, this.waited);
  }

  /** Ends the exchange when its response has closed and no step waits for the store. */
  protected override waited(): void {
    if (!this.#isClosed || this.isWaiting || this.#isEnded) return;
    this.#isEnded = true;
    this.#setup.onEnd(this.#response);
  }

  /** The error of a step ends its request, not the process. */
  protected override failed(error: unknown): void {
    // The wait for tokens has ended because the client hung up.
    if (error === HUNG_UP) return;
    if (error instanceof RateLimiterUnavailable) this.#setup.onStoreLost(error);
    else {
      process.emitWarning(`A request failed: ${String(error)}`, { code: "ZAEL_GATEWAY_FAILED" });
    }
    // An incomplete answer must not look complete.
    if (this.#response.headersSent) this.#response.destroy();
    else send(this.#response, failureAnswer(error, this.#route.provider));
  }
}

/** Whether a body can name a model: providers refuse one that is no text. */
function namesModel(body: unknown): boolean {
  if (typeof body !== "object" || body === null) return false;
  const { model } = body as { model?: unknown };
  return model === undefined || typeof model === "string";
}
