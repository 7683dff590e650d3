/**
 * Decides which requests a gateway forwards: calls to the APIs whose tokens it counts, and the
 * paths that the operator has opened. A path has to be spelled as the API spells it, so that no
 * server can read it as another one.
 */

import { show } from "@zae-limiter/limiter/domain/check.ts";
import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { messages } from "@zae-limiter/limiter/llm/formats/anthropic.ts";
import type { Format } from "@zae-limiter/limiter/llm/formats/format.ts";
import {
  chat,
  completions,
  embeddings,
  responses,
} from "@zae-limiter/limiter/llm/formats/openai.ts";
import { Refused } from "./answers.ts";

/** Longest path with its query, in characters. */
export const URL_LENGTH_MAX = 2048;

/** Reads one request as one of the things that a gateway does. */
export type Route = (
  | { readonly kind: "call"; readonly format: Format; readonly deployment?: string }
  /** Counts as one request, without tokens. */
  | { readonly kind: "count" }
  /** Opened by `--allow-path`: counts as one request, and by the usage of its answer. */
  | { readonly kind: "allowed" }
  | { readonly kind: "models"; readonly model?: string }
  | { readonly kind: "response"; readonly id: string }
  /** Answered by the gateway: the limits of the entity of the key, and what is used. */
  | { readonly kind: "usage" }
) & {
  /** Path and query for the upstream, without the version that its base URL has. */
  readonly path: string;
};

const FORMATS: ReadonlyMap<string, Format> = new Map([
  ["/chat/completions", chat],
  ["/completions", completions],
  ["/responses", responses],
  ["/embeddings", embeddings],
  ["/messages", messages],
]);
const COUNT_TOKENS = "/messages/count_tokens";
/** Azure names the deployment in the path, and has a path for its newer API. */
const AZURE = "/openai";
const DEPLOYMENTS = `${AZURE}/deployments/`;
const MODELS = "/models";
const USAGE = "/usage";
const RESPONSES = "/responses/";

/** Characters of a path that every server reads alike; an escape is none of them. */
const PLAIN_PATH = /^\/[A-Za-z0-9/._~:@!$&'()*+,=-]*$/;
/** Characters of a query that need no escape, and escapes. */
const PLAIN_QUERY = /^[A-Za-z0-9/._~:@!$&'()*+,;=?%[\]-]*$/;
const PLAIN_ID = /^[A-Za-z0-9._-]+$/;

/** Headers by which some servers let a request have another method than its own. */
const METHOD_OVERRIDES = ["x-http-method-override", "x-http-method", "x-method-override"];
const OPENABLE: ReadonlySet<string> = new Set(["GET", "POST", "PUT", "PATCH", "DELETE"]);

export interface RoutedRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** Returns what a request asks for; throws where a gateway does not forward it. */
export function routeOf(request: RoutedRequest, allowedPaths: readonly string[]): Route {
  const { method = "GET", headers } = request;
  if (headers["upgrade"] !== undefined) {
    throw new Refused(400, "upgrade_not_supported", "This gateway does not switch protocols.");
  }
  if (METHOD_OVERRIDES.some((name) => headers[name] !== undefined)) {
    const message = "A header of the request names another method. Send the method itself.";
    throw new Refused(400, "method_override", message);
  }
  const [path, query] = targetOf(request.url ?? "/");
  const route = countedRoute(method, path) ?? allowedRoute(method, path, allowedPaths);
  return query === "" ? route : { ...route, path: route.path + query };
}

/** Returns the path without `/v1`, which the base URL of an upstream has, and the query. */
function targetOf(url: string): readonly [string, string] {
  // A client may name a host in front of the path; its request goes to an upstream anyway.
  const at = url.startsWith("/") ? 0 : pathAt(url);
  const queryAt = url.indexOf("?", at);
  const path = queryAt === -1 ? url.slice(at) : url.slice(at, queryAt);
  const query = queryAt === -1 ? "" : url.slice(queryAt);
  if (!PLAIN_QUERY.test(query.slice(1))) {
    throw new Refused(400, "invalid_request_error", "The query has characters without an escape.");
  }
  const trimmed = path.endsWith("/") && path !== "/" ? path.slice(0, -1) : path;
  return [trimmed.startsWith("/v1/") ? trimmed.slice("/v1".length) : trimmed, query];
}

function pathAt(url: string): number {
  const hostAt = url.indexOf("://");
  const slashAt = hostAt === -1 ? -1 : url.indexOf("/", hostAt + "://".length);
  if (slashAt !== -1) return slashAt;
  throw new Refused(400, "invalid_request_error", "The path does not begin with a slash.");
}

/** Returns the route of an API whose tokens are counted; `undefined` for any other path. */
function countedRoute(method: string, path: string): Route | undefined {
  const plain = withoutAzure(path);
  if (plain === MODELS) return withMethod("GET", method, { kind: "models", path });
  if (plain.startsWith(`${MODELS}/`)) {
    const model = decoded(plain.slice(MODELS.length + 1));
    return withMethod("GET", method, { kind: "models", model, path });
  }
  if (plain.startsWith(RESPONSES) && PLAIN_ID.test(plain.slice(RESPONSES.length))) {
    const id = plain.slice(RESPONSES.length);
    // Its subpaths, such as `compact` of a POST, are other APIs.
    if (method === "GET") return { kind: "response", id, path };
    return undefined;
  }
  if (path === USAGE) return withMethod("GET", method, { kind: "usage", path });
  if (path === COUNT_TOKENS) return withMethod("POST", method, { kind: "count", path });
  const azure = deploymentIn(path);
  const format = FORMATS.get(azure?.rest ?? plain);
  if (format === undefined) return undefined;
  if (azure === undefined) return withMethod("POST", method, { kind: "call", format, path });
  const { deployment, rest } = azure;
  const own = DEPLOYMENTS + encodeURIComponent(deployment) + rest;
  return withMethod("POST", method, { kind: "call", format, path: own, deployment });
}

/** Returns the path of an API without what Azure writes before it. */
function withoutAzure(path: string): string {
  for (const prefix of [`${AZURE}/v1/`, `${AZURE}/`]) {
    if (path.startsWith(prefix)) return path.slice(prefix.length - 1);
  }
  return path;
}

function deploymentIn(path: string): { deployment: string; rest: string } | undefined {
  if (!path.startsWith(DEPLOYMENTS)) return undefined;
  const end = path.indexOf("/", DEPLOYMENTS.length);
  if (end === -1) return undefined;
  const deployment = decoded(path.slice(DEPLOYMENTS.length, end));
  if (deployment === "." || deployment === "..") return undefined;
  return { deployment, rest: path.slice(end) };
}

/** Returns the name in a path without its escapes, of which names of models may have some. */
function decoded(escaped: string): string {
  try {
    return decodeURIComponent(escaped);
  } catch {
    const message = "The path has a percent sign that begins no escape.";
    throw new Refused(400, "invalid_request_error", message);
  }
}

function withMethod(expected: "GET" | "POST", method: string, route: Route): Route {
  if (method === expected) return route;
  const message = `Expected ${expected} for this path, got ${method}.`;
  throw new Refused(405, "method_not_allowed", message, { allow: expected });
}

/** Returns the route of a path that the operator has opened. */
function allowedRoute(method: string, path: string, allowedPaths: readonly string[]): Route {
  const isAllowed = allowedPaths.some(
    (prefix) => path === prefix || path.startsWith(prefix.endsWith("/") ? prefix : `${prefix}/`),
  );
  if (isAllowed && isPlain(path) && OPENABLE.has(method)) return { kind: "allowed", path };
  const message =
    "This gateway forwards chat completions, completions, responses, embeddings, messages and " +
    "models. It cannot count what this request would use. Its operator can open a path with " +
    "--allow-path.";
  throw new Refused(404, "path_not_allowed", message);
}

/** Returns a prefix as paths are compared with it; throws for one that no path can have. */
export function readAllowedPath(text: string): string {
  if (!isPlain(text)) {
    const reason = `expected a path like /v1/audio, without escapes and dots, got ${show(text)}`;
    throw new ValidationError("allowPaths", text, reason);
  }
  const [path] = targetOf(text);
  return path === "/v1" ? "/" : path;
}

/** Whether every server reads a path in the same way. */
function isPlain(path: string): boolean {
  return PLAIN_PATH.test(path) && !path.includes("//") && !path.includes("/.");
}
