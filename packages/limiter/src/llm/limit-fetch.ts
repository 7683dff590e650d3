/** Limits calls that are made with `fetch`. */

import { errorOf, Refusal } from "../acquire/decision.ts";
import type { RateLimiter } from "../acquire/rate-limiter.ts";
import { answerMeter, usageOfError } from "./answer-meter.ts";
import { formatAt, type HttpCall, type HttpRequest, readHttpCall } from "./call.ts";
import { anyFormat } from "./formats/format.ts";
import { MeteredCall } from "./metered-call.ts";
import { Metering, type NotGranted } from "./metering.ts";
import { observedStream } from "./observed-stream.ts";
import { checkLlmOptions, type LlmOptions } from "./options.ts";
import { withOutputMax } from "./output-cap.ts";
import { refusalAnswer } from "./refusal-answer.ts";
import { parsedObject } from "./usage.ts";

type Input = Parameters<typeof fetch>[0];
type Init = NonNullable<Parameters<typeof fetch>[1]>;
/** Sends the request with another body where one is given. */
type Send = (body: string | undefined) => Promise<Response>;

/** The part of an error that is read, in bytes. */
const ERROR_BYTES_MAX = 64 * 1024;

/**
 * Makes a `fetch` that limits calls to language models, for every SDK that takes one.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * import { limitFetch } from 'zae-limiter/llm';
 * const limiter = await RateLimiter.open('memory:');
 * await limiter.repository.limits.setSystem(['rpd:60', 'tpd:10000']);
 * const usage = { prompt_tokens: 9, completion_tokens: 3 };
 * const upstream = async () => Response.json({ usage });
 * const fetch = limitFetch(limiter, { entityId: 'team-a', fetch: upstream });
 * const body = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }] });
 * const url = 'https://api.openai.com/v1/chat/completions';
 * const answer = await fetch(url, { method: 'POST', body });
 * await answer.json();
 * const target = { entityId: 'team-a', resource: 'gpt-4o' };
 * console.log(await limiter.available(target)); // { rpd: 59, tpd: 9988 }
 * await limiter.close();
 * ```
 */
export function limitFetch(limiter: RateLimiter, options: LlmOptions): typeof fetch {
  const metering = new Metering(limiter, checkLlmOptions(options));
  return async function limitedFetch(input: Input, init: Init = {}): Promise<Response> {
    const forward = metering.options.fetch ?? fetch;
    const request = await requestOf(input, init);
    const send: Send = (body) =>
      forward(input, body === request.body ? init : changed(request, init, body));
    return limitedCall(metering, request, send);
  };
}

/** The `Middleware` of `@anthropic-ai/sdk`, as far as it is needed. */
export type AnthropicMiddleware = <R extends AnthropicRequest>(
  request: R,
  next: (request: R) => Promise<Response>,
) => Promise<Response>;

/** A request as the SDK hands it to a middleware. */
export interface AnthropicRequest {
  /** The address of the request. */
  readonly url: string;
  /** The method; `POST` for every call to a model. */
  readonly method?: string | undefined;
  /** The headers. */
  readonly headers?: unknown;
  /** The body. */
  readonly body?: unknown;
  /** Aborts the request. */
  readonly signal?: AbortSignal | null | undefined;
}

/**
 * Makes a middleware for the `middleware` option of `@anthropic-ai/sdk` 1.x. It runs for each
 * attempt, and an error that it throws reaches the caller as it is.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * import { anthropicMiddleware } from 'zae-limiter/llm';
 * const limiter = await RateLimiter.open('memory:');
 * const middleware = [anthropicMiddleware(limiter, { entityId: 'team-a', onRefused: 'throw' })];
 * // new Anthropic({ middleware })
 * console.log(middleware.length); // 1
 * await limiter.close();
 * ```
 */
export function anthropicMiddleware(
  limiter: RateLimiter,
  options: LlmOptions,
): AnthropicMiddleware {
  const metering = new Metering(limiter, checkLlmOptions(options));
  return async function limitedRequest(request, next) {
    const { url, method = "GET", headers, body, signal } = request;
    const seen = await requestOf(url, { method, headers, body, signal } as Init);
    const send: Send = (sent) => next(sent === seen.body ? request : { ...request, body: sent });
    return limitedCall(metering, seen, send);
  };
}

async function limitedCall(
  metering: Metering,
  request: HttpRequest,
  send: Send,
): Promise<Response> {
  const call = readHttpCall(request);
  const { signal } = request;
  const isAborted = () => signal?.aborted === true;
  const metered = await metering.begin(call.facts);
  if (!(metered instanceof MeteredCall)) {
    return refused(metered, metering.options.onRefused, call);
  }
  if (isAborted()) {
    await metered.refund();
    throw signal?.reason;
  }
  let response: Response;
  try {
    response = await send(bodyToSend(call, metered));
  } catch (error) {
    if (!isAborted()) await metered.fail({ error });
    else if (call.facts.call.stream) await metered.breakOff();
    else await metered.chargeMost();
    throw error;
  }
  return response.ok
    ? meteredResponse(response, call, metered, signal)
    : failedResponse(response, call, metered);
}

/** Returns the body to send, with the bound of the output that a budget has lowered. */
function bodyToSend({ body, format }: HttpCall, { outputMax }: MeteredCall): string | undefined {
  const fields = outputMax === undefined ? undefined : parsedObject(body ?? "");
  if (format === undefined || outputMax === undefined || fields === undefined) return body;
  return JSON.stringify(withOutputMax(format, fields, outputMax));
}

async function meteredResponse(
  response: Response,
  { format, hidesUsage }: HttpCall,
  metered: MeteredCall,
  signal: AbortSignal | undefined,
): Promise<Response> {
  if (format === undefined || response.body === null) {
    await metered.keepEstimate();
    return response;
  }
  const contentType = response.headers.get("content-type") ?? "";
  // `fetch` has decompressed the body, although the header still says how it was compressed.
  const meter = answerMeter({ contentType, contentEncoding: "" }, format, metered, hidesUsage);
  const stop = () => (metered.isStreaming ? metered.breakOff() : metered.chargeMost());
  // A reader that has aborted may never read again, and would not see the error of the stream.
  const aborted = () => void stop();
  signal?.addEventListener("abort", aborted, { once: true });
  const after = async (end: Promise<void>) => {
    signal?.removeEventListener("abort", aborted);
    await end;
  };
  const body = observedStream<Uint8Array>(response.body, {
    chunk(chunk) {
      metered.touch();
      const forwarded = meter.push(chunk);
      return forwarded.length === 0 ? undefined : forwarded;
    },
    async complete() {
      const { rest, pendingId } = await meter.finish();
      await after(pendingId === undefined ? Promise.resolve() : metered.chargeMost());
      return rest.length === 0 ? undefined : rest;
    },
    failed: () => after(signal?.aborted === true ? stop() : metered.breakOff()),
    cancelled: () => after(stop()),
  });
  return sameResponse(response, body, hidesUsage);
}

/** Ends the lease of a call that was answered with an error, whose body may state usage. */
async function failedResponse(
  response: Response,
  { format = anyFormat }: HttpCall,
  metered: MeteredCall,
): Promise<Response> {
  const { status, headers } = response;
  const isJson = headers.get("content-type")?.includes("json") === true;
  const text = isJson ? await startOf(response.clone()) : "";
  await metered.fail({ status, usage: usageOfError(text, format) });
  return response;
}

/** Returns the text of a short body; the beginning of a long one, or of one that breaks off. */
async function startOf({ body }: Response): Promise<string> {
  const reader = body?.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    while (bytes <= ERROR_BYTES_MAX) {
      const read = await reader?.read();
      if (read === undefined || read.done) break;
      chunks.push(read.value);
      bytes += read.value.length;
    }
  } catch {
    // The caller gets the same error from its own copy of the body.
  }
  // Not awaited: it would wait until the caller has read its copy.
  void reader?.cancel().catch(() => {});
  return Buffer.concat(chunks).toString("utf8");
}

/** Returns a copy of the response with another body. The constructor does not take the URL. */
function sameResponse(
  response: Response,
  body: ReadableStream<Uint8Array>,
  hasNewLength: boolean,
): Response {
  const { status, statusText, headers, url } = response;
  const same = new Response(body, { status, statusText, headers });
  if (hasNewLength) same.headers.delete("content-length");
  Object.defineProperty(same, "url", { value: url });
  return same;
}

function refused(reason: NotGranted, onRefused: "response" | "throw", call: HttpCall): Response {
  if (onRefused === "throw") {
    throw reason instanceof Refusal ? errorOf(reason) : reason;
  }
  const { body, ...rest } = refusalAnswer(reason, call.format?.provider ?? "openai");
  return new Response(body, rest);
}

/** Reads a body of text, or of bytes that are text; others are left alone. */
async function requestOf(input: Input, init: Init): Promise<HttpRequest> {
  const request = input instanceof Request ? input : undefined;
  const url = request?.url ?? String(input);
  const method = init.method ?? request?.method ?? "GET";
  const signal = init.signal ?? request?.signal ?? undefined;
  const headers = new Headers((init.headers ?? request?.headers) as Headers | undefined);
  if (request === undefined || init.body !== undefined) {
    return { url, method, headers, body: textOf(init.body), signal };
  }
  // The body of another path may be an upload of any length.
  const body = formatAt(method, url) && (await request.clone().text());
  return { url, method, headers, body, signal };
}

function textOf(body: unknown): string | undefined {
  if (typeof body === "string") return body;
  const isBytes = body instanceof ArrayBuffer || ArrayBuffer.isView(body);
  return isBytes ? new TextDecoder().decode(body as ArrayBuffer) : undefined;
}

/** Returns the request with another body, whose length is not the one that was announced. */
function changed({ headers: given }: HttpRequest, init: Init, body: string | undefined): Init {
  const headers = new Headers(given);
  headers.delete("content-length");
  return { ...init, headers, body: body ?? null };
}
