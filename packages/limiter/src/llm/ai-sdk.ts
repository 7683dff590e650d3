/** Limits models of the AI SDK. */

import { Refusal } from "../acquire/decision.ts";
import type { RateLimiter } from "../acquire/rate-limiter.ts";
import { RateLimitExceeded } from "../domain/errors/rate-limit-exceeded.ts";
import { aiSdkUsage } from "./ai-sdk-usage.ts";
import { MeteredCall } from "./metered-call.ts";
import { Metering, type NotGranted } from "./metering.ts";
import { observedStream } from "./observed-stream.ts";
import { checkLlmOptions, type LlmOptions } from "./options.ts";
import { textIn } from "./prompt-size.ts";
import { mayRetry } from "./refusal-answer.ts";
import { countOf, fieldsOf } from "./usage.ts";

/** The model that is wrapped. */
export interface AiSdkModel {
  /** The name of the model, which is the resource by default. */
  readonly modelId: string;
  /** The provider, such as `openai.chat`. */
  readonly provider: string;
}

/** What a middleware is given; `params` are the call options of the model. */
interface Wrapped {
  readonly params: object;
  readonly model: AiSdkModel;
}

/** The middleware of majors 5, 6 and 7 of the AI SDK, as far as it is needed. */
export interface RateLimitMiddleware {
  /** The version of the middleware interface. */
  readonly specificationVersion: "v3";
  /** Limits a call whose answer comes whole. */
  readonly wrapGenerate: <R extends object>(
    options: Wrapped & { readonly doGenerate: () => PromiseLike<R> },
  ) => Promise<R>;
  /** Limits a call whose answer is streamed. */
  readonly wrapStream: <R extends { stream: ReadableStream }>(
    options: Wrapped & { readonly doStream: () => PromiseLike<R> },
  ) => Promise<R>;
}

/** How the AI SDK knows the errors of its own class `APICallError`. */
const ERROR_MARKER = Symbol.for("vercel.ai.error");
const API_CALL_MARKER = Symbol.for("vercel.ai.error.AI_APICallError");

/**
 * Makes a middleware for `wrapLanguageModel` of the AI SDK. A refusal is a `RateLimitExceeded`,
 * which the SDK retries like a 429 when waiting may help; with `onRefused: 'throw'` it is not
 * retried. `fetch` of the options is not used.
 *
 * @example
 * ```ts
 * import { RateLimiter } from 'zae-limiter';
 * import { rateLimitMiddleware } from 'zae-limiter/llm';
 * const limiter = await RateLimiter.open('memory:');
 * const middleware = rateLimitMiddleware(limiter, { entityId: 'team-a' });
 * // wrapLanguageModel({ model: openai('gpt-4o'), middleware })
 * console.log(middleware.specificationVersion); // v3
 * await limiter.close();
 * ```
 */
export function rateLimitMiddleware(
  limiter: RateLimiter,
  options: LlmOptions,
): RateLimitMiddleware {
  const metering = new Metering(limiter, checkLlmOptions(options));
  return {
    specificationVersion: "v3",
    async wrapGenerate({ doGenerate, params, model }) {
      const metered = await begin(metering, params, model, false);
      const result = await attempt(metered, params, doGenerate);
      const { usage, content } = fieldsOf(result);
      metered.seeUsage(aiSdkUsage(usage, model.provider));
      metered.seeText(textIn(content));
      await metered.complete();
      return result;
    },
    async wrapStream({ doStream, params, model }) {
      const metered = await begin(metering, params, model, true);
      const result = await attempt(metered, params, doStream);
      return { ...result, stream: meteredParts(result.stream, metered, model.provider) };
    },
  };
}

async function begin(
  metering: Metering,
  params: object,
  model: AiSdkModel,
  stream: boolean,
): Promise<MeteredCall> {
  const { prompt, tools, maxOutputTokens } = fieldsOf(params);
  const granted = await metering.begin({
    call: { api: "ai-sdk", model: model.modelId, stream, body: params },
    prompt: tools === undefined ? [prompt] : [prompt, JSON.stringify(tools)],
    hasOutput: true,
    outputMax: countOf(maxOutputTokens),
    signal: signalOf(params),
  });
  if (granted instanceof MeteredCall) return granted;
  throw refusalError(granted, metering.options.onRefused === "response");
}

/** Calls the model, and ends the lease where it fails. */
async function attempt<R>(
  metered: MeteredCall,
  params: object,
  call: () => PromiseLike<R>,
): Promise<R> {
  try {
    return await call();
  } catch (error) {
    const { statusCode } = fieldsOf(error);
    const status = typeof statusCode === "number" ? { status: statusCode } : {};
    if (signalOf(params)?.aborted === true) await metered.breakOff();
    else await metered.fail({ ...status, error });
    throw error;
  }
}

function meteredParts(
  parts: ReadableStream,
  metered: MeteredCall,
  provider: string,
): ReadableStream {
  metered.startStreaming();
  return observedStream<unknown>(parts, {
    chunk(part) {
      metered.touch();
      const { type, delta, usage } = fieldsOf(part);
      if (typeof delta === "string") metered.seeText(delta);
      else if (type === "finish") metered.seeUsage(aiSdkUsage(usage, provider));
      return part;
    },
    complete: () => ({ ended: metered.complete() }),
    failed: () => metered.breakOff(),
    cancelled: () => metered.breakOff(),
  });
}

function signalOf(params: object): AbortSignal | undefined {
  return (params as { abortSignal?: AbortSignal }).abortSignal;
}

/** Returns the error of a refusal, with what the retry of the AI SDK looks at. */
function refusalError(reason: NotGranted, isRetried: boolean): Error {
  if (!(reason instanceof Refusal)) return reason;
  const error = new RateLimitExceeded(reason.statuses);
  if (!isRetried || !mayRetry(error.retryAfterSeconds)) return error;
  const retryAfterMs = String(Math.ceil(error.retryAfterSeconds * 1000));
  const facts = {
    [ERROR_MARKER]: true,
    [API_CALL_MARKER]: true,
    isRetryable: true,
    statusCode: 429,
    responseHeaders: { "retry-after": error.retryAfterHeader, "retry-after-ms": retryAfterMs },
  };
  for (const key of Reflect.ownKeys(facts)) {
    Object.defineProperty(error, key, { value: Reflect.get(facts, key) });
  }
  return error;
}
