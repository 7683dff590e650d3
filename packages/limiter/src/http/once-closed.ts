/**
 * Notices the end of a response of `node:http`: it was sent, or its connection is gone; and that a
 * handler is done with a response whose client has gone, for which there is no event.
 *
 * A client may send the next request before the answer to the last one is there. The responses that
 * wait behind others have no socket yet, and get no event when the connection closes.
 */

import { share } from "./shared-listener.ts";

/** The connection of a request. */
interface Connection {
  readonly destroyed: boolean;
  on(event: "close", listener: () => void): unknown;
}

/** The parts of a response that this file needs. */
export interface Closable {
  /** `null` while the response waits behind others, and after it was sent. */
  readonly socket?: object | null | undefined;
  /** The request. Servers that are not of `node:http` may have none. */
  readonly req?: { readonly socket?: Connection | object | undefined } | undefined;
  on(event: "close", listener: () => void): unknown;
  listenerCount(event: "close"): number;
}

/** A response that reports how far it was sent. */
interface Sendable extends Closable {
  readonly writableFinished: boolean;
  /** Only over HTTP/2. */
  readonly stream?: object;
}

/** Calls `closed` once. A response emits `close` once, so `on` does, which costs less. */
export function onceClosed(response: Closable, closed: () => void): void {
  const connection = response.socket === null ? connectionOf(response) : undefined;
  if (connection === undefined) {
    // Most responses pass one middleware, and need no list of listeners.
    if (response.listenerCount("close") === 0) response.on("close", closed);
    else share(response, (all) => response.on("close", all), closed);
    return;
  }
  let isClosed = false;
  const first = () => {
    if (isClosed) return;
    isClosed = true;
    leave();
    closed();
  };
  const leave = share(connection, (all) => connection.on("close", all), first);
  share(response, (all) => response.on("close", all), first);
}

/** Returns what aborts when a response is closed; `isGone` says that it is already. */
export function closedSignal(response: Closable, isGone: boolean): AbortSignal {
  const controller = new AbortController();
  if (isGone) controller.abort();
  else onceClosed(response, () => controller.abort());
  return controller.signal;
}

/** Calls `done` when the handler calls `end`. */
export function onceEnded(response: { end(...args: never[]): unknown }, done: () => void): void {
  const { end } = response;
  response.end = (...args) => {
    response.end = end;
    done();
    return end.apply(response, args);
  };
}

/** Returns whether a response waits behind others on a connection that is gone. */
export function isCutOff(response: Closable): boolean {
  return response.socket === null && connectionOf(response)?.destroyed === true;
}

/**
 * Returns whether a response was sent to its last byte, at the moment it is closed. Over HTTP/1.1 a
 * connection that breaks drops what was left, and calls the response finished all the same.
 */
export function isSent(response: Sendable): boolean {
  if (!response.writableFinished || response.stream !== undefined) return response.writableFinished;
  return connectionOf(response)?.destroyed !== true;
}

function connectionOf({ req }: Closable): Connection | undefined {
  const socket = req?.socket as Partial<Connection> | undefined;
  return typeof socket?.on === "function" ? (socket as Connection) : undefined;
}
