/** What the URL of a request says. */

import { TextMemo } from "../../domain/text-memo.ts";

/** Whatever host a request names, it goes to a configured upstream. */
const BASE = "http://localhost";

export interface Route {
  /** The path and the query, in the form that the upstream gets. */
  readonly path: string;
  /** The provider whose error format the client expects. */
  readonly provider: "openai" | "anthropic";
}

/** What the URLs of requests say, normalized; `undefined` for one that is none. */
export const routes = new TextMemo<Route | undefined>((url) => {
  const plain = url.replace(/%[0-9a-f]{2}/gi, unescaped);
  if (!URL.canParse(plain, BASE)) return undefined;
  const { pathname, search } = new URL(plain, BASE);
  const provider = pathname.includes("/messages") ? "anthropic" : "openai";
  return { path: pathname + search, provider };
});

/** Characters that never need an escape: with it they are the same to a server (RFC 3986, 2.3). */
function unescaped(escaped: string): string {
  const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
  return /[\w.~-]/.test(character) ? character : escaped;
}
