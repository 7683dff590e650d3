/**
 * Sends one request over a connection and reads its answer, in time: the output, the error that the
 * SDK would throw, and the server's date.
 */

import { crc32 } from "node:zlib";
import type { Dispatcher } from "undici";
import type { Clock } from "../../../base/time.ts";
import type { OperationName } from "./operations.ts";
import { type StoredAnswer, storedAnswerIn } from "./stored-item.ts";
import { AttemptTimeout, SendError } from "./transport.ts";

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

/** Returns a header of an answer. */
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
 * Handles the events of one request, in the form that undici 7 itself works with: the newer form is
 * translated to it, and makes an object of all headers, of which an answer needs two.
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
    this.#alarm = setTimeout(() => this.#giveUp(timeoutMs), timeoutMs);
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

/** Thrown when the body was damaged on its way, or is not an answer of DynamoDB. */
class BrokenAnswer extends Error {
  override readonly name = "BrokenAnswer";
}

/** An error of DynamoDB with the fields that the SDK gives it. */
export interface ServiceError extends Error {
  readonly $fault: "client" | "server";
  readonly $metadata: {
    readonly httpStatusCode: number;
    readonly requestId: string | undefined;
    clockSkewCorrected?: boolean;
  };
}

type Fields = Record<string, unknown>;

/** Returns the output of a request that went well; throws a `ServiceError` otherwise. */
export function readAnswer(answer: HttpAnswer): Fields {
  const { status, headers, body } = answer;
  checkSum(headerOf(headers, "x-amz-crc32"), body);
  if (status < 300 && body.length === 0) throw new BrokenAnswer("the body is empty");
  if (status < 300) return storedItem(body) ?? present(parse(body));
  throw serviceError(answer);
}

function checkSum(header: string | undefined, body: Buffer): void {
  if (header === undefined || Number(header) === crc32(body)) return;
  throw new BrokenAnswer(`the body has the checksum ${crc32(body)}, but the server says ${header}`);
}

/** Reads the answer that nearly every write gets. */
function storedItem(body: Buffer): (Fields & StoredAnswer) | undefined {
  return storedAnswerIn(body.toString()) as (Fields & StoredAnswer) | undefined;
}

function parse(body: Buffer): Fields {
  if (body.length === 0) return {};
  const fields: unknown = JSON.parse(body.toString());
  if (typeof fields === "object" && fields !== null) return fields as Fields;
  throw new BrokenAnswer("the body is not an object");
}

/** Removes fields that are null, as the SDK does. */
function present(fields: Fields): Fields {
  for (const name of Object.keys(fields)) {
    if (fields[name] === null) delete fields[name];
  }
  return fields;
}

function serviceError({ status, headers, body }: HttpAnswer): ServiceError {
  const fields = errorFields(body);
  const { __type, Message, message = Message, ...rest } = fields;
  const code = __type ?? fields.code ?? fields.Code ?? headerOf(headers, "x-amzn-errortype");
  return Object.assign(new Error(String(message ?? "UnknownError")), {
    ...present(rest),
    name: nameIn(String(code ?? "Unknown")),
    $fault: status < 500 ? ("client" as const) : ("server" as const),
    $metadata: { httpStatusCode: status, requestId: headerOf(headers, "x-amzn-requestid") },
  });
}

/** Returns the fields of an error. The text of a load balancer in between is its message. */
function errorFields(body: Buffer): Fields {
  try {
    return parse(body);
  } catch {
    return { message: body.toString() };
  }
}

/** Returns `ThrottlingException` for `com.amazonaws.dynamodb.v20120810#ThrottlingException:…`. */
function nameIn(code: string): string {
  const [first = ""] = code.split(/[,:]/);
  return first.slice(first.indexOf("#") + 1);
}

/**
 * The field without which an answer says nothing. A proxy or a broken server may answer `200` with
 * an empty body: that is no answer, and must not be taken for "there is nothing".
 */
const REQUIRED: Readonly<Partial<Record<OperationName, string>>> = {
  BatchGetItem: "Responses",
  Query: "Items",
  Scan: "Items",
  TransactGetItems: "Responses",
};

/** Thrown for an answer without the field that says what was found. */
export class EmptyAnswer extends Error {
  override readonly name = "EmptyAnswer";

  constructor(operation: OperationName) {
    super(`the answer to ${operation} has no ${REQUIRED[operation]}`);
  }
}

/** Returns whether an answer says what was found. */
export function isComplete(operation: OperationName, output: object): boolean {
  const field = REQUIRED[operation];
  return field === undefined || (output as Record<string, unknown>)[field] !== undefined;
}

/** The `Date` header has whole seconds. */
const DATE_RESOLUTION_MS = 1000;

/** A busy server may send a date that is seconds old, but hardly this many times in a row. */
const ANSWERS = 8;

/** Keeps the server's time, as its answers show it. */
export class ServerDate {
  readonly #clock: Clock;
  #text: string | undefined;
  #dateMs: number | undefined;
  /** Differences that the last answers have shown, in turn. */
  readonly #skewsMs: number[] = [];
  #answers = 0;
  #skewMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Time in the last answer, in epoch milliseconds, whole seconds. */
  get dateMs(): number | undefined {
    return this.#dateMs;
  }

  /** Milliseconds that the server's clock is ahead, as far as all of the last answers prove. */
  get skewMs(): number | undefined {
    return this.#skewMs;
  }

  /** Returns the time at which a request is sent, for `see`. */
  now(): number {
    return this.#clock();
  }

  /**
   * Records the `Date` header of an answer, and returns the time in it, if any.
   *
   * The server wrote it at some time between the request and now. Where both clocks may have shown
   * the same then, nothing is proven: an answer that took seconds says little about clocks.
   */
  see(header: string | undefined, sentAtMs: number): number | undefined {
    if (header === undefined) return undefined;
    // Most answers come within the same second as the one before.
    if (header !== this.#text) {
      const dateMs = Date.parse(header);
      if (Number.isNaN(dateMs)) return undefined;
      this.#text = header;
      this.#dateMs = dateMs;
    }
    const dateMs = this.#dateMs as number;
    const least = dateMs - this.#clock();
    const most = dateMs + DATE_RESOLUTION_MS - sentAtMs;
    this.#skewsMs[this.#answers % ANSWERS] = least <= 0 && most >= 0 ? 0 : (least + most) / 2;
    this.#answers += 1;
    this.#skewMs = this.#skewsMs.reduce((one, other) =>
      Math.abs(other) < Math.abs(one) ? other : one,
    );
    return dateMs;
  }
}
