/** Options of every LLM adapter, checked when the adapter is made. */

import { CURRENCIES, isMoney } from "../core/micro-dollars.ts";
import { checkFields, checkInteger, checkNumber, show, TOKENS_MAX } from "../domain/check.ts";
import { ValidationError } from "../domain/errors/errors.ts";
import { checkEntityId, checkLimitName } from "../domain/names.ts";
import {
  ANY,
  checkByTable,
  FLAG,
  FUNCTION,
  number,
  type OptionTable,
  oneOf,
  whole,
} from "../domain/options.ts";
import { type PriceEntry, PriceList } from "../domain/price-list.ts";
import type { LlmApi } from "./formats/format.ts";
import type { Reserve } from "./output-estimate.ts";
import type { Tokenizer } from "./prompt-size.ts";
import { checkTag } from "./tags.ts";

/** A call to a model, as `entityId` and `resource` see it. */
export interface LlmCall {
  /** The API that is called. */
  readonly api: LlmApi | "ai-sdk";
  /** Empty where the request names no model. */
  readonly model: string;
  /** Whether the answer is streamed. */
  readonly stream: boolean;
  /** The address of a call over HTTP. */
  readonly url?: string;
  /** Headers of the request, of calls over HTTP. */
  readonly headers?: Headers;
  /** The parsed body of a request, or the parameters of the AI SDK. */
  readonly body: unknown;
}

/** Names of the limits that count calls and tokens. A kind that is not set keeps its default. */
export interface LlmCount {
  /** Count 1 per call. Default `rpm` and `rpd`. */
  readonly requests?: string | readonly string[];
  /** Count 1 per call, and as slots hold it until the call has ended. Default `parallel`. */
  readonly slots?: string | readonly string[];
  /** Count input and output. Default `tpm` and `tpd`. */
  readonly tokens?: string | readonly string[];
  /** Default `itpm`. */
  readonly inputTokens?: string | readonly string[];
  /** Default `otpm`. */
  readonly outputTokens?: string | readonly string[];
  /**
   * Count what the call costs, in millionths of the currency that the name begins with. Default
   * `usd`, `eur` and the other currencies.
   */
  readonly money?: string | readonly string[];
  /** The part of a cached input token that counts, from 0 (default) to 1. */
  readonly cachedTokens?: number;
}

/** A failure of an upstream: an answer with an error, or no answer. */
export interface LlmFailure {
  /** The status of the answer; `undefined` when there was none. */
  readonly status?: number;
  /** The error, when there was no answer. */
  readonly error?: unknown;
}

/**
 * Options of `limitFetch`, `rateLimitMiddleware` and `anthropicMiddleware`.
 *
 * @example
 * ```ts
 * import type { LlmOptions } from 'zae-limiter/llm';
 * const options: LlmOptions = {
 *   entityId: (call) => call.headers?.get('x-team') ?? 'team-a',
 *   count: { cachedTokens: 0.1 },
 *   maxWaitSeconds: 5,
 * };
 * ```
 */
export interface LlmOptions {
  /** The entity that pays: an id, or a function of the call. */
  readonly entityId: string | ((call: LlmCall) => string | Promise<string>);
  /** Default: the model's name. */
  readonly resource?: (call: LlmCall) => string;
  /**
   * The cost centre that counts the call too, as the entity `tag:NAME`, and never refuses it: a
   * name, or a function of the call; none where that returns `undefined`.
   */
  readonly tag?: string | ((call: LlmCall) => string | undefined);
  /** The names of the limits that count requests and tokens. */
  readonly count?: LlmCount;
  /** After so long without a read, a stream is counted by what was streamed. Default 60. */
  readonly idleSeconds?: number;
  /**
   * Whether a failed call is refunded. Default: after a 429, a 5xx, and an error that proves that
   * nothing was sent. An error that states usage is counted by it, and this is not asked.
   */
  readonly refundWhen?: (failure: LlmFailure) => boolean;
  /** Default: UTF-8 bytes / 4. */
  readonly tokenizer?: Tokenizer;
  /** How much output to consume before it is known. Default `learned`. */
  readonly reserve?: Reserve;
  /** How much output limits in money reserve. Default: as `reserve`. */
  readonly reserveMoney?: Reserve;
  /**
   * Whether to lower the bound of the output in the request to what its limits in money still pay
   * for. A call for which they pay less than 256 tokens is refused. Default `false`.
   */
  readonly capOutput?: boolean;
  /** Own prices, after those that the namespace stores and before the shipped ones. */
  readonly prices?: readonly PriceEntry[];
  /**
   * Whether to refuse a call of a model without a price where a limit in money applies, which is
   * the default; `allow` counts no money for it, and warns.
   */
  readonly unpriced?: "refuse" | "allow";
  /** How many tokens a stream may be off before its amounts are corrected. Default 1000. */
  readonly flushEvery?: number;
  /** Default `response`: a 429 in the provider's own shape. */
  readonly onRefused?: "response" | "throw";
  /** How long a call may wait for tokens. Default 0. */
  readonly maxWaitSeconds?: number;
  /** Default: the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/** Names of the limits of each kind. */
export interface CountedLimits extends Kinds {
  readonly cachedTokens: number;
  /** Names that the caller set: the entity or an ancestor must have them. */
  readonly given: readonly string[];
}

/** `LlmOptions` with all defaults. */
export interface CheckedLlmOptions {
  readonly entityId: LlmOptions["entityId"];
  readonly resource: ((call: LlmCall) => string) | undefined;
  readonly tag: LlmOptions["tag"];
  readonly count: CountedLimits;
  readonly idleMs: number;
  readonly refundWhen: (failure: LlmFailure) => boolean;
  readonly tokenizer: Tokenizer | undefined;
  readonly reserve: Reserve;
  readonly reserveMoney: Reserve | undefined;
  readonly capOutput: boolean;
  readonly prices: readonly PriceEntry[];
  readonly unpriced: "refuse" | "allow";
  readonly flushEvery: number;
  readonly onRefused: "response" | "throw";
  readonly maxWaitSeconds: number;
  readonly fetch: typeof fetch | undefined;
}

const KINDS = ["requests", "slots", "tokens", "inputTokens", "outputTokens", "money"] as const;

type Kind = (typeof KINDS)[number];
type Kinds = Readonly<Record<Kind, readonly string[]>>;

const DEFAULT_LIMITS: Kinds = {
  requests: ["rpm", "rpd"],
  slots: ["parallel"],
  tokens: ["tpm", "tpd"],
  inputTokens: ["itpm"],
  outputTokens: ["otpm"],
  money: CURRENCIES,
};

/** Codes of errors of a connection that was never made, besides those of its certificate. */
const UNSENT_CODES = new Set(["UND_ERR_CONNECT_TIMEOUT", "ERR_INVALID_URL", "EAI_AGAIN"]);
const UNSENT_CALLS = new Set(["connect", "getaddrinfo"]);
const CERTIFICATE_CODE = /CERT|^ERR_TLS_|^UNABLE_TO_/;
/** How many causes of an error are followed: they may form a circle. */
const CAUSES_MAX = 5;

/** Refunds a call that the upstream did not serve. An error after it was sent proves nothing. */
function refundsByDefault({ status, error }: LlmFailure): boolean {
  if (status !== undefined) return status === 429 || status >= 500;
  let cause: unknown = error;
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth += 1) {
    const { code, syscall } = cause as NodeJS.ErrnoException;
    if (UNSENT_CALLS.has(syscall ?? "") || UNSENT_CODES.has(code ?? "")) return true;
    if (typeof code === "string" && CERTIFICATE_CODE.test(code)) return true;
    cause = cause instanceof AggregateError ? cause.errors[0] : cause.cause;
  }
  return false;
}

function checkReserve(field: string, value: unknown): void {
  if (value === "learned" || value === "max") return;
  if (typeof value === "number") return void checkInteger(field, value, 0, TOKENS_MAX);
  const reason = `expected "learned", "max" or a number of tokens, got ${show(value)}`;
  throw new ValidationError(field, value, reason);
}

function checkPrices(field: string, value: unknown): void {
  if (Array.isArray(value)) return void new PriceList(value as readonly PriceEntry[]);
  const reason = `expected a list of { model, price }, got ${show(value)}`;
  throw new ValidationError(field, value, reason);
}

const OPTIONS = {
  entityId: { check: (_, value) => typeof value === "function" || checkEntityId(value) },
  resource: { check: FUNCTION },
  tag: { check: (field, value) => typeof value === "function" || checkTag(field, value) },
  count: { check: ANY },
  idleSeconds: { check: number(0.001), default: 60 },
  refundWhen: { check: FUNCTION, default: refundsByDefault },
  tokenizer: { check: FUNCTION },
  reserve: { check: checkReserve, default: "learned" },
  reserveMoney: { check: checkReserve },
  capOutput: { check: FLAG, default: false },
  prices: { check: checkPrices, default: [] },
  unpriced: { check: oneOf("refuse", "allow"), default: "refuse" },
  flushEvery: { check: whole(1, TOKENS_MAX), default: 1000 },
  onRefused: { check: oneOf("response", "throw"), default: "response" },
  maxWaitSeconds: { check: number(0), default: 0 },
  fetch: { check: FUNCTION },
} as const satisfies OptionTable<LlmOptions>;

/** Checks everything that can be checked without a call. */
export function checkLlmOptions(options: LlmOptions): CheckedLlmOptions {
  const { entityId, resource, tag, count, idleSeconds, tokenizer, reserveMoney, fetch, ...rest } =
    checkByTable(options, OPTIONS);
  if (entityId === undefined) checkEntityId(entityId);
  return {
    ...rest,
    entityId,
    resource,
    tag,
    count: checkCount(count ?? {}),
    idleMs: 1000 * idleSeconds,
    tokenizer,
    reserveMoney,
    fetch,
  };
}

function checkCount(count: LlmCount): CountedLimits {
  checkFields("count", count, [...KINDS, "cachedTokens"]);
  const cachedTokens = checkNumber("count.cachedTokens", count.cachedTokens ?? 0, 0, 1);
  const kinds = Object.fromEntries(KINDS.map((kind) => [kind, names(kind, count)])) as Kinds;
  const wrong = kinds.money.find((name) => !isMoney(name));
  if (wrong !== undefined) {
    const reason = `expected names of money, such as usd or usd_…, got "${wrong}"`;
    throw new ValidationError("count.money", wrong, reason);
  }
  const all = Object.values(kinds).flat();
  const twice = all.find((name, at) => all.indexOf(name) !== at);
  if (twice !== undefined) {
    const reason = `expected each limit to count one thing, but "${twice}" is named twice`;
    throw new ValidationError("count", twice, reason);
  }
  return {
    ...kinds,
    cachedTokens,
    given: KINDS.flatMap((kind) => (count[kind] === undefined ? [] : kinds[kind])),
  };
}

function names(kind: Kind, count: LlmCount): readonly string[] {
  const value = count[kind] ?? DEFAULT_LIMITS[kind];
  return (typeof value === "string" ? [value] : [...value]).map(checkLimitName);
}
