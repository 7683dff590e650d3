/** Limits calls that are made with `fetch`. */

import { Refusal } from "../acquire/decision.ts";
import type { RateLimiter } from "../acquire/rate-limiter.ts";
import { RateLimitExceeded } from "../domain/errors/rate-limit-exceeded.ts";
import { answerMeter } from "./answer-meter.ts";
import { bufferOf } from "./byte-text.ts";
import { formatAt, type HttpCall, type HttpRequest, readHttpCall } from "./http-call.ts";
import { MeteredCall } from "./metered-call.ts";
import { Metering, type NotGranted } from "./metering.ts";
import { observedStream } from "./observed-stream.ts";
import { checkLlmOptions, type LlmOptions } from "./options.ts";
import { refusalAnswer } from "./refusal-answer.ts";

type Input = Parameters<typeof fetch>[0];
type Init = NonNullable<Parameters<typeof fetch>[1]>;
/** Sends the request with another body where one is given. */
type Send = (body: string | undefined) => Promise<Response>;

/**
 * Makes a `fetch` that limits calls to language models, for every SDK that takes one.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * import { limitFetch } from 'zae-limiter/llm';
 * const limiter = await RateLimiter.open('memory:');
 * await limiter.repository.limits.setSystem(['rpm:60/day', 'tpm:10000/day']);
 * const usage = { prompt_tokens: 9, completion_tokens: 3 };
 * const upstream = async () => Response.json({ usage });
 * const fetch = limitFetch(limiter, { entityId: 'team-a', fetch: upstream });
 * const body = JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }] });
 * const url = 'https://api.openai.com/v1/chat/completions';
 * const answer = await fetch(url, { method: 'POST', body });
 * await answer.json();
 * const target = { entityId: 'team-a', resource: 'gpt-4o' };
 * console.log(await limiter.available(target)); // { rpm: 59, tpm: 9988 }
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
    return limitedCall(metering, seen, () => next(request));
  };
}

async function limitedCall(
  metering: Metering,
  request: HttpRequest,
  send: Send,
): Promise<Response> {
  const call = readHttpCall(request);
  const metered = await metering.begin(call.facts);
  if (!(metered instanceof MeteredCall)) {
    return refused(metered, metering.options.onRefused, call);
  }
  let response: Response;
  try {
    response = await send(call.body);
  } catch (error) {
    if (request.signal?.aborted === true) await metered.breakOff();
    else await metered.fail({ error });
    throw error;
  }
  if (!response.ok) {
    await metered.fail({ status: response.status });
    return response;
  }
  return meteredResponse(response, call, metered, request.signal);
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
  const meter = answerMeter(
    response.headers.get("content-type") ?? "",
    format,
    metered,
    hidesUsage,
  );
  // A reader that has aborted may never read again, and would not see the error of the stream.
  const aborted = () => void metered.breakOff();
  signal?.addEventListener("abort", aborted, { once: true });
  const ended = async (end: Promise<void>) => {
    signal?.removeEventListener("abort", aborted);
    await end;
  };
  const body = observedStream<Uint8Array>(response.body, {
    chunk(chunk) {
      metered.touch();
      const forwarded = meter.push(chunk);
      return forwarded.length === 0 ? undefined : forwarded;
    },
    complete() {
      const { rest, ended: end } = meter.finish();
      return { last: rest.length === 0 ? undefined : rest, ended: ended(end) };
    },
    failed: () => ended(metered.breakOff()),
    cancelled: () => ended(metered.breakOff()),
  });
  return sameResponse(response, body, hidesUsage);
}

/** A response is made of its body, its status and its headers; its URL has to be copied. */
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
    throw reason instanceof Refusal ? new RateLimitExceeded(reason.statuses) : reason;
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
  const body =
    request !== undefined && init.body === undefined
      ? formatAt(method, url) !== undefined
        ? await request.clone().text()
        : undefined
      : textOf(init.body);
  return {
    url,
    method,
    body,
    signal,
    headersOf: () => new Headers((init.headers ?? request?.headers) as Headers | undefined),
  };
}

function textOf(body: unknown): string | undefined {
  if (typeof body === "string") return body;
  if (body instanceof ArrayBuffer) return Buffer.from(body).toString("utf8");
  return ArrayBuffer.isView(body) ? bufferOf(body).toString("utf8") : undefined;
}

/** The same request with another body, whose length is not the one that was announced. */
function changed({ headersOf }: HttpRequest, init: Init, body: string | undefined): Init {
  const headers = headersOf();
  headers.delete("content-length");
  return { ...init, headers, body: body ?? null };
}
