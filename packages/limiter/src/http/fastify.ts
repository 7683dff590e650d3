/**
 * Rate limiting for Fastify 5, over HTTP/1.1 and HTTP/2.
 *
 * @module
 */

// biome-ignore lint/suspicious/noTsIgnore: an error only where the module is missing.
/** @ts-ignore: users of other frameworks do not have the module. */
import type { FastifyRequest } from "fastify";
import type { Lease } from "../acquire/lease/lease.ts";
import { oneOf } from "../domain/options.ts";
import type { Reading } from "./clients.ts";
import { type Entry, Gate, isPassed, type Passed } from "./gate.ts";
import type { Header } from "./headers.ts";
import {
  type Closable,
  closedSignal,
  isCutOff,
  isSent,
  onceClosed,
  onceEnded,
} from "./once-closed.ts";
import { checkHttpOptions, type HttpOptions as Options } from "./options.ts";
import { leaseOfRequest, type Passage, turnBackAll } from "./passage.ts";

export { hashKey, keyOfEntityId } from "./entity-ids.ts";
export type { HttpEvent } from "./events.ts";
export type { HeaderStyle } from "./headers.ts";
export type { Outcome, RefusedAnswer } from "./options.ts";

/** The parts of Fastify's request that this plugin needs. */
export interface FastifyRequestLike {
  /** The client's address by the rules of Fastify's `trustProxy`. */
  readonly ip: string;
  /** The headers of the request, for `entityId` and the other functions of the options. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** The parts of Fastify's reply that this plugin needs. */
export interface FastifyReplyLike {
  /** The response of `node:http`, which reports when the client has gone. */
  readonly raw: Closable & {
    readonly writableEnded: boolean;
    readonly writableFinished: boolean;
    end(...args: never[]): unknown;
    /** Absent over HTTP/2. */
    readonly destroyed?: boolean;
    /** Only over HTTP/2. */
    readonly stream?: { readonly destroyed: boolean };
    readonly statusCode: number;
  };
  /** Sets the status. */
  code(status: number): unknown;
  /** Sets a header. */
  header(name: string, value: string): unknown;
  /** Returns a header. */
  getHeader(name: string): unknown;
  /** Sends the body. */
  send(body: unknown): unknown;
  /** Takes the response out of Fastify's hands. */
  hijack(): unknown;
}

// biome-ignore lint/suspicious/noTsIgnore: an error only where the module is missing.
/** @ts-ignore: these types are for users of Fastify, and others do not have the module. */
declare module "fastify" {
  interface FastifyRequest {
    /** The lease of the request; see `leaseOf`. */
    readonly lease: Lease | undefined;
  }
}

/** The parts of a Fastify instance that this plugin needs. */
export interface FastifyLike<R extends FastifyRequestLike = FastifyRequestLike> {
  /** Returns whether requests already have a property of that name. */
  hasRequestDecorator(name: string): boolean;
  /** Adds a property to all requests. */
  decorateRequest(name: string, property: { getter(this: R): Lease | undefined }): unknown;
  /** Adds a hook. */
  addHook(
    name: RequestHook,
    hook: (request: R, reply: FastifyReplyLike) => Promise<unknown>,
  ): unknown;
  addHook(
    name: "onError",
    hook: (request: R, reply: FastifyReplyLike, error: Error) => Promise<unknown>,
  ): unknown;
}

/** When a request is limited: before its body is read, or after, with the body at hand. */
export type RequestHook = "onRequest" | "preParsing" | "preValidation" | "preHandler";

/** Options of the plugin; see the table in docs/guide/http.md. */
export interface HttpOptions<R extends FastifyRequestLike = FastifyRequest> extends Options<R> {
  /** Default `onRequest`; take `preHandler` where `entityId` or `consume` read the body. */
  readonly hook?: RequestHook;
}

const HOOK = {
  hook: { check: oneOf("onRequest", "preParsing", "preValidation", "preHandler") },
} as const;
/** Hooks that get a payload or an error between the reply and `done`. */
const TAKES_MORE: readonly string[] = ["preParsing", "onError"];

/** Requests whose handler threw before it answered. */
const failed = new WeakSet<object>();

/**
 * Limits the requests of the instance it is registered on, and of all that are registered later.
 *
 * @example
 * ```ts no-run: needs a Fastify server
 * import Fastify from 'fastify';
 * import rateLimit, { leaseOf } from 'zae-limiter/fastify';
 * const app = Fastify();
 * await app.register(rateLimit, { limits: ['rpm:60'] });
 * app.get('/', async (request) => ({ consumed: leaseOf(request)?.consumed }));
 * ```
 */
export async function rateLimit(
  instance: FastifyLike<FastifyRequest>,
  options: HttpOptions,
): Promise<void> {
  const { hook = "onRequest" } = options;
  const gate = new Gate(checkHttpOptions(options, HOOK), READING);
  // A second registration below the first finds the decorator of the first.
  if (!instance.hasRequestDecorator("lease")) {
    instance.decorateRequest("lease", {
      getter() {
        return leaseOfRequest(this);
      },
    });
  }
  instance.addHook("onError", withDone("onError", noteError));
  const enter = (request: FastifyRequest, reply: FastifyReplyLike) => {
    const entry = gate.enter(request, reply);
    return isPassed(entry) && !isGone(reply)
      ? pass(entry, request, reply)
      : handle(entry, request, reply);
  };
  instance.addHook(hook, withDone(hook, enter));
}

/** How the gate reads a request. */
const READING: Reading<FastifyRequest, FastifyReplyLike> = {
  address: ({ ip }) => ip,
  signal: (_, reply) => closedSignal(reply.raw, isGone(reply)),
};

type Done = () => undefined;

/**
 * Makes a hook that waits only for a promise. Fastify waits for one, or else for a call of `done`,
 * which is the last argument of every hook; its types know that hook by hook.
 */
function withDone<R extends object>(
  name: RequestHook | "onError",
  work: (request: R, reply: FastifyReplyLike) => Promise<unknown> | undefined,
): (request: R, reply: FastifyReplyLike) => Promise<unknown> {
  const hook = TAKES_MORE.includes(name)
    ? (request: R, reply: FastifyReplyLike, _: unknown, done: Done) =>
        work(request, reply) ?? done()
    : (request: R, reply: FastifyReplyLike, done: Done) => work(request, reply) ?? done();
  return hook as (request: R, reply: FastifyReplyLike) => Promise<unknown>;
}

function noteError(request: object): undefined {
  failed.add(request);
}

async function handle(
  entered: Entry | Promise<Entry>,
  request: object,
  reply: FastifyReplyLike,
): Promise<unknown> {
  const entry = await entered;
  if (entry.kind === "gone") return reply.hijack();
  if (entry.kind === "answered") {
    const { status, headers, body } = entry.answer;
    reply.code(status);
    setHeaders(reply, headers);
    return reply.send(body);
  }
  if (isGone(reply)) {
    await turnBackAll(request);
    return reply.hijack();
  }
  return pass(entry, request, reply);
}

function pass({ headers, passage }: Passed, request: object, reply: FastifyReplyLike): undefined {
  setHeaders(reply, headers);
  if (passage !== undefined) onceClosed(reply.raw, () => end(request, reply, passage));
}

// biome-ignore lint/style/noDefaultExport: Fastify's users register a plugin by its default export.
export default rateLimit;

/** Fastify keeps a plugin's hooks to itself unless the plugin says that they are for its parent. */
Object.assign(rateLimit, {
  [Symbol.for("skip-override")]: true,
  [Symbol.for("fastify.display-name")]: "zae-limiter",
  [Symbol.for("plugin-meta")]: { fastify: "5.x", name: "zae-limiter" },
});

/**
 * Returns the lease of a request, in a handler behind `rateLimit`; `request.lease` is the same.
 * With several registrations it is the one of the last; without a lease (skipped, or only observed)
 * it is `undefined`.
 *
 * @example
 * ```ts
 * import { type FastifyRequestLike, leaseOf } from 'zae-limiter/fastify';
 * async function handler(request: FastifyRequestLike) {
 *   leaseOf(request)?.settle({ tpm: 730 });
 *   return 'done';
 * }
 * ```
 */
export function leaseOf(request: FastifyRequestLike): Lease | undefined {
  return leaseOfRequest(request);
}

/** Whether the client has gone. A response over HTTP/2 that was closed has lost its stream. */
function isGone({ raw }: FastifyReplyLike): boolean {
  return (raw.destroyed ?? raw.stream?.destroyed ?? true) || isCutOff(raw);
}

/**
 * Ends the passage on `close`, which comes once: after the response, or when the client hung up.
 */
function end(request: object, reply: FastifyReplyLike, passage: Passage): void {
  const { raw } = reply;
  const { statusCode: status, writableEnded } = raw;
  if (writableEnded) {
    void passage.end({ status, aborted: !isSent(raw) }, failed.has(request));
    return;
  }
  void passage.hangUp(status);
  const done = () => void passage.end({ status, aborted: true }, false);
  onceEnded(raw, done);
  onceSent(reply, done);
}

/**
 * Calls `done` after the handler has answered: Fastify does not end a response whose client has
 * gone. A hook would do as well, and would cost every request.
 */
function onceSent(reply: FastifyReplyLike, done: () => void): void {
  const { send } = reply;
  reply.send = (body) => {
    reply.send = send;
    try {
      return send.call(reply, body);
    } finally {
      done();
    }
  };
}

function setHeaders(reply: FastifyReplyLike, headers: readonly Header[]): void {
  for (const { name, value, isList } of headers) {
    const before = isList ? reply.getHeader(name) : undefined;
    reply.header(name, before === undefined ? value : `${String(before)}, ${value}`);
  }
}
