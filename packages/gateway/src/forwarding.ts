/** Forwards a granted call to its upstream, hands the answer on, and ends the lease. */

import type { IncomingMessage } from "node:http";
import type { KeptLease } from "@zae-limiter/limiter/acquire/lease/kept-lease.ts";
import { Price } from "@zae-limiter/limiter/domain/price.ts";
import { amountsOf } from "@zae-limiter/limiter/llm/amounts.ts";
import {
  type AnswerMeter,
  answerMeter,
  usageOfError,
} from "@zae-limiter/limiter/llm/answer-meter.ts";
import { anyFormat } from "@zae-limiter/limiter/llm/formats/format.ts";
import type { MeteredCall } from "@zae-limiter/limiter/llm/metered-call.ts";
import { Refused, send } from "./answers.ts";
import type { Remembered } from "./background.ts";
import type { ClientKey, Exchange } from "./call.ts";
import { Cancellation } from "./cancellation.ts";
import {
  clientHeaders,
  type HeaderList,
  limitHeaders,
  REQUEST_ID,
  upstreamHeaders,
  without,
} from "./headers.ts";
import type { ResolvedModel } from "./models/models.ts";
import { PolledAnswer } from "./polled-answer.ts";
import type { ReadCall } from "./read-call.ts";
import type { Route } from "./routes.ts";
import { UpstreamFailure } from "./upstream-connection.ts";

/** A call whose estimate was granted. */
export interface GrantedCall {
  readonly key: ClientKey;
  readonly route: Route;
  readonly call: ReadCall;
  readonly model: ResolvedModel;
  readonly metered: MeteredCall;
  /** The background response that is asked for. */
  readonly polled?: { readonly id: string; readonly remembered: Remembered };
}

/** The longest body of an error that is handed on: it is read before the client gets it. */
const ERROR_BYTES_MAX = 1024 * 1024;
/** The longest answer that is read on after its client has left, or is held back. */
const READ_ON_BYTES_MAX = 64 * 1024 * 1024;
const BROKEN_OFF = "The answer of the upstream broke off.";
const COMPRESSED = "The upstream answered with an error that is compressed and cannot be read.";
const NO_STATUS = "The upstream answered with a status that HTTP does not have.";
const REDIRECTED = "The upstream answered with a redirect, which this gateway does not follow.";
const NOTHING = new Uint8Array(0);
/** Replaces the provider's key in answers. */
const HIDDEN = "[hidden]";

/** Forwards a call. Its lease has ended when the promise resolves or rejects. */
export async function forward(exchange: Exchange, granted: GrantedCall): Promise<void> {
  const { setup, left, entry } = exchange;
  const { key, call, metered } = granted;
  const stop = new Cancellation();
  let ended: ((isComplete: boolean) => void) | undefined;
  let isOver = false;
  left.onCancel(() => {
    if (isOver) return;
    // Providers stop a stream whose reader is gone; a plain answer is made, and billed, anyway. A
    // stream with hidden parts is read on for its usage: its text says too little.
    const isReadOn = !call.asksForStream || metered.hasHiddenParts;
    if (isReadOn) ended = setup.readingOn.start(key.entityId, () => stop.cancel());
    if (ended === undefined) stop.cancel();
  });
  let isComplete = false;
  try {
    const answer = await answerOf(exchange, granted, stop);
    call.body.release();
    entry.first_byte_ms = exchange.elapsedMs();
    const { statusCode: status = 0 } = answer;
    if (status < 200 || status >= 300) await handOnError(exchange, granted, answer);
    else isComplete = await handOn(exchange, granted, answer, stop);
  } finally {
    // Does nothing where the lease has ended, as it has in all cases that are known.
    await metered.keepEstimate();
    isOver = true;
    ended?.(isComplete);
    entry.input_tokens = metered.used?.input;
    entry.cached_tokens = metered.used?.cached;
    entry.output_tokens = metered.used?.output;
    entry.is_estimated = metered.isEstimated;
  }
}

/** Sends the call and returns its answer; ends the lease where none comes. */
async function answerOf(
  { setup, request, left }: Exchange,
  { key, route, call, model, metered }: GrantedCall,
  stop: Cancellation,
): Promise<IncomingMessage> {
  const { method = "GET" } = request;
  const { upstream } = model;
  const connection = setup.connections.get(upstream);
  if (connection === undefined) throw new Error("An upstream has no connection");
  const body = call.body.text ?? call.body.bytes;
  const bytes = body.length === 0 && method !== "POST" ? undefined : Buffer.byteLength(body);
  const headers = upstreamHeaders(request.headers, upstream, key.text, bytes);
  try {
    return await connection.send({ method, path: route.path, headers, body, stop });
  } catch (error) {
    const isFailure = error instanceof UpstreamFailure;
    if (!isFailure || error.isUnsent) await metered.refund();
    else if (left.isCancelled) await endLeft(metered, call.asksForStream);
    else await metered.keepEstimate();
    throw isFailure ? new Refused(502, "api_error", error.message) : error;
  }
}

/** Ends the lease of a call whose client has left before its answer was complete. */
function endLeft(metered: MeteredCall, isStreamed: boolean): Promise<void> {
  return isStreamed && !metered.hasHiddenParts ? metered.breakOff() : metered.chargeMost();
}

/** Hands an error on when it has been read whole, without the provider's key. */
async function handOnError(
  exchange: Exchange,
  { call, model, metered }: GrantedCall,
  answer: IncomingMessage,
): Promise<void> {
  const { statusCode: status = 0 } = answer;
  const text = await textOf(answer);
  const usage = text === undefined ? undefined : usageOfError(text, call.format ?? anyFormat);
  await metered.fail({ status, usage });
  if (status < 200 || status > 599) throw new Refused(502, "api_error", NO_STATUS);
  if (status < 400) throw new Refused(502, "api_error", REDIRECTED);
  if (text === undefined) throw new Refused(502, "api_error", BROKEN_OFF);
  const { "content-encoding": encoding = "identity" } = answer.headers;
  // The provider's key could not be found in it.
  if (encoding !== "identity") throw new Refused(status, "api_error", COMPRESSED);
  const { key } = model.upstream;
  const body = key === undefined ? text : text.replaceAll(key, HIDDEN);
  const headers = headersFor(exchange, model, metered, answer);
  send(exchange, status, headers, body);
}

/** Returns the body of an error; `undefined` where it breaks off or is too long. */
async function textOf(answer: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of answer) {
      bytes += (chunk as Buffer).length;
      if (bytes > ERROR_BYTES_MAX) return undefined;
      chunks.push(chunk as Buffer);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString("utf8");
}

function headersFor(
  { setup, provider }: Exchange,
  { upstream }: ResolvedModel,
  metered: MeteredCall,
  answer: IncomingMessage,
): HeaderList {
  const headers = clientHeaders(answer.headers, upstream);
  headers.push(...limitHeaders(metered.statuses, setup.clock(), provider, metered.entityId));
  return headers;
}

/** Hands an answer on at the speed of the client; returns whether it was read whole. */
async function handOn(
  exchange: Exchange,
  granted: GrantedCall,
  answer: IncomingMessage,
  stop: Cancellation,
): Promise<boolean> {
  const { response, requestId, left } = exchange;
  const { call, model, metered } = granted;
  const { "content-type": contentType = "", "content-encoding": contentEncoding = "" } =
    answer.headers;
  const isStreamed = contentType.trim().toLowerCase().startsWith("text/event-stream");
  const meter = meterOf(exchange, granted, { contentType, contentEncoding, isStreamed });
  const given = headersFor(exchange, model, metered, answer);
  const headers = call.hidesUsage ? without("content-length", given) : given;
  headers.push(REQUEST_ID, requestId);
  const begin = () => void response.writeHead(answer.statusCode ?? 200, headers);
  // The id of a background response is remembered before the client can ask for it.
  const held: Uint8Array[] | undefined = call.facts.isBackground && !isStreamed ? [] : undefined;
  if (held === undefined && !left.isCancelled) begin();
  try {
    await pass(exchange, granted, { answer, meter, held, stop });
  } catch {
    await endBroken(exchange, granted, meter.pendingId, isStreamed);
    if (left.isCancelled) return false;
    throw new Refused(502, "api_error", BROKEN_OFF);
  }
  const rest = await finish(exchange, granted, meter);
  if (left.isCancelled) return true;
  if (held !== undefined) begin();
  for (const bytes of held ?? []) response.write(bytes);
  response.end(rest.length > 0 ? rest : undefined);
  return true;
}

/** Ends the lease of a whole answer, and returns the bytes that are left to write. */
async function finish(
  exchange: Exchange,
  granted: GrantedCall,
  meter: AnswerMeter,
): Promise<Uint8Array> {
  const { rest, pendingId } = await meter.finish();
  if (pendingId !== undefined) {
    await remember(exchange, granted, pendingId, await granted.metered.hold());
  } else if (meter.backgroundId) {
    // It has its usage already, and can be asked for later, too.
    await remember(exchange, granted, meter.backgroundId, undefined);
  }
  return rest;
}

/** One answer on its way to the client. */
interface Passage {
  readonly answer: IncomingMessage;
  readonly meter: AnswerMeter;
  /** Gets what the client is to be sent at the end; `undefined`: it is sent at once. */
  readonly held: Uint8Array[] | undefined;
  /** Ends the answer. */
  readonly stop: Cancellation;
}

/** Reads an answer to its end, and writes what the client gets; rejects where it breaks off. */
function pass(exchange: Exchange, granted: GrantedCall, passage: Passage): Promise<void> {
  const { response, left } = exchange;
  const { metered } = granted;
  const { answer, meter, held, stop } = passage;
  let readBytes = 0;
  let isRemembered = false;
  const goOn = () => void answer.resume();
  const write = (bytes: Uint8Array) => {
    if (left.isCancelled || bytes.length === 0 || response.write(bytes)) return;
    // A client that reads slowly slows its answer down, until it leaves.
    answer.pause();
    response.once("drain", goOn);
  };
  const take = (chunk: Buffer) => {
    metered.touch();
    const bytes = meter.push(chunk);
    readBytes += chunk.length;
    if ((left.isCancelled || held !== undefined) && readBytes > READ_ON_BYTES_MAX) stop.cancel();
    if (held !== undefined) return void held.push(bytes);
    const { pendingId } = meter;
    if (pendingId === undefined || pendingId === "" || isRemembered) return write(bytes);
    isRemembered = true;
    answer.pause();
    // Where the store is away, the end of the stream tries again.
    const remembered = remember(exchange, granted, pendingId, undefined).catch(() => {});
    void remembered.then(goOn).then(() => write(bytes));
  };
  left.onCancel(goOn);
  return new Promise((resolve, reject) => {
    // Events, because reading by an async iterator takes 15 us more.
    answer.on("data", (chunk: Buffer) => {
      try {
        take(chunk);
      } catch (error) {
        stop.cancel();
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
    answer.on("end", resolve);
    answer.on("error", reject);
    answer.on("close", () => {
      if (!answer.complete) reject(new Error(BROKEN_OFF));
    });
  });
}

/** The body of an answer, as its headers describe it. */
interface AnswerType {
  readonly contentType: string;
  readonly contentEncoding: string;
  readonly isStreamed: boolean;
}

/** Returns the reader of an answer, which ends the lease when the answer is complete. */
function meterOf(
  { setup }: Exchange,
  { call, metered, polled }: GrantedCall,
  type: AnswerType,
): AnswerMeter {
  if (polled !== undefined) {
    const { id, remembered } = polled;
    return new PolledAnswer(metered, type.isStreamed, async (usage) => {
      const { input = 0, cached = 0, output = 0 } = usage;
      const price = remembered.price === undefined ? undefined : Price.from(remembered.price);
      const whole = { ...usage, input, cached, output };
      const amounts = amountsOf(setup.metering.options.count, whole, price);
      await setup.background?.settle(id, remembered, amounts);
    });
  }
  if (call.format !== undefined) return answerMeter(type, call.format, metered, call.hidesUsage);
  return {
    pendingId: undefined,
    push: (chunk) => chunk,
    finish: async () => {
      await metered.keepEstimate();
      return { rest: NOTHING };
    },
  };
}

/** Ends the lease of a call whose answer is not complete. */
async function endBroken(
  exchange: Exchange,
  granted: GrantedCall,
  pendingId: string | undefined,
  isStreamed: boolean,
): Promise<void> {
  const { metered, call } = granted;
  // A background response goes on without its reader.
  if (call.facts.isBackground && pendingId !== undefined) {
    return remember(exchange, granted, pendingId, await metered.hold());
  }
  if (exchange.left.isCancelled) return endLeft(metered, isStreamed);
  return isStreamed ? metered.breakOff() : metered.keepEstimate();
}

/** Stores a background response, with the reserve that it keeps until its usage is known. */
async function remember(
  { setup }: Exchange,
  { key, model, metered }: GrantedCall,
  id: string,
  kept: KeptLease | undefined,
): Promise<void> {
  const { resource, upstream } = model;
  const { href } = upstream.url;
  await setup.background?.remember(
    id,
    key.id,
    key.entityId,
    resource,
    href,
    kept,
    metered.price?.spec,
  );
}
