/** Reads the body of a request as a call, and makes the body that is forwarded. */

import type { IncomingMessage } from "node:http";
import { askForUsage, type CallFacts, readFacts } from "@zae-limiter/limiter/llm/call.ts";
import { anyFormat, type Format } from "@zae-limiter/limiter/llm/formats/format.ts";
import type { LlmCall } from "@zae-limiter/limiter/llm/options.ts";
import type { Fields } from "@zae-limiter/limiter/llm/usage.ts";
import { Refused } from "./answers.ts";
import { NO_BYTES, type OpenBody, readFields, readFieldsIfAny } from "./request-body.ts";
import type { Route } from "./routes.ts";

export interface ReadCall {
  readonly facts: CallFacts;
  /** The format in which its answer reports usage; `undefined`: only the request counts. */
  readonly format: Format | undefined;
  /** Empty where the body lacks it; `undefined` where the API has no models. */
  readonly model: string | undefined;
  /** The deployment in the path of Azure, which goes before the model of the body. */
  readonly deployment: string | undefined;
  /** The body to send. */
  readonly body: OpenBody;
  readonly asksForStream: boolean;
  /** Whether the answer will have an event that the client did not ask for. */
  readonly hidesUsage: boolean;
}

/** Reads a call, and makes its body the one to send; throws where it cannot be read as one. */
export function readCall(
  route: Extract<Route, { kind: "call" | "count" | "allowed" }>,
  body: OpenBody,
  request: IncomingMessage,
  signal: AbortSignal,
): ReadCall {
  if (route.kind === "allowed") return readAllowed(body, request, signal);
  if ((request.headers["content-encoding"] ?? "identity") !== "identity") {
    throw new Refused(400, "invalid_request_error", "The body must not be compressed.");
  }
  const fields = readFields(body.bytes);
  const model = modelOf(fields) ?? "";
  if (route.kind === "count") {
    body.bytes = bytesOf(fields);
    return { ...requestOnly(signal), model, body };
  }
  const { format, deployment } = route;
  const asksForStream = fields["stream"] === true;
  const asking = asksForStream ? askForUsage(format, fields) : undefined;
  body.bytes = bytesOf(asking ?? fields);
  const call = { api: format.api, model: deployment ?? model, stream: asksForStream };
  return {
    // The facts stay in memory until the answer ends, and nothing asks them for the body.
    facts: readFacts(format, fields, { ...call, body: undefined }, { signal }),
    format,
    model,
    deployment,
    body,
    asksForStream,
    hidesUsage: asking !== undefined,
  };
}

/** Reads a request to a path that the operator has opened; its body may be anything. */
function readAllowed(body: OpenBody, request: IncomingMessage, signal: AbortSignal): ReadCall {
  const fields = readFieldsIfAny(body.bytes, request.headers["content-type"]);
  const only = requestOnly(signal);
  if (fields === undefined) return { ...only, format: anyFormat, body };
  body.bytes = bytesOf(fields);
  const asksForStream = fields["stream"] === true;
  return { ...only, format: anyFormat, model: modelOf(fields), body, asksForStream };
}

/** Returns a call that counts as one request, without tokens. */
export function requestOnly(signal: AbortSignal): ReadCall {
  const call: LlmCall = { api: "other", model: "", stream: false, body: undefined };
  return {
    facts: {
      call,
      prompt: undefined,
      hasOutput: false,
      outputMax: undefined,
      hasHiddenParts: false,
      isBackground: false,
      signal,
    },
    format: undefined,
    model: undefined,
    deployment: undefined,
    body: { bytes: NO_BYTES, release: () => {} },
    asksForStream: false,
    hidesUsage: false,
  };
}

function modelOf(fields: Fields): string | undefined {
  const { model } = fields;
  return typeof model === "string" ? model : undefined;
}

/** Returns what was read, so that a server can read nothing else. */
function bytesOf(fields: Fields): Buffer {
  return Buffer.from(JSON.stringify(fields));
}
