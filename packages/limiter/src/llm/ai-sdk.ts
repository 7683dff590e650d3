/** Limits models of the AI SDK. */

import { errorOf, Refusal } from "../acquire/decision.ts";
import type { RateLimiter } from "../acquire/rate-limiter.ts";
import { aiSdkUsage } from "./ai-sdk-usage.ts";
import { usageOfError } from "./answer-meter.ts";
import { isReasoningModel } from "./call.ts";
import { anyFormat } from "./formats/format.ts";
import { MeteredCall } from "./metered-call.ts";
import { Metering, type NotGranted } from "./metering.ts";
import { observedStream } from "./observed-stream.ts";
import { checkLlmOptions, type LlmOptions } from "./options.ts";
import { textIn } from "./prompt-size.ts";
import { mayRetry } from "./refusal-answer.ts";
import { providerOfSdk } from "./shipped-prices.ts";
import { countOf, fieldsOf } from "./usage.ts";

/** The model that is wrapped. */
export interface AiSdkModel {
  /** The name of the model, which is the resource by default. */
  readonly modelId: string;
  /** The provider, such as `openai.chat`. */
  readonly provider: string;
}

/** Arguments of a middleware; `params` are the call options of the model. */
interface Wrapped {
  readonly params: object;
  readonly model: AiSdkModel;
}

/** The middleware of majors 5, 6 and 7 of the AI SDK, as far as it is needed. */
export interface RateLimitMiddleware {
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

/** Marks by which the AI SDK knows the errors of its own class `APICallError`. */
const ERROR_MARKER = Symbol.for("vercel.ai.error");
const API_CALL_MARKER = Symbol.for("vercel.ai.error.AI_APICallError");

/** Errors of the AI SDK that it throws before it sends anything. */
const UNSENT_ERRORS = new Set([
  "AI_InvalidArgumentError",
  "AI_InvalidPromptError",
  "AI_LoadAPIKeyError",
  "AI_LoadSettingError",
  "AI_UnsupportedFunctionalityError",
]);
/** Options of providers that ask for reasoning, or name input that is stored elsewhere. */
const HIDING_OPTION = /reasoning|thinking|previousResponse|conversation/i;

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
      const call = capped(metered, doGenerate, "doGenerate", { params, model });
      const result = await attempt(metered, params, call, () => metered.chargeMost());
      const { usage, content } = fieldsOf(result);
      metered.seeUsage(aiSdkUsage(usage, model.provider), true);
      metered.seeText(textIn(content));
      await metered.complete();
      return result;
    },
    async wrapStream({ doStream, params, model }) {
      const metered = await begin(metering, params, model, true);
      const call = capped(metered, doStream, "doStream", { params, model });
      const result = await attempt(metered, params, call, () => metered.breakOff());
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
    provider: providerOfSdk(model.provider),
    prompt: tools === undefined ? [prompt] : [prompt, JSON.stringify(tools)],
    hasOutput: true,
    outputMax: countOf(maxOutputTokens),
    hasHiddenParts: hasHiddenParts(params, model.modelId),
    isBackground: false,
    signal: signalOf(params),
  });
  if (granted instanceof MeteredCall) return granted;
  throw refusalError(granted, metering.options.onRefused === "response");
}

/** Returns the call of the model, with the bound of its output that a budget has lowered. */
function capped<R>(
  { outputMax: maxOutputTokens }: MeteredCall,
  call: () => PromiseLike<R>,
  method: "doGenerate" | "doStream",
  { params, model }: Wrapped,
): () => PromiseLike<R> {
  if (maxOutputTokens === undefined) return call;
  const methods = model as AiSdkModel & Record<typeof method, (given: object) => PromiseLike<R>>;
  return () => methods[method]({ ...params, maxOutputTokens });
}

/** Returns whether the text of the answer may say less than is billed. */
function hasHiddenParts(params: object, model: string): boolean {
  const { providerOptions, reasoning } = fieldsOf(params);
  if (isReasoningModel(model) || (reasoning !== undefined && reasoning !== null)) return true;
  return Object.values(fieldsOf(providerOptions)).some((options) =>
    Object.keys(fieldsOf(options)).some((name) => HIDING_OPTION.test(name)),
  );
}

/** Calls the model, and ends the lease where it fails; `stop` ends that of an aborted call. */
async function attempt<R>(
  metered: MeteredCall,
  params: object,
  call: () => PromiseLike<R>,
  stop: () => Promise<void>,
): Promise<R> {
  try {
    return await call();
  } catch (error) {
    if (signalOf(params)?.aborted === true) await stop();
    else await fail(metered, error);
    throw error;
  }
}

async function fail(metered: MeteredCall, error: unknown): Promise<void> {
  const { statusCode, responseBody, name } = fieldsOf(error);
  if (UNSENT_ERRORS.has(String(name))) return metered.refund();
  const usage =
    typeof responseBody === "string" ? usageOfError(responseBody, anyFormat) : undefined;
  const status = typeof statusCode === "number" ? { status: statusCode } : {};
  await metered.fail({ ...status, error, usage });
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
      else if (type === "finish") metered.seeUsage(aiSdkUsage(usage, provider), true);
      return part;
    },
    async complete() {
      await metered.complete();
      return undefined;
    },
    failed: () => metered.breakOff(),
    cancelled: () => metered.breakOff(),
  });
}

function signalOf(params: object): AbortSignal | undefined {
  return (params as { abortSignal?: AbortSignal }).abortSignal;
}

/** Returns the error of a refusal, with the fields that the retry of the AI SDK reads. */
function refusalError(reason: NotGranted, isRetried: boolean): Error {
  if (!(reason instanceof Refusal)) return reason;
  const error = errorOf(reason);
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
