/**
 * Writes a line of JSON for each call. A call never waits for the log and never fails by it: lines
 * that find no room or no disk are dropped, counted, and reported once.
 */

import { once } from "node:events";
import { createWriteStream } from "node:fs";
import type { Writable } from "node:stream";
import type { Clock } from "@zae-limiter/limiter/base/time.ts";

/** One call, without its prompt, its answer and its key. */
export interface AccessEntry {
  /** When the request came, in epoch milliseconds. */
  readonly time: number;
  readonly request_id: string;
  /** The first characters of the key, as `gateway key list` shows them. */
  readonly key: string | undefined;
  readonly entity_id: string | undefined;
  readonly method: string;
  /** The query is left out. */
  readonly path: string;
  /** `chat`, `messages` and the like; `undefined` where it was not known. */
  readonly api: string | undefined;
  /** The name that the client has sent. */
  readonly model: string | undefined;
  /** The resource that the model counts for. */
  readonly resource?: string | undefined;
  /** The cost centre that counts the call too. */
  readonly tag?: string | undefined;
  /** The origin of the upstream; `undefined` where the call was not forwarded. */
  readonly upstream: string | undefined;
  /** 499 where the client hung up. */
  readonly status: number;
  /** Tokens that the limits count: by the provider's usage, else by an estimate. */
  readonly input_tokens: number | undefined;
  readonly output_tokens: number | undefined;
  readonly cached_tokens: number | undefined;
  readonly is_estimated: boolean | undefined;
  /** How long the call waited for tokens, in milliseconds. */
  readonly wait_ms: number | undefined;
  /** How long the first byte of the answer took, in milliseconds. */
  readonly first_byte_ms: number | undefined;
  /** How long the whole call took, in milliseconds. */
  readonly total_ms: number;
  /** The limit, or the reason, that refused the call. */
  readonly refused_by: string | undefined;
}

export interface AccessLogOptions {
  readonly clock: Clock;
  /** Gets a line for the operator when entries are lost, and when the log works again. */
  readonly tell: (line: string) => void;
}

/** Bytes that may wait for the disk or the pipe. */
const PENDING_BYTES_MAX = 1024 * 1024;
/** How long a log that failed is left alone before it is opened again, in milliseconds. */
const REOPEN_MS = 5000;
/** No text of an entry is longer: clients choose some of them. */
const TEXT_LENGTH_MAX = 256;

export class AccessLog {
  readonly #options: AccessLogOptions;
  readonly #file: string | undefined;
  #stream: Writable;
  /** When the log failed; `undefined` while it works. */
  #failedMs: number | undefined;
  /** Entries that were lost since the log failed. */
  #lost = 0;

  private constructor(file: string | undefined, stream: Writable, options: AccessLogOptions) {
    this.#file = file;
    this.#options = options;
    this.#stream = this.#watched(stream);
  }

  /** Appends to a file, which only its owner can read; rejects when it cannot be opened. */
  static async open(file: string, options: AccessLogOptions): Promise<AccessLog> {
    const stream = opened(file);
    await once(stream, "open");
    return new AccessLog(file, stream, options);
  }

  /** Writes to a stream that stays open, such as stdout. */
  static to(stream: Writable, options: AccessLogOptions): AccessLog {
    return new AccessLog(undefined, stream, options);
  }

  /** Writes an entry in the background, or drops it. */
  write(entry: AccessEntry): void {
    this.#retry();
    const line = lineOf(entry);
    const stream = this.#stream;
    if (!stream.writable || stream.writableLength + line.length > PENDING_BYTES_MAX) {
      this.#lose(stream.writable ? "it is written too slowly" : undefined);
      return;
    }
    stream.write(line, (error) => {
      if (error == null) this.#written(stream);
      else this.#lose(undefined);
    });
  }

  /** Goes on in a new file, after the old one was renamed. */
  reopen(): void {
    if (this.#file === undefined) return;
    const before = this.#stream;
    this.#stream = this.#watched(opened(this.#file));
    before.end();
  }

  /** Resolves when all entries of a file are written, or cannot be; a stream is not waited for. */
  async close(): Promise<void> {
    const stream = this.#stream;
    if (this.#file === undefined || stream.destroyed) return;
    await new Promise<void>((resolve) => stream.end(() => resolve()));
  }

  #watched(stream: Writable): Writable {
    stream.on("error", ({ message }) => this.#fail(message));
    return stream;
  }

  /** Opens the file again where the log has failed for a while. */
  #retry(): void {
    if (this.#file === undefined || this.#failedMs === undefined || this.#stream.writable) return;
    const nowMs = this.#options.clock();
    if (nowMs - this.#failedMs < REOPEN_MS) return;
    this.#failedMs = nowMs;
    this.#stream = this.#watched(opened(this.#file));
    // The last entry before the failure may have been written in part.
    this.#stream.write("\n");
  }

  #fail(reason: string): void {
    if (this.#failedMs === undefined) {
      this.#options.tell(`The access log loses entries: ${reason}`);
    }
    this.#failedMs = this.#options.clock();
  }

  #lose(reason: string | undefined): void {
    this.#lost += 1;
    if (reason !== undefined) this.#fail(reason);
  }

  #written(stream: Writable): void {
    if (this.#failedMs === undefined || stream !== this.#stream) return;
    // A pipe that is full would fail again with the next entry.
    if (stream.writableLength > PENDING_BYTES_MAX / 2) return;
    this.#options.tell(`The access log is written again; ${this.#lost} entries are missing`);
    this.#failedMs = undefined;
    this.#lost = 0;
  }
}

function opened(file: string): Writable {
  return createWriteStream(file, { flags: "a", mode: 0o600 });
}

/** Returns an entry as one line in ASCII, so that nothing in it can control a terminal. */
function lineOf(entry: AccessEntry): string {
  const { time, path, ...rest } = entry;
  const shown = { time: new Date(time).toISOString(), ...rest, path: path.split("?", 1)[0] };
  const text = JSON.stringify(shown, (_, value: unknown) => {
    if (value === undefined) return null;
    return typeof value === "string" ? value.slice(0, TEXT_LENGTH_MAX) : value;
  });
  return `${text.replace(/[^ -~]/g, escaped)}\n`;
}

/** Escapes a character as in JSON: `é` as `\u00e9`. */
function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
