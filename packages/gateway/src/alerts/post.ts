/**
 * Posts a body to an address that an operator chose. The name is resolved once, and the connection
 * goes to the address that was checked; an answer is never followed elsewhere, and hardly read.
 */

import { lookup as resolveName } from "node:dns/promises";
import { request as requestPlain } from "node:http";
import { request as requestTls } from "node:https";
import { isIP } from "node:net";
import type { Timer } from "@zae-limiter/limiter/base/time.ts";
import { isPublic } from "./address.ts";

const TIMEOUT_MS = 10_000;
/** How much of an answer is read for the message of a failure. */
const ANSWER_MAX = 200;

export interface Posting {
  readonly url: string;
  readonly allowPrivate: boolean;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The timer, the resolver of names, and a certificate that is trusted alone. */
export interface PostOptions {
  readonly timer: Timer;
  readonly resolve?: (name: string) => Promise<string>;
  readonly trust?: string;
}

/** Posts, and returns what went wrong; `undefined`: the receiver has it. Never throws. */
export async function post(posting: Posting, options: PostOptions): Promise<string | undefined> {
  const ended = new AbortController();
  const overdue = options.timer
    .sleep(TIMEOUT_MS, ended.signal)
    .then(() => "no answer in 10 seconds");
  try {
    return await Promise.race([attempt(posting, options, ended.signal), overdue]);
  } catch (error) {
    return (error as Error).message;
  } finally {
    ended.abort();
  }
}

async function attempt(
  { url, allowPrivate, headers, body }: Posting,
  { resolve = resolved, trust }: PostOptions,
  ended: AbortSignal,
): Promise<string | undefined> {
  const { protocol, hostname } = new URL(url);
  const name = hostname.replace(/^\[|\]$/g, "");
  const address = isIP(name) === 0 ? await resolve(name) : name;
  if (!allowPrivate && !isPublic(address)) {
    return `${name} is at a private address, which the webhook does not allow`;
  }
  if (protocol !== "https:" && (!allowPrivate || isPublic(address))) {
    return "plain http is for private addresses that are allowed";
  }
  const send = protocol === "https:" ? requestTls : requestPlain;
  return new Promise((answered, failed) => {
    const request = send(url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json", "user-agent": "zae-limiter" },
      signal: ended,
      // No connection is kept for the next alert, which may come in a month.
      agent: false,
      // A checked address, whatever the name leads to by now.
      lookup: (_name, { all }, callback) => {
        const family = isIP(address);
        if (all === true) callback(null, [{ address, family }]);
        else callback(null, address, family);
      },
      ...(trust === undefined ? {} : { ca: trust }),
    });
    request.once("error", failed);
    request.once("response", (response) => {
      const { statusCode = 0 } = response;
      if (statusCode >= 200 && statusCode < 300) {
        response.destroy();
        return answered(undefined);
      }
      let text = "";
      const end = () => {
        response.destroy();
        const shown = text.replace(/\s+/g, " ").slice(0, ANSWER_MAX);
        answered(`status ${statusCode}${shown === "" ? "" : `: ${shown}`}`);
      };
      response.setEncoding("utf8");
      response.on("data", (part: string) => {
        text += part;
        if (text.length > ANSWER_MAX) end();
      });
      response.once("end", end);
      response.once("error", end);
    });
    request.end(body);
  });
}

async function resolved(name: string): Promise<string> {
  return (await resolveName(name)).address;
}
