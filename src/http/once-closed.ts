/**
 * Notices the end of a response of `node:http`: it was sent, or its connection is gone.
 *
 * A client may send the next request before the answer to the last one is there. The responses that
 * wait behind others have no socket yet, and hear nothing when the connection closes.
 */

/** The connection of a request. */
interface Connection {
  readonly destroyed: boolean;
  once(event: "close", listener: () => void): unknown;
}

/** What a response needs for it. */
export interface Closable {
  /** `null` while the response waits behind others, and after it was sent. */
  readonly socket?: object | null | undefined;
  /** The request. Servers that are not of `node:http` may have none. */
  readonly req?: { readonly socket?: Connection | object | undefined } | undefined;
  on(event: "close", listener: () => void): unknown;
}

/** A response that tells how far it was sent. */
interface Sendable extends Closable {
  readonly writableFinished: boolean;
  /** Only over HTTP/2. */
  readonly stream?: object;
}

/** One listener per connection for all that wait: a client may send any number of requests. */
const waiting = new WeakMap<object, Set<() => void>>();

/** Calls `closed` once. A response emits `close` once, so `on` does, which costs less. */
export function onceClosed(response: Closable, closed: () => void): void {
  const connection = response.socket === null ? connectionOf(response) : undefined;
  if (connection === undefined) {
    response.on("close", closed);
    return;
  }
  const listeners = listenersOf(connection);
  const first = () => {
    if (listeners.delete(first)) closed();
  };
  listeners.add(first);
  response.on("close", first);
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
  return typeof socket?.once === "function" ? (socket as Connection) : undefined;
}

function listenersOf(connection: Connection): Set<() => void> {
  const known = waiting.get(connection);
  if (known !== undefined) return known;
  const listeners = new Set<() => void>();
  waiting.set(connection, listeners);
  connection.once("close", () => {
    for (const listener of [...listeners]) listener();
  });
  return listeners;
}
