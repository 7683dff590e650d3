/** One request through the gateway: its key, its route, its body, its model, its lease. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { callerOf, Refusal } from "@zae-limiter/limiter/acquire/decision.ts";
import type { Clock, Timer } from "@zae-limiter/limiter/base/time.ts";
import {
  RateLimiterUnavailable,
  ResourceDisabled,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { ModelNotPriced } from "@zae-limiter/limiter/domain/errors/model-not-priced.ts";
import { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import type { Metering } from "@zae-limiter/limiter/llm/metering.ts";
import { tagEntityOf } from "@zae-limiter/limiter/llm/tags.ts";
import type { AccessEntry } from "./access-log.ts";
import { answerTo, NotGrantedError, type Provider, Refused, send } from "./answers.ts";
import type { BackgroundResponses } from "./background.ts";
import type { Cancellation } from "./cancellation.ts";
import { forward, type GrantedCall } from "./forwarding.ts";
import { clientKey, type HeaderList, limitHeaders, tagOf } from "./headers.ts";
import type { FoundKey } from "./key-lookup.ts";
import { modelNameProblem } from "./models/model-names.ts";
import type { IsAllowed, Models, ResolvedModel } from "./models/models.ts";
import { capOutput, type ReadCall, readCall, requestOnly } from "./read-call.ts";
import type { ReadingOn } from "./reading-on.ts";
import { dropRest, hasUnreadBody, type OpenBody, type RequestBodies } from "./request-body.ts";
import { type Route, routeOf, URL_LENGTH_MAX } from "./routes.ts";
import type { UpstreamConnection } from "./upstream-connection.ts";
import type { UpstreamSpec } from "./upstreams.ts";
import type { UsageAnswers } from "./usage-answers.ts";

/** Shared by all requests of a gateway. */
export interface CallSetup {
  readonly metering: Metering;
  readonly models: Models;
  readonly connections: ReadonlyMap<UpstreamSpec, UpstreamConnection>;
  readonly bodies: RequestBodies;
  readonly readingOn: ReadingOn;
  /** `undefined`: background responses are refused. */
  readonly background: BackgroundResponses | undefined;
  readonly allowPaths: readonly string[];
  /** Names of cost centres that requests may name. */
  readonly tags: ReadonlySet<string>;
  readonly usage: UsageAnswers;
  readonly identify: (key: string, address: string) => Promise<KeyAnswer>;
  /** Returns which resources an entity may use: those that are not switched off for it. */
  readonly allowedFor: (entityId: string) => IsAllowed;
  readonly clock: Clock;
  readonly timer: Timer;
  /** Counts a request that was refused before any limit was asked. */
  readonly onRefused: (code: string) => void;
  /** Receives the reason why the store could not answer; none where the call passed uncounted. */
  readonly onStoreLost: (error?: Error) => void;
}

/** The result of the search for a key. */
export type KeyAnswer = FoundKey | "unknown" | "too many";

/** A valid key with the text that the client has sent. */
export interface ClientKey extends FoundKey {
  readonly text: string;
}

/** One request with its client. */
export interface Exchange {
  readonly setup: CallSetup;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Cancelled when the client hangs up before it has its whole answer. */
  readonly left: Cancellation;
  readonly provider: Provider;
  readonly requestId: string;
  /** Returns the milliseconds since the request came. */
  readonly elapsedMs: () => number;
  /** Filled in while the request is served. */
  readonly entry: CallEntry;
}

type ForwardedRoute = Extract<Route, { kind: "call" | "count" | "allowed" }>;

/** The entry of a request in the access log, as far as it is known. */
export type CallEntry = { -readonly [Name in keyof AccessEntry]?: AccessEntry[Name] };

/** Node.js drops headers beyond a number, among them how long the body is, and reads on. */
export const HEADERS_MAX = 200;

const HOW_TO_SEND = 'Send one as "Authorization: Bearer <key>" or as "x-api-key: <key>".';
const NO_KEY = `The request has no key. ${HOW_TO_SEND}`;
const BAD_KEY = `The key of the request is not valid: unknown, revoked or expired. ${HOW_TO_SEND}`;
const TOO_MANY = "Too many requests with unknown keys came from this address. Try again later.";

/** Serves one request: answers it, and ends its lease whatever happens. Never rejects. */
export async function serveCall(exchange: Exchange): Promise<void> {
  try {
    checkLength(exchange.request);
    const key = await identify(exchange);
    const route = routeOf(exchange.request, exchange.setup.allowPaths);
    exchange.entry.api = route.kind === "call" ? route.format.api : route.kind;
    if (route.kind === "models") await serveModels(exchange, key, route.model);
    else if (route.kind === "usage") await serveUsage(exchange, key);
    else if (route.kind === "response") await servePoll(exchange, key, route);
    else await serveForwarded(exchange, key, route);
  } catch (error) {
    answerFailure(exchange, error);
  }
}

/** Refuses a path that is too long to be read closely, and more headers than are read. */
function checkLength({ url = "", rawHeaders }: IncomingMessage): void {
  if (rawHeaders.length > 2 * HEADERS_MAX) {
    const message = `The request has more than ${HEADERS_MAX} headers.`;
    throw new Refused(431, "too_many_headers", message, { connection: "close" });
  }
  if (url.length <= URL_LENGTH_MAX) return;
  const message = `The path has more than ${URL_LENGTH_MAX} characters.`;
  throw new Refused(414, "path_too_long", message);
}

async function identify({ setup, request, entry }: Exchange): Promise<ClientKey> {
  const text = clientKey(request.headers);
  if (text === undefined) throw new Refused(401, "invalid_api_key", NO_KEY);
  const found = await setup.identify(text, request.socket.remoteAddress ?? "");
  if (found === "unknown") throw new Refused(401, "invalid_api_key", BAD_KEY);
  if (found === "too many") {
    throw new Refused(429, "too_many_unknown_keys", TOO_MANY, { "retry-after": "60" });
  }
  entry.key = found.hint;
  entry.entity_id = found.entityId;
  if (found.isDisabled) {
    const headers = { "x-should-retry": "false" };
    throw new Refused(403, "access_denied", "Calls of this key are switched off.", headers);
  }
  const { id, hint, name, entityId, isDisabled } = found;
  return { id, hint, name, entityId, isDisabled, text };
}

/** Answers with the models that the key may use. */
async function serveModels(
  exchange: Exchange,
  key: ClientKey,
  model: string | undefined,
): Promise<void> {
  const { setup, provider } = exchange;
  const models = await setup.models.list(setup.allowedFor(key.entityId), key.entityId);
  const body = model === undefined ? models.list(provider) : await models.get(model, provider);
  if (body === undefined) throw unknownModel(model ?? "");
  send(exchange, 200, ["content-type", "application/json"], JSON.stringify(body));
}

/** Answers with the limits of the key's entity; it counts as no call. */
async function serveUsage(exchange: Exchange, { entityId }: ClientKey): Promise<void> {
  const body = await exchange.setup.usage.of(entityId);
  send(exchange, 200, ["content-type", "application/json"], body);
}

/** Reads the body of a call, acquires its estimate, and forwards it. */
async function serveForwarded(
  exchange: Exchange,
  key: ClientKey,
  route: ForwardedRoute,
): Promise<void> {
  const body = await exchange.setup.bodies.read(exchange.request, key.entityId);
  try {
    await forward(exchange, await granted(exchange, key, route, body));
  } finally {
    body.release();
  }
}

/** Reads a call and acquires its estimate; throws where it is not granted. */
async function granted(
  exchange: Exchange,
  key: ClientKey,
  route: ForwardedRoute,
  body: OpenBody,
): Promise<GrantedCall> {
  const { setup, request, entry } = exchange;
  const call = readCall(route, body, request);
  entry.model = call.deployment ?? call.model;
  if (call.facts.isBackground && setup.background === undefined) {
    const message = "This gateway does not start background responses.";
    throw new Refused(400, "background_not_allowed", message);
  }
  const model = resolved(exchange, call.model, call.deployment);
  const metered = await begin(exchange, key, call, model);
  const { outputMax } = metered;
  if (outputMax !== undefined && call.format !== undefined) {
    capOutput(call.format, body, outputMax);
  }
  // It would stay in memory until the answer ends.
  call.facts.prompt = undefined;
  return { key, route, call, model, metered };
}

/** Fetches a background response for the key that made it, and settles its call by its usage. */
async function servePoll(
  exchange: Exchange,
  key: ClientKey,
  route: Extract<Route, { kind: "response" }>,
): Promise<void> {
  const { setup } = exchange;
  const remembered = await setup.background?.of(route.id, key.id);
  if (remembered === undefined) {
    const message = "There is no background response of this key with this id.";
    throw new Refused(404, "response_not_found", message);
  }
  const { resource } = remembered;
  const upstream = [...setup.connections.keys()].find(
    ({ url }) => url.href === remembered.upstream,
  );
  if (upstream === undefined) throw noUpstream(resource);
  const call = requestOnly();
  const model = { resource, upstream };
  const metered = await begin(exchange, key, call, model);
  const polled = { id: route.id, remembered };
  await forward(exchange, { key, route, call, model, metered, polled });
}

/** Acquires the estimate of a call; throws where it is not granted. */
async function begin(
  { setup, request, entry, left }: Exchange,
  key: ClientKey,
  { facts }: ReadCall,
  { resource, upstream, modelOutputMax }: ResolvedModel,
): Promise<MeteredCall> {
  entry.resource = resource;
  entry.upstream = upstream.url.origin;
  const startedMs = setup.timer.nowMs();
  const { metering } = setup;
  facts.modelOutputMax = modelOutputMax;
  facts.host = upstream.url.host;
  // Only a call that may wait has to notice that its client has left.
  if (metering.options.maxWaitSeconds > 0) facts.signal = left.signal;
  entry.tag = tagOf(request.headers, setup.tags);
  const tagId = tagEntityOf(entry.tag, facts.call);
  const begun = await metering.begin(facts, { entityId: key.entityId, resource, tagId });
  entry.wait_ms = Math.round(setup.timer.nowMs() - startedMs);
  if (!(begun instanceof MeteredCall)) throw new NotGrantedError(begun);
  if (begun.isDegraded) setup.onStoreLost();
  if (!left.isCancelled) return begun;
  // A client that hung up before its request was forwarded has used nothing.
  await begun.refund();
  throw new Error("The client has hung up");
}

function resolved(
  { setup }: Exchange,
  named: string | undefined,
  deployment: string | undefined,
): ResolvedModel {
  const problem = modelNameProblem(deployment ?? (named || "none"));
  if (problem !== undefined) {
    const message = `No model can have this name. ${problem}`;
    throw new Refused(400, "invalid_request_error", message);
  }
  const model = setup.models.resolve(named, deployment);
  if (model === "unknown") throw unknownModel(deployment ?? named ?? "");
  if (model === "no upstream") throw noUpstream(deployment ?? named);
  return model;
}

function unknownModel(name: string): Refused {
  const message = `This gateway does not know the model "${name.slice(0, 100)}".`;
  return new Refused(404, "model_not_found", message);
}

function noUpstream(name: string | undefined): Refused {
  const what =
    name === undefined || name === "" ? "calls without a model" : `"${name.slice(0, 100)}"`;
  return new Refused(404, "model_not_found", `No upstream of this gateway serves ${what}.`);
}

/** Answers a request that an error has ended: the error of one request never ends the process. */
function answerFailure(exchange: Exchange, error: unknown): void {
  const { setup, request, response, provider, requestId, entry } = exchange;
  const reason = error instanceof NotGrantedError ? error.reason : error;
  entry.refused_by = report(exchange, reason);
  // The client must not take an incomplete answer for a complete one.
  if (response.headersSent) return void response.destroy();
  const { status, headers, body } = answerTo(error, provider, requestId);
  const sent: HeaderList = Object.entries(headers).flat();
  if (reason instanceof Refusal) {
    sent.push(...limitHeaders(reason.statuses, setup.clock(), provider, callerOf(reason)));
  }
  const isUnread = hasUnreadBody(request);
  // What is left of a long body would have to be read before the connection could be used again.
  if (isUnread) response.shouldKeepAlive = false;
  send(exchange, status, sent, body, isUnread ? dropRest(request, setup.timer) : undefined);
}

/** Reports why a request was not served, and returns it for the access log. */
function report({ setup, left }: Exchange, reason: unknown): string | undefined {
  if (reason instanceof Refusal) {
    return reason.violations.map(({ limitName }) => limitName).join(",");
  }
  if (reason instanceof ResourceDisabled) return "disabled";
  if (reason instanceof ModelNotPriced) return "model_not_priced";
  if (reason instanceof Refused) {
    if (reason.status < 500) setup.onRefused(reason.code);
    return reason.code;
  }
  if (reason instanceof RateLimiterUnavailable) {
    setup.onStoreLost(reason);
    return "store unavailable";
  }
  if (left.isCancelled) return undefined;
  process.emitWarning(`A request failed: ${String(reason)}`, { code: "ZAEL_GATEWAY_FAILED" });
  return "gateway error";
}
