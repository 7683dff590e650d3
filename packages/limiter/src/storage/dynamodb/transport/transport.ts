/** The port to DynamoDB: one request and its answer, in time. Nothing here is repeated. */

import type { Input, OperationName, Output } from "./operations.ts";

/** A request in either form, whichever the transport needs. */
export class Prepared<Name extends OperationName> {
  /** As the SDK takes it. */
  readonly input: () => Input<Name>;
  /** As it goes over the wire. */
  readonly text: () => string;

  constructor(input: () => Input<Name>, text: () => string) {
    this.input = input;
    this.text = text;
  }
}

/** A request to send: its fields, or one that was prepared. */
export type Outgoing<Name extends OperationName> = Input<Name> | Prepared<Name>;

export interface Transport {
  /** The server's time in its last answer, in whole seconds. */
  readonly serverDateMs: number | undefined;
  /** How far the server's clock is ahead of ours, as the last answer showed. */
  readonly serverDateSkewMs: number | undefined;
  /** Loads the code for an operation; `undefined` when it is there. No part of any deadline. */
  load(operation: OperationName): Promise<void> | undefined;
  /** Sends one request and returns its answer, within the time; else throws a `SendError`. */
  send<Name extends OperationName>(
    operation: Name,
    request: Outgoing<Name>,
    timeoutMs: number,
  ): Promise<Output<Name>>;
  close(): Promise<void>;
}

/** How far a request got that failed. */
export type Progress =
  /** It was not handed to the network: no credentials, no region. */
  | "prepared"
  /** There was no connection to send it over, so not a byte of it left. */
  | "connecting"
  /** It may have arrived. */
  | "sent";

/** A request that failed; the cause is the original error. */
export class SendError extends Error {
  override readonly name = "SendError";
  override readonly cause: unknown;
  readonly progress: Progress;

  constructor(cause: unknown, progress: Progress) {
    super("The request failed");
    this.cause = cause;
    this.progress = progress;
  }
}

/** Returns the fields of a request, however it was made. */
export function inputOf<Name extends OperationName>(request: Outgoing<Name>): Input<Name> {
  return request instanceof Prepared ? request.input() : request;
}

/** Thrown when an attempt took too long; its outcome is unknown once it was sent. */
export class AttemptTimeout extends Error {
  override readonly name = "AttemptTimeout";
}

/**
 * Runs `work` for at most `timeoutMs`. The signal stops requests that can be stopped; the race ends
 * the others, such as an answer that comes byte by byte.
 */
export async function within<T>(
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new AttemptTimeout(`no answer within ${Math.round(timeoutMs)} ms`));
      abort.abort();
    }, timeoutMs);
  });
  try {
    return await Promise.race([work(abort.signal), tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
