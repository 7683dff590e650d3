/** One request over a connection and its answer back, in time. */

import type { Dispatcher } from "undici";
import { AttemptTimeout, alarm } from "./deadline.ts";
import { SendError } from "./transport.ts";

export interface HttpRequest {
  readonly path: string;
  /** Names and values, alternating. */
  readonly headers: string[];
  readonly body: Buffer;
}

export interface HttpAnswer {
  readonly status: number;
  /** Names and values, alternating, as the server sent them. */
  readonly headers: readonly Buffer[];
  readonly body: Buffer;
}

/**
 * Resolves with what `read` makes of the answer; rejects with a `SendError`. A request that still
 * waits for a connection when its time is over is never sent.
 */
export function exchange<T>(
  dispatcher: Dispatcher,
  { path, headers, body }: HttpRequest,
  timeoutMs: number,
  read: (answer: HttpAnswer) => T,
): Promise<T> {
  return new Promise((resolve, reject) => {
    dispatcher.dispatch(
      { path, method: "POST", headers, body },
      new Exchange(read, resolve, reject, timeoutMs),
    );
  });
}

/** A header of an answer. */
export function headerOf(headers: readonly Buffer[], name: string): string | undefined {
  for (let at = 0; at < headers.length; at += 2) {
    const candidate = headers[at] as Buffer;
    if (candidate.length !== name.length) continue;
    if (candidate.toString("latin1").toLowerCase() === name) {
      return headers[at + 1]?.toString("latin1");
    }
  }
  return undefined;
}

/**
 * The form of a handler that undici 7 itself works with: the newer one is translated to it, and
 * makes an object of all headers, of which an answer needs two.
 */
class Exchange<T> implements Dispatcher.DispatchHandler {
  readonly #read: (answer: HttpAnswer) => T;
  readonly #resolve: (outcome: T) => void;
  readonly #reject: (error: SendError) => void;
  readonly #alarm: NodeJS.Timeout;
  #abort: ((error?: Error) => void) | undefined;
  #isOver = false;
  #status = 0;
  #headers: readonly Buffer[] = [];
  #first: Buffer | undefined;
  #more: Buffer[] | undefined;

  constructor(
    read: (answer: HttpAnswer) => T,
    resolve: (outcome: T) => void,
    reject: (error: SendError) => void,
    timeoutMs: number,
  ) {
    this.#read = read;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#alarm = alarm(timeoutMs, () => this.#giveUp(timeoutMs));
  }

  onConnect(abort: (error?: Error) => void): void {
    // To abort would also end the connection, which has sent nothing yet and serves others.
    if (this.#isOver) throw new AttemptTimeout("its time was over before it was sent");
    this.#abort = abort;
  }

  onHeaders(status: number, headers: Buffer[]): boolean {
    this.#status = status;
    this.#headers = headers;
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (this.#first === undefined) this.#first = chunk;
    else if (this.#more === undefined) this.#more = [this.#first, chunk];
    else this.#more.push(chunk);
    return true;
  }

  onComplete(): void {
    if (this.#isOver) return;
    this.#end();
    const body = this.#more === undefined ? this.#first : Buffer.concat(this.#more);
    try {
      const answer = { status: this.#status, headers: this.#headers, body: body ?? EMPTY };
      this.#resolve(this.#read(answer));
    } catch (error) {
      this.#reject(new SendError(error, "sent"));
    }
  }

  onError(error: Error): void {
    if (this.#isOver) return;
    this.#end();
    this.#reject(new SendError(error, this.#abort === undefined ? "connecting" : "sent"));
  }

  #giveUp(timeoutMs: number): void {
    if (this.#isOver) return;
    const error = new AttemptTimeout(`no answer within ${Math.round(timeoutMs)} ms`);
    this.#end();
    this.#reject(new SendError(error, this.#abort === undefined ? "connecting" : "sent"));
    // The caller has given up, and a connection with a pending response cannot be reused.
    this.#abort?.(error);
  }

  #end(): void {
    this.#isOver = true;
    clearTimeout(this.#alarm);
  }
}

const EMPTY = Buffer.alloc(0);
