/** What the URL of a request says. */

import { TextMemo } from "@zae-limiter/limiter/base/text-memo.ts";
import { formatOf } from "@zae-limiter/limiter/llm/formats/format.ts";

/** Whatever host a request names, it goes to a configured upstream. */
const BASE = "http://localhost";
/** No server unescapes a path more often. */
const READINGS_MAX = 4;

export interface Route {
  /** The path and the query, in the form that the upstream gets. */
  readonly path: string;
  /** The provider whose error format the client expects. */
  readonly provider: "openai" | "anthropic";
  /** Whether a server could read the path of a POST as an API whose tokens would not count. */
  readonly isAmbiguous: boolean;
}

/** What the URLs of requests say, normalized; `undefined` for one that is none. */
export const routes = new TextMemo<Route | undefined>((url) => {
  const plain = url.replace(/%[0-9a-f]{2}/gi, unescaped);
  if (!URL.canParse(plain, BASE)) return undefined;
  const { pathname, search } = new URL(plain, BASE);
  const provider = pathname.includes("/messages") ? "anthropic" : "openai";
  return { path: pathname + search, provider, isAmbiguous: isAmbiguous(pathname) };
});

/** Characters that never need an escape: with it they are the same to a server (RFC 3986, 2.3). */
function unescaped(escaped: string): string {
  const character = characterOf(escaped);
  return /[\w.~-]/.test(character) ? character : escaped;
}

function characterOf(escaped: string): string {
  return String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
}

/**
 * Some servers cut off what follows a semicolon, trim spaces, or unescape slashes before they look
 * a path up. Each such reading must be the API that the gateway takes the path for.
 */
function isAmbiguous(pathname: string): boolean {
  const format = formatOf("POST", pathname);
  let path = pathname;
  for (let reading = 0; reading < READINGS_MAX; reading += 1) {
    const cut = path.replace(/[?#].*$/s, "").replace(/(?:;[^/]*|[^!-~]+)(?=\/|$)/g, "");
    const plain = new URL(BASE + cut).pathname;
    if (formatOf("POST", plain) !== format) return true;
    path = plain.replace(/%[0-9a-f]{2}/gi, characterOf);
  }
  return false;
}
