/** Reads what a request to a provider asks for. */

import { TOKENS_MAX } from "../domain/check.ts";
import { deploymentOf, type Format, formatOf } from "./formats/format.ts";
import type { LlmCall } from "./options.ts";
import { countOf, type Fields, fieldsOf, parsedObject } from "./usage.ts";

/** Facts of a call that are known before it is made. */
export interface CallFacts {
  readonly call: LlmCall;
  /** The host of the upstream, which may have prices of its own. */
  host?: string | undefined;
  /** The provider, of calls without a host. */
  readonly provider?: string | undefined;
  /** Whether the provider bills the call by its usage; absent: where the call has a prompt. */
  readonly isBilled?: boolean;
  /** The input that the model reads; `undefined` where tokens are not estimated, or were. */
  prompt: readonly unknown[] | undefined;
  /** `false` for calls that have no output, such as embeddings. */
  readonly hasOutput: boolean;
  /** The most output there can be, over all choices. */
  readonly outputMax: number | undefined;
  /** The most output that the model can have in one choice, where the operator states it. */
  modelOutputMax?: number | undefined;
  /** The part of the output that the request sets apart for thinking. Default 0. */
  readonly thinkingTokens?: number | undefined;
  /** How many answers to one prompt are asked for. Default 1. */
  readonly choices?: number | undefined;
  /** The text says less than is billed: reasoning is hidden, or input is stored elsewhere. */
  readonly hasHiddenParts: boolean;
  /** The provider works on after it has answered. */
  readonly isBackground: boolean;
  signal: AbortSignal | undefined;
}

/** A request over HTTP as far as it has been read. */
export interface HttpRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  /** `undefined` where it is no text, such as an upload. */
  readonly body: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A request over HTTP with what its body says. */
export interface HttpCall {
  readonly facts: CallFacts;
  /** `undefined`: only the request is counted. */
  readonly format: Format | undefined;
  /** The body to send. */
  readonly body: string | undefined;
  /** Whether the answer will have an event that the caller did not ask for. */
  readonly hidesUsage: boolean;
}

/** Definitions of tools: the model reads their keys too. */
const DEFINITION_FIELDS = new Set(["tools", "functions", "response_format", "text"]);
/** Fields of requests that ask for reasoning. */
const REASONING_FIELDS = ["reasoning", "reasoning_effort", "thinking"];
/** Fields inside a prompt that name input which is stored elsewhere. */
const STORED_FIELDS = new Set(["file_id", "file_ids", "file_url", "vector_store_ids"]);
const STORED_ITEM = "item_reference";
/** Models of OpenAI whose reasoning is never shown: the o-series, and from GPT-5 on. */
const REASONING_MODEL = /^(?:o[1-9](?![a-z\d])|gpt-[5-9])/;

/** Returns what is known of a call by its body, which is parsed already. */
export function readFacts(
  format: Format,
  body: Fields,
  call: LlmCall,
  signal?: AbortSignal,
): CallFacts {
  const choices = choicesOf(format, body);
  return {
    call,
    prompt: format.api === "other" ? undefined : promptOf(format, body),
    hasOutput: format.hasOutput,
    outputMax: outputMaxOf(format, body, choices),
    modelOutputMax: undefined,
    thinkingTokens: countOf(fieldsOf(body["thinking"])["budget_tokens"]),
    choices,
    hasHiddenParts: hasHiddenParts(format, body, call.model),
    isBackground: body["background"] === true && format.pendingIdOf !== undefined,
    signal,
  };
}

/**
 * Returns the body of a stream with a field that asks for usage; `undefined` where nothing has to
 * be added. Streams of OpenAI state their usage only to callers that ask.
 */
export function askForUsage(format: Format, body: Fields): Fields | undefined {
  if (format.isAskedForUsage !== true || body["stream"] !== true) return undefined;
  const options = fieldsOf(body["stream_options"]);
  if (options["include_usage"] === true) return undefined;
  return { ...body, stream_options: { ...options, include_usage: true } };
}

/** Reads a request; one of an unknown path, or without a body in JSON, is `other`. */
export function readHttpCall({ url, method, headers, body: text, signal }: HttpRequest): HttpCall {
  const path = pathOf(url);
  const fields = text?.trimStart().startsWith("{") ? parsedObject(text) : undefined;
  const body = fields ?? {};
  const format = fields === undefined ? undefined : formatAt(method, url);
  const { model: named, stream } = body;
  // Azure serves the deployment of the path, whatever the body names.
  const model = deploymentOf(path) ?? (typeof named === "string" ? named : "");
  const api = format?.api ?? "other";
  const call: LlmCall = { api, model, stream: stream === true, url, headers, body: fields };
  if (format === undefined) {
    const facts = { ...uncounted(call, signal), isBilled: method.toUpperCase() !== "GET" };
    return { facts, format, body: text, hidesUsage: false };
  }
  const facts = readFacts(format, body, call, signal);
  facts.host = hostOf(url);
  const asking = askForUsage(format, body);
  if (asking === undefined) return { facts, format, body: text, hidesUsage: false };
  return { facts, format, body: JSON.stringify(asking), hidesUsage: true };
}

/** Returns the host of an address, with its port where it has one. */
function hostOf(url: string): string | undefined {
  return URL.canParse(url) ? new URL(url).host : undefined;
}

/** Returns the format of a request by its URL; `undefined` where only the request is counted. */
export function formatAt(method: string, url: string): Format | undefined {
  return formatOf(method, pathOf(url));
}

/** Returns whether the name is that of a model whose reasoning is never shown. */
export function isReasoningModel(model: string): boolean {
  return REASONING_MODEL.test(model.slice(model.lastIndexOf("/") + 1).toLowerCase());
}

/** Returns the facts of a call whose tokens are not counted. */
export function uncounted(call: LlmCall, signal: AbortSignal | undefined): CallFacts {
  return {
    call,
    prompt: undefined,
    hasOutput: false,
    outputMax: undefined,
    hasHiddenParts: false,
    isBackground: false,
    signal,
  };
}

/** Returns the path of a URL, which may be relative. */
function pathOf(url: string): string {
  // The query of a relative URL may have a URL in it.
  const from = url.startsWith("/") ? -1 : url.indexOf("://");
  const slash = url.indexOf("/", from === -1 ? 0 : from + 3);
  const path = slash === -1 ? "/" : url.slice(slash);
  const end = path.search(/[?#]/);
  return end === -1 ? path : path.slice(0, end);
}

function promptOf(format: Format, body: Fields): unknown[] {
  const prompt: unknown[] = [];
  for (const field of format.promptFields) {
    const value = body[field];
    if (value === undefined || value === null) continue;
    prompt.push(DEFINITION_FIELDS.has(field) ? JSON.stringify(value) : value);
  }
  return prompt;
}

/** Returns how many answers a request asks for, at least 1. */
function choicesOf({ choicesFields = [], api }: Format, body: Fields): number {
  const given = choicesFields.map((field) => countOf(body[field]) ?? 1);
  const { prompt } = body;
  // Each text of a list is a prompt of its own; a list of numbers is one prompt.
  const isList = api === "completions" && Array.isArray(prompt) && typeof prompt[0] !== "number";
  return Math.max(1, ...given) * (isList ? Math.max(1, prompt.length) : 1);
}

function outputMaxOf({ maxFields }: Format, body: Fields, choices: number): number | undefined {
  // Servers differ in which of two fields they read, so the larger one counts.
  const given = maxFields.map((field) => countOf(body[field])).filter((max) => max !== undefined);
  if (given.length === 0) return undefined;
  return Math.min(TOKENS_MAX, Math.max(...given) * choices);
}

function hasHiddenParts(format: Format, body: Fields, model: string): boolean {
  if (!format.hasOutput) return false;
  const isSet = (field: string) => body[field] !== undefined && body[field] !== null;
  return (
    REASONING_FIELDS.some(isSet) ||
    (format.storedFields?.some(isSet) ?? false) ||
    isReasoningModel(model) ||
    format.promptFields.some((field) => namesStoredInput(body[field]))
  );
}

function namesStoredInput(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some(namesStoredInput);
  for (const [key, inner] of Object.entries(value)) {
    if (STORED_FIELDS.has(key) || inner === STORED_ITEM || namesStoredInput(inner)) return true;
  }
  return false;
}

/** Returns facts that may stay in memory until the answer ends. */
export function withoutPrompt(facts: CallFacts): CallFacts {
  const { call, hasOutput, outputMax, modelOutputMax, thinkingTokens, choices } = facts;
  const { hasHiddenParts, isBackground, host, provider } = facts;
  // Written out: V8 reads the fields of a spread object more slowly.
  return {
    call,
    host,
    provider,
    prompt: undefined,
    hasOutput,
    outputMax,
    modelOutputMax,
    thinkingTokens,
    choices,
    hasHiddenParts,
    isBackground,
    signal: undefined,
  };
}
