/**
 * Access by a token: the printed address has it once. Then a cookie and a key take its place, both
 * made from it. Cookies know no ports, so every other server under this host name sees the cookie;
 * the key is in the storage of the page, which belongs to the port, and `/api` asks for both. The
 * address with the token leads to one without it, so that it does not stay in the history.
 */

import { pageAnswer } from "./answers.ts";
import { derived, sameSecret } from "./digest.ts";
import { type Page, policyOf } from "./page-file.ts";

const PARAMETER = "token";
/** The parameter of requests of the page, and of the fragment that hands it the key. */
const KEY_PARAMETER = "key";

/** Returns a response to an address with the token; `undefined` when there is none in it. */
export function tokenLogin(request: Request, token: string, cookie: string): Response | undefined {
  const url = new URL(request.url);
  const given = url.searchParams.get(PARAMETER);
  if (given === null || request.method !== "GET" || !sameSecret(given, token)) return undefined;
  return new Response(null, {
    status: 303,
    headers: {
      location: `${url.pathname}#${KEY_PARAMETER}=${derived(token, "key")}`,
      "set-cookie": `${cookie}=${derived(token, "cookie")}; HttpOnly; SameSite=Strict; Path=/`,
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
    },
  });
}

/** Returns whether a request has the token as a bearer, or its cookie and, for data, its key. */
export function hasToken(request: Request, token: string, cookie: string): boolean {
  const { headers, url } = request;
  const bearer = /^Bearer (.+)$/i.exec(headers.get("authorization") ?? "")?.[1];
  if (bearer !== undefined) return sameSecret(bearer, token);
  const cookies = (headers.get("cookie") ?? "").split(/;\s*/);
  const found = cookies.find((each) => each.startsWith(`${cookie}=`))?.slice(cookie.length + 1);
  if (found === undefined || !sameSecret(found, derived(token, "cookie"))) return false;
  const { pathname, searchParams } = new URL(url);
  const key = searchParams.get(KEY_PARAMETER) ?? "";
  return !pathname.startsWith("/api/") || sameSecret(key, derived(token, "key"));
}

/** Replaces a 401 by a page when a browser has opened the address without its token. */
export function forPerson(request: Request, response: Response): Response {
  const { method, headers, url } = request;
  const isHead = method === "HEAD";
  const asksForPage = isHead || method === "GET";
  const takesHtml = headers.get("accept")?.includes("text/html") ?? false;
  const isApi = new URL(url).pathname.startsWith("/api/");
  if (response.status !== 401 || !asksForPage || !takesHtml || isApi) return response;
  return pageAnswer(LOCKED_PAGE, { isHead, status: 401 });
}

/** The page that a browser shows for an address without the token. */
const HTML = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>zae-limiter: token missing</title>
<style>
:root { color-scheme: light dark; }
body { max-width: 34rem; margin: 15vh auto 0; padding: 0 1.25rem; line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.25rem; }
</style>
</head>
<body>
<main>
<h1>Open the address that the command printed</h1>
<p>This page needs the token at the end of that address. Each start of the command makes another
token, unless <code>--token</code> names one.</p>
<p>If the terminal no longer shows the address, end the command with Ctrl-C and start it again.</p>
</main>
</body>
</html>
`;

const LOCKED_PAGE: Page = { html: HTML, policy: policyOf(HTML) };
