/** Bodies of requests: how much of them a gateway holds, and for how long it waits for them. */

import type { IncomingMessage } from "node:http";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { Refused } from "./answers.ts";

/** Bodies of one key that this process reads at a time. */
const BODIES_PER_KEY = 64;
/** Bytes of one key that this process holds at a time, in bodies of the largest size. */
const LARGEST_PER_KEY = 8;
/** Bytes of all keys together, in bodies of the largest size. */
const LARGEST_IN_ALL = 64;

/** A body in memory. */
export interface OpenBody {
  /** The bytes that the client sent; empty once they are read or released. */
  bytes: Buffer;
  /** The text that is sent on in their place. Node.js writes it faster than bytes. */
  text?: string | undefined;
  /** Forgets the bytes, which are not needed once an answer begins. */
  release(): void;
}

export const NO_BYTES: Buffer = Buffer.alloc(0);

interface Held {
  count: number;
  bytes: number;
}

/** Reads bodies, within bounds for each key and for the process. */
export class RequestBodies {
  readonly #bytesMax: number;
  readonly #byKey = new Map<string, Held>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Reads a body; refuses it before a byte is read where the key holds too many already. */
  async read(request: IncomingMessage, keyId: string): Promise<OpenBody> {
    const length = request.headers["content-length"];
    const announced = length === undefined ? undefined : Number(length);
    if (announced !== undefined && announced > this.#bytesMax) throw this.#tooLong();
    const isChunked = request.headers["transfer-encoding"] !== undefined;
    const held = this.#hold(keyId, announced ?? (isChunked ? this.#bytesMax : 0));
    try {
      const bytes = await this.#bytesOf(request);
      held.shrink(bytes.length);
      const body: OpenBody = {
        bytes,
        text: undefined,
        release: () => {
          body.bytes = NO_BYTES;
          body.text = undefined;
          held.shrink(0);
        },
      };
      return body;
    } catch (error) {
      held.shrink(0);
      throw error;
    }
  }

  /** Counts a body with the bytes that it may have, until it is read and its length is known. */
  #hold(keyId: string, bytes: number): { shrink(to: number): void } {
    const held = this.#byKey.get(keyId) ?? { count: 0, bytes: 0 };
    const isTooMuch =
      held.count >= BODIES_PER_KEY || held.bytes + bytes > LARGEST_PER_KEY * this.#bytesMax;
    const retry = { "retry-after": "1" };
    if (isTooMuch) {
      const message = "This key has too many requests open whose bodies wait. Try again later.";
      throw new Refused(429, "too_many_open_bodies", message, retry);
    }
    if (this.#bytes + bytes > LARGEST_IN_ALL * this.#bytesMax) {
      const message = "The gateway holds too many bodies at the moment. Try again later.";
      throw new Refused(503, "server_error", message, retry);
    }
    held.count += 1;
    held.bytes += bytes;
    this.#bytes += bytes;
    this.#byKey.set(keyId, held);
    let isRead = false;
    let left = bytes;
    return {
      shrink: (to) => {
        // A body that has been read waits for nothing but the provider.
        if (!isRead) held.count -= 1;
        isRead = true;
        held.bytes -= left - to;
        this.#bytes -= left - to;
        left = to;
        if (held.count === 0 && held.bytes === 0) this.#byKey.delete(keyId);
      },
    };
  }

  async #bytesOf(request: IncomingMessage): Promise<Buffer> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    await new Promise<void>((resolve, reject) => {
      const take = (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes <= this.#bytesMax) return void chunks.push(chunk);
        request.off("data", take);
        request.pause();
        chunks.length = 0;
        reject(this.#tooLong());
      };
      request.on("data", take);
      let isRead = false;
      request.on("end", () => {
        isRead = true;
        resolve();
      });
      request.on("error", reject);
      const leave = () => {
        if (!isRead) reject(new Error("The client has hung up"));
      };
      request.on("close", leave);
      if (request.destroyed) leave();
    });
    // The request keeps its listeners, which must not keep the body.
    return Buffer.concat(chunks.splice(0));
  }

  #tooLong(): Refused {
    const message = `The body has more than ${this.#bytesMax} bytes.`;
    return new Refused(413, "request_too_large", message, { connection: "close" });
  }
}

/** A refused request may leave this much of its body to be read, so that its connection lives. */
const UNREAD_BYTES_MAX = 64 * 1024;

/** Whether the unread rest of a body may be so long that its connection is better closed. */
export function hasUnreadBody({ headers, complete }: IncomingMessage): boolean {
  if (complete) return false;
  if (headers["transfer-encoding"] !== undefined) return true;
  return Number(headers["content-length"] ?? 0) > UNREAD_BYTES_MAX;
}

/** How long a refused client may go on sending, in milliseconds. */
const DROP_MS = 5000;

/**
 * Drops what a refused client still sends, until it ends or some time is over. A connection that is
 * closed at once resets, and its client gets an error in place of the answer.
 */
export async function dropRest(request: IncomingMessage, timer: Timer): Promise<void> {
  const over = new AbortController();
  const end = () => over.abort("over");
  request.once("end", end);
  request.once("close", end);
  request.resume();
  await timer.sleep(DROP_MS, over.signal, true);
}
