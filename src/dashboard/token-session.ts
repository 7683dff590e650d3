/**
 * Access by a token: the printed address has it once, then a cookie carries it. The address with
 * the token leads to one without it, so that it does not stay in the history of the browser.
 */

import { sameSecret } from "./digest.ts";

const PARAMETER = "token";

/** Returns a response to an address with the token; `undefined` when there is none in it. */
export function tokenLogin(request: Request, token: string, cookie: string): Response | undefined {
  const url = new URL(request.url);
  const given = url.searchParams.get(PARAMETER);
  if (given === null || request.method !== "GET" || !sameSecret(given, token)) return undefined;
  return new Response(null, {
    status: 303,
    headers: {
      location: url.pathname,
      "set-cookie": `${cookie}=${token}; HttpOnly; SameSite=Strict; Path=/`,
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
    },
  });
}

/** Returns whether a request carries the token, in its cookie or as a bearer. */
export function hasToken(request: Request, token: string, cookie: string): boolean {
  const { headers } = request;
  const bearer = /^Bearer (.+)$/i.exec(headers.get("authorization") ?? "")?.[1];
  const cookies = (headers.get("cookie") ?? "").split(/;\s*/);
  const found = cookies.find((each) => each.startsWith(`${cookie}=`))?.slice(cookie.length + 1);
  return [bearer, found].some((given) => given !== undefined && sameSecret(given, token));
}
