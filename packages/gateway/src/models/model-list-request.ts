/** Reads the list of models of an upstream: its own `GET /v1/models`. */

import { once } from "node:events";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isPlainObject } from "@zae-limiter/limiter/domain/check.ts";
import { credentials } from "../headers.ts";
import type { UpstreamSpec } from "../upstreams.ts";
import { modelNameProblem } from "./model-names.ts";

/** A model as its upstream lists it. */
export interface ListedModel {
  readonly id: string;
  /** A name for people, where the upstream has one. */
  readonly label?: string;
  /** Epoch seconds, where the upstream says when it was made. */
  readonly created?: number;
}

/** No more models of an upstream are read. */
export const MODELS_MAX = 5000;
const BYTES_MAX = 16 * 1024 * 1024;
const LABEL_LENGTH_MAX = 200;
/** The largest page of Anthropic's list. */
const PAGE_SIZE = 1000;
/** The last second that a date can have. */
const TIME_MAX = 8.64e12;
const ANTHROPIC_VERSION = "2023-06-01";

/** Returns whether the gateway may ask for the list: clients' own keys are not for that. */
export function canList({ key, isKeyless }: UpstreamSpec): boolean {
  return isKeyless || key !== undefined;
}

/** Returns the models of an upstream; throws an error that names no key. */
export async function requestModels(
  upstream: UpstreamSpec,
  signal: AbortSignal,
): Promise<ListedModel[]> {
  const models = new Map<string, ListedModel>();
  let after: string | undefined;
  do {
    const page = await requestPage(upstream, after, signal);
    for (const model of page.models) {
      if (models.size < MODELS_MAX) models.set(model.id, model);
    }
    // A page that repeats the last one would be read without end.
    after = page.next === after ? undefined : page.next;
  } while (after !== undefined && models.size < MODELS_MAX);
  return [...models.values()];
}

interface Page {
  readonly models: readonly ListedModel[];
  /** The id that the next page begins after. */
  readonly next: string | undefined;
}

async function requestPage(
  { url, api, key }: UpstreamSpec,
  after: string | undefined,
  signal: AbortSignal,
): Promise<Page> {
  const base = url.href.endsWith("/") ? url.href.slice(0, -1) : url.href;
  const address = new URL(`${base}/models`);
  const headers: Record<string, string> = {
    accept: "application/json",
    "accept-encoding": "identity",
  };
  if (api === "anthropic") {
    address.searchParams.set("limit", String(PAGE_SIZE));
    if (after !== undefined) address.searchParams.set("after_id", after);
    headers["anthropic-version"] = ANTHROPIC_VERSION;
  }
  const own = key === undefined ? {} : credentials(api, key);
  const answer = await answerOf(address, { ...headers, ...own }, signal);
  return pageOf(JSON.parse(await textOf(answer)), api);
}

/** Returns a successful answer. A redirect is none: following it would send the key elsewhere. */
async function answerOf(
  address: URL,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const request = address.protocol === "https:" ? requestHttps : requestHttp;
  const sent = request(address, { headers, signal, agent: false });
  // Whatever ends the request is seen by the wait for its answer, or by the reader of the body.
  sent.on("error", () => {});
  sent.end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  if (answer.statusCode === 200) return answer;
  answer.destroy();
  throw new Error(`the answer has the status ${answer.statusCode}`);
}

/** Reads a body up to the bound, whatever length it announces. */
async function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > BYTES_MAX) throw new Error(`the answer has more than ${BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Reads `{ data: [{ id }] }`; some servers send the list alone. */
function pageOf(body: unknown, api: UpstreamSpec["api"]): Page {
  const data = isPlainObject(body) ? body["data"] : body;
  if (!Array.isArray(data)) throw new Error("the answer has no list of models");
  const models = data.flatMap((entry: unknown) => modelOf(entry) ?? []);
  const hasMore = api === "anthropic" && isPlainObject(body) && body["has_more"] === true;
  const last = hasMore ? body["last_id"] : undefined;
  return { models, next: typeof last === "string" ? last : undefined };
}

/** Reads one model of a list or of a note; `undefined` for what no resource can be called. */
export function modelOf(entry: unknown): ListedModel | undefined {
  if (!isPlainObject(entry)) return undefined;
  const { id, created, created_at: createdAt, display_name: name, label = name } = entry;
  if (typeof id !== "string" || modelNameProblem(id) !== undefined) return undefined;
  const seconds = typeof createdAt === "string" ? Date.parse(createdAt) / 1000 : created;
  return {
    id,
    ...(typeof label === "string" ? { label: label.slice(0, LABEL_LENGTH_MAX) } : {}),
    ...(isTime(seconds) ? { created: seconds } : {}),
  };
}

/** Whether a number can be a time in epoch seconds; some upstreams have other units. */
function isTime(seconds: unknown): seconds is number {
  return Number.isInteger(seconds) && (seconds as number) >= 0 && (seconds as number) <= TIME_MAX;
}
