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
import { headersOf } from "../../http/headers.ts";
import { type AnswerMeter, answerMeter } from "../../llm/answer-meter.ts";
import { type HttpCall, readHttpCall } from "../../llm/http-call.ts";
import { MeteredCall } from "../../llm/metered-call.ts";
import type { Metering } from "../../llm/metering.ts";
import { errorAnswer, type RefusalAnswer, refusalAnswer } from "../../llm/refusal-answer.ts";
import { clientHeaders, clientKey, upstreamHeaders } from "./headers.ts";
import { type UpstreamSpec, upstreamFor } from "./upstreams.ts";

/** What all exchanges of a gateway share. */
export interface ExchangeSetup {
  readonly metering: Metering;
  readonly upstreams: readonly UpstreamSpec[];
  readonly agents: { readonly "http:": Agent; readonly "https:": Agent };
  /** Returns the entity of a key; `undefined` when it may not pass. */
  readonly entityOf: (key: string) => Promise<string | undefined>;
  readonly nowMs: () => number;
  readonly bodyBytesMax: number;
  readonly timeoutMs: number;
}

/** Answers a request; resolves when its lease has ended. */
export async function exchange(
  setup: ExchangeSetup,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = pathOf(request);
  const provider = path.includes("/messages") ? "anthropic" : "openai";
  const refuse = (status: number, kind: string, message: string) =>
    send(response, errorAnswer(status, kind, message, provider));
  const key = clientKey(request.headers);
  const entityId = key === undefined ? undefined : await setup.entityOf(key);
  if (key === undefined || entityId === undefined) {
    const kind = provider === "anthropic" ? "authentication_error" : "invalid_api_key";
    return refuse(401, kind, "The request has no key that this gateway knows.");
  }
  const body = await bodyOf(request, setup.bodyBytesMax);
  if (body === undefined) {
    return refuse(413, "request_too_large", `The body has more than ${setup.bodyBytesMax} bytes.`);
  }
  const gone = setup.metering.options.maxWaitSeconds > 0 ? goneSignal(response) : undefined;
  const call = readHttpCall({
    url: path,
    method: request.method ?? "GET",
    body: body.length === 0 ? undefined : body.toString("utf8"),
    signal: gone,
    get headers() {
      return new Headers();
    },
  });
  const { model } = call.facts.call;
  const upstream = upstreamFor(setup.upstreams, model);
  if (upstream === undefined) {
    return refuse(404, "model_not_found", `No upstream of this gateway serves "${model}".`);
  }
  const metered = await begun(setup, call, entityId);
  if (metered === undefined) return;
  if (!(metered instanceof MeteredCall)) {
    return send(response, refusalAnswer(metered, provider, false));
  }
  const sent = call.body === undefined ? body : Buffer.from(call.body);
  const forwarded = forward(setup, request, path, upstream, key, sent);
  response.once("close", () => forwarded.destroy());
  await answered(setup, response, forwarded, call, metered, provider);
}

/** Acquires; `undefined` for a client that hung up while it waited for tokens. */
async function begun(setup: ExchangeSetup, call: HttpCall, entityId: string) {
  try {
    return await setup.metering.begin(call.facts, entityId);
  } catch (error) {
    if (call.facts.signal?.aborted === true) return undefined;
    throw error;
  }
}

function forward(
  setup: ExchangeSetup,
  { method, headers }: IncomingMessage,
  path: string,
  upstream: UpstreamSpec,
  key: string,
  body: Buffer,
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
    agent: setup.agents[isSecure ? "https:" : "http:"],
    timeout: setup.timeoutMs,
  });
  forwarded.on("timeout", () =>
    forwarded.destroy(new Error("The upstream did not answer in time")),
  );
  forwarded.end(body);
  return forwarded;
}

async function answered(
  setup: ExchangeSetup,
  response: ServerResponse,
  forwarded: ClientRequest,
  call: HttpCall,
  metered: MeteredCall,
  provider: "openai" | "anthropic",
): Promise<void> {
  let answer: IncomingMessage;
  try {
    answer = await new Promise((resolve, reject) => {
      forwarded.once("response", resolve);
      forwarded.on("error", reject);
    });
  } catch (error) {
    if (response.destroyed) return metered.breakOff();
    await metered.fail({ error });
    const message = "The upstream could not be reached.";
    return send(response, errorAnswer(502, "api_error", message, provider));
  }
  const status = answer.statusCode ?? 502;
  const headers = clientHeaders(answer.headers, call.hidesUsage);
  addLimits(headers, setup, metered);
  response.writeHead(status, headers);
  if (status >= 400) {
    await metered.fail({ status });
    return pump(answer, response, undefined);
  }
  if (call.format === undefined) {
    await metered.keepEstimate();
    return pump(answer, response, undefined);
  }
  const type = answer.headers["content-type"] ?? "";
  const meter = answerMeter(type, call.format, metered, call.hidesUsage);
  try {
    await pump(answer, response, meter, () => metered.touch());
  } finally {
    // An answer that was complete has ended its lease already.
    await metered.breakOff();
  }
}

/** Aborts when the client hangs up while its call waits for tokens. */
function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once("close", () => gone.abort("closed"));
  return gone.signal;
}

/** Forwards each chunk as it comes, at the speed of the client. */
async function pump(
  answer: IncomingMessage,
  response: ServerResponse,
  meter: AnswerMeter | undefined,
  touch?: () => void,
): Promise<void> {
  const isComplete = await new Promise<boolean>((resolve) => {
    answer.on("data", (chunk: Buffer) => {
      touch?.();
      const bytes = meter === undefined ? chunk : meter.push(chunk);
      if (bytes.length > 0 && !response.write(bytes)) answer.pause();
    });
    response.on("drain", () => answer.resume());
    answer.once("end", () => resolve(true));
    // After an end these come too late to matter.
    answer.once("close", () => resolve(false));
    answer.once("error", () => resolve(false));
    response.once("close", () => resolve(false));
  });
  if (!isComplete) {
    response.destroy();
    return;
  }
  if (meter === undefined) return void response.end();
  const { rest, ended } = meter.finish();
  if (rest.length > 0) response.write(rest);
  await ended;
  response.end();
}

/** Adds what the client has left, and nothing about its ancestors. */
function addLimits(
  headers: OutgoingHttpHeaders,
  { nowMs }: ExchangeSetup,
  { statuses: all }: MeteredCall,
): void {
  const own = all[0]?.entityId;
  const statuses = all.filter(({ entityId }) => entityId === own);
  for (const { name, value } of headersOf(["draft", "openai"], { statuses, nowMs: nowMs() })) {
    headers[name.toLowerCase()] = value;
  }
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
