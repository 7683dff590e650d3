/** What a request over HTTP to a provider asks for. */

import { TextMemo } from "../base/text-memo.ts";
import type { Format, LlmApi } from "./formats/format.ts";
import { deploymentOf, formatOf } from "./formats/format-of.ts";
import type { CallFacts } from "./metering.ts";
import type { LlmCall } from "./options.ts";
import { countOf, type Fields, fieldsOf } from "./usage.ts";

/** A request as far as it has been read. */
export interface HttpRequest {
  readonly url: string;
  readonly method: string;
  /** Makes the headers, which most calls never look at. */
  readonly headersOf: () => Headers;
  /** `undefined` where it is no text, such as an upload. */
  readonly body: string | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A request, understood. */
export interface HttpCall {
  readonly facts: CallFacts;
  /** `undefined`: only the request is counted. */
  readonly format: Format | undefined;
  /** The body to send. */
  readonly body: string | undefined;
  /** Whether the answer will have an event that the caller did not ask for. */
  readonly hidesUsage: boolean;
  /** Its API is known, but its body is not what the API reads, so that nothing could be counted. */
  readonly isUnread: boolean;
}

/** Definitions of tools: the model reads their keys too. */
const DEFINITION_FIELDS = new Set(["tools", "functions", "response_format", "text"]);

/** Returns the path of a URL, which may be relative. */
function pathOf(url: string): string {
  // The query of a relative URL may have a URL in it.
  const from = url.startsWith("/") ? -1 : url.indexOf("://");
  const slash = url.indexOf("/", from === -1 ? 0 : from + 3);
  const path = slash === -1 ? "/" : url.slice(slash);
  const end = path.search(/[?#]/);
  return end === -1 ? path : path.slice(0, end);
}

/** Understands a request; one of an unknown path, or without a body in JSON, is `other`. */
export function readHttpCall(request: HttpRequest): HttpCall {
  const fields = jsonOf(request.body);
  const expected = formatAt(request.method, request.url);
  const format = fields === undefined ? undefined : expected;
  const body = fields ?? {};
  const asksForStream = body["stream"] === true;
  const { signal } = request;
  const { model: named } = body;
  const model = typeof named === "string" ? named : (deploymentOf(pathOf(request.url)) ?? "");
  const asking = asksForStream ? askingForUsage(format, body) : undefined;
  return {
    facts: {
      call: new ReadCall(format?.api ?? "other", model, asksForStream, request, fields),
      prompt: format && promptOf(format, body),
      hasOutput: format !== undefined && format.api !== "embeddings",
      outputMax: format && outputMaxOf(format, body),
      signal,
    },
    format,
    body: asking === undefined ? request.body : JSON.stringify(asking),
    hidesUsage: asking !== undefined,
    isUnread: expected !== undefined && !names(fields),
  };
}

/** Whether a request can name a model: providers refuse one that is no text. */
function names(fields: Fields | undefined): boolean {
  if (fields === undefined) return false;
  return fields["model"] === undefined || typeof fields["model"] === "string";
}

/** The formats of URLs of POST requests. */
const formats = new TextMemo((url) => formatOf("POST", pathOf(url)));

/** Returns the format of a request; `undefined` where only the request is counted. */
export function formatAt(method: string, url: string): Format | undefined {
  return method === "POST" ? formats.of(url) : formatOf(method, pathOf(url));
}

/** A class, because each object with an accessor of its own costs the engine a new shape. */
class ReadCall implements LlmCall {
  readonly #headersOf: () => Headers;
  readonly api: LlmApi;
  readonly model: string;
  readonly stream: boolean;
  readonly url: string;
  readonly body: unknown;

  constructor(
    api: LlmApi,
    model: string,
    stream: boolean,
    { url, headersOf }: HttpRequest,
    body: Fields | undefined,
  ) {
    this.#headersOf = headersOf;
    this.api = api;
    this.model = model;
    this.stream = stream;
    this.url = url;
    this.body = body;
  }

  get headers(): Headers {
    return this.#headersOf();
  }
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

function outputMaxOf({ maxFields, choicesField }: Format, body: Fields): number | undefined {
  let max: number | undefined;
  for (const field of maxFields) max ??= countOf(body[field]);
  const choices = choicesField === undefined ? 1 : (countOf(body[choicesField]) ?? 1);
  return max === undefined ? undefined : max * Math.max(1, choices);
}

/** Streams of OpenAI tell their usage only to callers that ask; `undefined` for those that do. */
function askingForUsage(format: Format | undefined, body: Fields): Fields | undefined {
  if (format?.api !== "chat" && format?.api !== "completions") return undefined;
  const options = fieldsOf(body["stream_options"]);
  if (options["include_usage"] === true) return undefined;
  return { ...body, stream_options: { ...options, include_usage: true } };
}

function jsonOf(text: string | undefined): Fields | undefined {
  if (text === undefined || !/^\s*\{/.test(text)) return undefined;
  try {
    return JSON.parse(text) as Fields;
  } catch {
    return undefined;
  }
}
