/**
 * The connection of one store. Nothing is queued for a later connection and nothing is sent twice:
 * a request whose answer is lost has an unknown outcome. Deadlines are ours.
 */

import { systemClock } from "../../base/time.ts";
import { ValidationError } from "../../domain/errors/errors.ts";
import type { TableCallOptions } from "../item-table.ts";
import type { OwnClient } from "./clients.ts";
import {
  closedError,
  isReplica,
  isUnknownScript,
  lateError,
  type RedisPlace,
  redisError,
} from "./errors.ts";
import { DEFAULT_PREFIX } from "./keys.ts";
import type { Script } from "./scripts/script.ts";

/** How long the difference of two clocks is taken for unchanged. */
const SKEW_MS = 60_000;
const PREFIX_MAX = 64;

/** Checks the prefix of all keys. */
export function checkPrefix(value: unknown = DEFAULT_PREFIX): string {
  const isOne =
    typeof value === "string" && value.length <= PREFIX_MAX && /^[\w:./-]*$/.test(value);
  if (isOne) return value;
  const expected = `at most ${PREFIX_MAX} letters, digits and _ : . / -`;
  throw new ValidationError("prefix", value, `expected ${expected}`);
}

export class RedisConnection implements RedisPlace {
  readonly place: string;
  readonly prefix: string;
  readonly isCluster: boolean;
  /** Milliseconds that the server's clock is ahead of this machine's. */
  serverDateSkewMs: number | undefined;
  readonly #client: OwnClient;
  #skewAtMs = 0;
  #isClosed = false;

  constructor(client: OwnClient, { place, prefix }: RedisPlace & { readonly prefix: string }) {
    this.#client = client;
    this.place = place;
    this.prefix = prefix;
    this.isCluster = client.isCluster;
  }

  /** Returns the time of the server, as far as it is known. Scripts ask no clock. */
  serverNowMs(): number {
    const nowMs = systemClock();
    if (Math.abs(nowMs - this.#skewAtMs) > SKEW_MS) {
      this.#skewAtMs = nowMs;
      void this.askTime({ timeoutMs: 1000 }).catch(() => undefined);
    }
    return nowMs + (this.serverDateSkewMs ?? 0);
  }

  /** Asks the server for its time. */
  async askTime(options: TableCallOptions): Promise<void> {
    const before = systemClock();
    const [seconds, micros] = (await this.command(["TIME"], options)) as [string, string];
    const after = systemClock();
    if (after < before) return;
    const serverMs = Number(seconds) * 1000 + Number(micros) / 1000;
    this.serverDateSkewMs = Math.round(serverMs - (before + after) / 2);
    this.#skewAtMs = after;
  }

  /** Runs a script by its digest, and by its text where the server does not know it. */
  async run(
    { text, digest }: Script,
    keys: readonly string[],
    args: readonly string[],
    options: TableCallOptions,
  ): Promise<unknown> {
    const rest = [String(keys.length), ...keys, ...args];
    return this.#request(keys[0], options, async () => {
      try {
        return await this.#client.send(["EVALSHA", digest, ...rest], keys[0]);
      } catch (error) {
        if (!isUnknownScript(error)) throw error;
        return this.#client.send(["EVAL", text, ...rest], keys[0]);
      }
    });
  }

  /** Sends a command that uses no key. */
  command(args: readonly string[], options: TableCallOptions): Promise<unknown> {
    return this.#request(undefined, options, () => this.#client.send(args, undefined));
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#client.close();
  }

  /** Waits for a connection, sends, and waits for the answer, all until the deadline. */
  #request(
    _key: string | undefined,
    { timeoutMs }: TableCallOptions,
    send: () => Promise<unknown>,
  ): Promise<unknown> {
    if (this.#isClosed) return Promise.reject(closedError(this));
    let wasSent = false;
    const run = async () => {
      if (!this.#client.isReady) await this.#client.connected();
      if (isLate) return undefined;
      wasSent = true;
      return send();
    };
    let isLate = false;
    return new Promise((resolve, reject) => {
      const timeout = setTimeout(() => {
        isLate = true;
        reject(lateError(this, timeoutMs, wasSent));
      }, timeoutMs);
      run().then(
        (answer) => {
          clearTimeout(timeout);
          resolve(answer);
        },
        (error: unknown) => {
          clearTimeout(timeout);
          if (isReplica(error)) this.#client.reconnect();
          reject(redisError(error, this, wasSent));
        },
      );
    });
  }
}
