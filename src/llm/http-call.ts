/** What a request over HTTP to a provider asks for. */

import type { Format } from "./formats/format.ts";
import { deploymentOf, formatOf } from "./formats/format-of.ts";
import type { CallFacts } from "./metering.ts";
import { countOf, type Fields, fieldsOf } from "./usage.ts";

/** A request as far as it has been read. */
export interface HttpRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
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
}

/** Definitions of tools: the model reads their keys too. */
const DEFINITION_FIELDS = new Set(["tools", "functions", "response_format", "text"]);

/** Returns the path of a URL, which may be relative. */
export function pathOf(url: string): string {
  const from = url.indexOf("://");
  const slash = url.indexOf("/", from === -1 ? 0 : from + 3);
  const path = slash === -1 ? "/" : url.slice(slash);
  const end = path.search(/[?#]/);
  return end === -1 ? path : path.slice(0, end);
}

/** Understands a request; one of an unknown path, or without a body in JSON, is `other`. */
export function readHttpCall(request: HttpRequest): HttpCall {
  const path = pathOf(request.url);
  const fields = jsonOf(request.body);
  const format = fields === undefined ? undefined : formatOf(request.method, path);
  const body = fields ?? {};
  const asksForStream = body["stream"] === true;
  const { url, signal } = request;
  const model = typeof body["model"] === "string" ? body["model"] : (deploymentOf(path) ?? "");
  return {
    facts: {
      call: {
        api: format?.api ?? "other",
        model,
        stream: asksForStream,
        url,
        get headers() {
          return request.headers;
        },
        body: fields,
      },
      prompt: format && promptOf(format, body),
      hasOutput: format !== undefined && format.api !== "embeddings",
      outputMax: format && outputMaxOf(format, body),
      signal,
    },
    format,
    ...withUsage(format, body, asksForStream, request.body),
  };
}

function promptOf(format: Format, body: Fields): unknown[] {
  return format.promptFields.flatMap((field) => {
    const value = body[field];
    if (value === undefined || value === null) return [];
    return [DEFINITION_FIELDS.has(field) ? JSON.stringify(value) : value];
  });
}

function outputMaxOf({ maxFields, choicesField }: Format, body: Fields): number | undefined {
  const max = maxFields.map((field) => countOf(body[field])).find((found) => found !== undefined);
  const choices = choicesField === undefined ? 1 : (countOf(body[choicesField]) ?? 1);
  return max === undefined ? undefined : max * Math.max(1, choices);
}

/** Streams of OpenAI tell their usage only to callers that ask for it. */
function withUsage(
  format: Format | undefined,
  body: Fields,
  asksForStream: boolean,
  text: string | undefined,
): { body: string | undefined; hidesUsage: boolean } {
  const isChat = format?.api === "chat" || format?.api === "completions";
  const options = fieldsOf(body["stream_options"]);
  if (!isChat || !asksForStream || options["include_usage"] === true) {
    return { body: text, hidesUsage: false };
  }
  const asking = { ...body, stream_options: { ...options, include_usage: true } };
  return { body: JSON.stringify(asking), hidesUsage: true };
}

function jsonOf(text: string | undefined): Fields | undefined {
  if (text === undefined || !text.trimStart().startsWith("{")) return undefined;
  try {
    return JSON.parse(text) as Fields;
  } catch {
    return undefined;
  }
}
