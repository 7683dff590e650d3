/** What the URL of a request says. */

import { TextMemo } from "../../domain/text-memo.ts";

/** Whatever host a request names, it goes to a configured upstream. */
const BASE = "http://localhost";

export interface Route {
  /** The path and the query, in the form that the upstream gets. */
  readonly path: string;
  /** Whose shape errors have. */
  readonly provider: "openai" | "anthropic";
}

const routes = new TextMemo<Route | undefined>((url) => {
  if (!URL.canParse(url, BASE)) return undefined;
  const { pathname, search } = new URL(url, BASE);
  const provider = pathname.includes("/messages") ? "anthropic" : "openai";
  return { path: pathname + search, provider };
});

/** Reads the URL of a request, which is normalized; `undefined` where it is none. */
export function routeOf(url: string): Route | undefined {
  return routes.of(url);
}
