/** Reads the body of a request as a call, and makes the body that is forwarded. */

import type { IncomingMessage } from "node:http";
import {
  askForUsage,
  type CallFacts,
  readFacts,
  uncounted,
} from "@zae-limiter/limiter/llm/call.ts";
import { anyFormat, type Format } from "@zae-limiter/limiter/llm/formats/format.ts";
import type { LlmCall } from "@zae-limiter/limiter/llm/options.ts";
import { withOutputMax } from "@zae-limiter/limiter/llm/output-cap.ts";
import type { Fields } from "@zae-limiter/limiter/llm/usage.ts";
import { Refused } from "./answers.ts";
import { readFields, readFieldsIfAny, textOf } from "./json-body.ts";
import { NO_BYTES, type OpenBody } from "./request-body.ts";
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
): ReadCall {
  if (route.kind === "allowed") return readAllowed(body, request);
  if ((request.headers["content-encoding"] ?? "identity") !== "identity") {
    throw new Refused(400, "invalid_request_error", "The body must not be compressed.");
  }
  const fields = readFields(body.bytes);
  const model = modelOf(fields) ?? "";
  if (route.kind === "count") {
    replace(body, fields);
    return { ...requestOnly(), model, body };
  }
  const { format, deployment } = route;
  const asksForStream = fields["stream"] === true;
  const asking = asksForStream ? askForUsage(format, fields) : undefined;
  replace(body, asking ?? fields);
  const call: LlmCall = {
    api: format.api,
    model: deployment ?? model,
    stream: asksForStream,
    // The facts stay in memory until the answer ends, and nothing asks them for the body.
    body: undefined,
  };
  return {
    facts: readFacts(format, fields, call),
    format,
    model,
    deployment,
    body,
    asksForStream,
    hidesUsage: asking !== undefined,
  };
}

/** Lowers the bound of the output in a body that was read, to this in one choice. */
export function capOutput(format: Format, body: OpenBody, most: number): void {
  replace(body, withOutputMax(format, readFields(Buffer.from(body.text ?? "")), most));
}

/** Reads a request to a path that the operator has opened; its body may be anything. */
function readAllowed(body: OpenBody, request: IncomingMessage): ReadCall {
  const fields = readFieldsIfAny(body.bytes, request.headers["content-type"]);
  const only = requestOnly();
  const isBilled = request.method === "POST";
  if (fields === undefined) {
    return { ...only, facts: { ...only.facts, isBilled }, format: anyFormat, body };
  }
  replace(body, fields);
  const asksForStream = fields["stream"] === true;
  const model = modelOf(fields);
  const facts = { ...only.facts, call: { ...only.facts.call, model: model ?? "" }, isBilled };
  return { ...only, facts, format: anyFormat, model, body, asksForStream };
}

/** Returns a call that counts as one request, without tokens. */
export function requestOnly(): ReadCall {
  const call: LlmCall = { api: "other", model: "", stream: false, body: undefined };
  return {
    facts: uncounted(call, undefined),
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

/** Lets what was read be sent in place of the bytes, so that a server can read nothing else. */
function replace(body: OpenBody, fields: Fields): void {
  body.text = textOf(fields);
  body.bytes = NO_BYTES;
}
