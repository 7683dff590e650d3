/** The guard of the dashboard: host names, origins, changes, tokens. */

import { failed } from "@zae-limiter/dashboard/server/answers.ts";
import { failure } from "@zae-limiter/dashboard/server/failure.ts";
import { forPerson, hasToken, tokenLogin } from "@zae-limiter/dashboard/server/token-session.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { describe, expect, test } from "vitest";
import { Browser, change, ORIGIN } from "../../contract/suite.ts";

const HOST = new URL(ORIGIN).host;
const CHANGE = { level: "system", limits: ["rpm:1"], expected: [] };

async function openBrowser(options: ConstructorParameters<typeof Browser>[1] = {}) {
  const repository = await Repository.open("memory:");
  return { repository, browser: new Browser(repository, options) };
}

describe("the dashboard's guard", () => {
  test.each([
    ["another name", { host: "evil.example:4983" }, 403, "host"],
    ["another origin", { origin: "http://evil.example" }, 403, "origin"],
    ["an origin that is hidden", { origin: "null" }, 403, "origin"],
    ["the origin of another port", { origin: "http://127.0.0.1:8000" }, 403, "origin"],
    ["another site", { "sec-fetch-site": "cross-site" }, 403, "site"],
    ["a form", { "content-type": "text/plain" }, 415, "content_type"],
    ["no header of ours", { "x-zae-limiter-dashboard": "" }, 403, "csrf"],
  ])("a change with %s is refused, and nothing is written", async (_, headers, status, error) => {
    const { repository, browser } = await openBrowser({ hosts: [HOST] });
    const answer = await browser.post("limits", CHANGE, headers);
    expect(answer).toMatchObject({ status, body: { error } });
    expect((await repository.limits.getSystem()).limits).toEqual([]);
  });

  test("a read with another name or origin is refused too", async () => {
    const { browser } = await openBrowser({ hosts: [HOST] });
    for (const headers of [{ host: "evil.example" }, { origin: "http://evil.example" }]) {
      const request = new Request(`${ORIGIN}/api/session`, { headers });
      expect((await browser.handler(request)).status).toBe(403);
    }
  });

  test("a link from another site may lead to the page, but not to its data", async () => {
    const { browser } = await openBrowser();
    const headers = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" };
    const request = new Request(`${ORIGIN}/api/session`, { headers });
    expect((await browser.handler(request)).status).toBe(403);
  });

  test("a read-only dashboard refuses every change, also a preview", async () => {
    const { repository, browser } = await openBrowser({ readOnly: true });
    for (const path of ["limits", "preview", "namespaces"]) {
      expect(await browser.post(path, CHANGE)).toMatchObject({
        status: 403,
        body: { error: "read_only" },
      });
    }
    expect((await repository.limits.getSystem()).limits).toEqual([]);
    expect((await browser.ok("session")).readOnly).toBe(true);
  });

  test("authorize refuses with false or an empty name, and names the principal", async () => {
    for (const answer of [false, ""]) {
      const { browser } = await openBrowser({ authorize: async () => answer });
      expect((await browser.get("session")).status).toBe(401);
    }
    const named = await openBrowser({ authorize: () => "ann" });
    await named.browser.handler(change("limits", CHANGE));
    expect((await named.repository.audit.list("$SYSTEM"))[0]?.principal).toBe("ann");
    const unnamed = await openBrowser({ authorize: () => true });
    await unnamed.browser.handler(change("limits", CHANGE));
    expect((await unnamed.repository.audit.list("$SYSTEM"))[0]?.principal).toBeUndefined();
  });

  test("other methods and unknown paths are refused", async () => {
    const { browser } = await openBrowser();
    const put = new Request(`${ORIGIN}/api/limits`, { method: "PUT", body: "{}" });
    expect((await browser.handler(put)).status).toBe(405);
    expect((await browser.get("nothing")).status).toBe(404);
    expect((await browser.get("__proto__")).status).toBe(404);
    expect((await browser.post("limits", undefined)).status).toBe(400);
    expect((await browser.get("limits?ns=nowhere")).status).toBe(404);
  });

  test("wrong options are refused by name", async () => {
    const repository = await Repository.open("memory:");
    expect(() => new Browser(repository, { authorize: undefined as never })).toThrow(/authorize/);
    expect(() => new Browser(repository, { readOnly: "yes" as never })).toThrow(/readOnly/);
    expect(() => new Browser(repository, { limiter: {} as never })).toThrow(/RateLimiter/);
    expect(() => new Browser(repository, { hosts: "localhost" as never })).toThrow(/hosts/);
    expect(() => new Browser({} as never)).toThrow(/Repository/);
  });
});

describe("access by a token", () => {
  test("the printed address sets a strict cookie and leads to an address without the token", () => {
    const response = tokenLogin(new Request(`${ORIGIN}/?token=secret`), "secret", "zael");
    expect(response?.status).toBe(303);
    expect(response?.headers.get("location")).toMatch(/^\/#key=[\w-]{43}$/);
    const cookie = response?.headers.get("set-cookie") ?? "";
    expect(cookie).toMatch(/^zael=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/$/);
    expect(cookie).not.toContain("secret");
    expect(tokenLogin(new Request(`${ORIGIN}/?token=wrong`), "secret", "zael")).toBeUndefined();
    expect(tokenLogin(new Request(`${ORIGIN}/`), "secret", "zael")).toBeUndefined();
  });

  test("data needs the token as a bearer, or the cookie and the key of the login", () => {
    const login = tokenLogin(new Request(`${ORIGIN}/?token=secret`), "secret", "zael");
    const cookie = login?.headers.get("set-cookie")?.split(";", 1)[0] ?? "";
    const key = login?.headers.get("location")?.split("#")[1] ?? "";
    const has = (headers: Record<string, string>, path = "/api/session") =>
      hasToken(new Request(`${ORIGIN}${path}`, { headers }), "secret", "zael");
    expect(has({ cookie: `a=b; ${cookie}` }, `/api/session?${key}`)).toBe(true);
    expect(has({ cookie }, "/")).toBe(true);
    expect(has({ authorization: "Bearer secret" })).toBe(true);
    // Another server on this machine sees the cookie, and not the key.
    expect(has({ cookie })).toBe(false);
    expect(has({}, `/api/session?${key}`)).toBe(false);
    expect(has({ cookie: cookie.replace("zael=", "zael=x") }, "/")).toBe(false);
    expect(has({ cookie: "zael=secret" }, "/")).toBe(false);
    expect(has({ cookie: cookie.replace("zael=", "other=") }, "/")).toBe(false);
    expect(has({ authorization: "Bearer secrets" })).toBe(false);
    expect(has({})).toBe(false);
  });

  test("a browser without the token gets a page, and a program gets JSON", async () => {
    const refused = (status: number) => failed(failure(status, "refused", "No"));
    const typeOf = (path: string, accept: string, status = 401) => {
      const request = new Request(`${ORIGIN}${path}`, { headers: { accept } });
      return forPerson(request, refused(status)).headers.get("content-type")?.split(";")[0];
    };
    const html = "text/html,application/xhtml+xml,*/*;q=0.8";
    expect(typeOf("/", html)).toBe("text/html");
    expect(typeOf("/?token=old", html)).toBe("text/html");
    expect(typeOf("/", "*/*")).toBe("application/json");
    expect(typeOf("/", "application/json")).toBe("application/json");
    expect(typeOf("/api/session", html)).toBe("application/json");
    expect(typeOf("/", html, 403)).toBe("application/json");
    const request = new Request(`${ORIGIN}/?token=%3Cb%3E`, { headers: { accept: html } });
    const page = forPerson(request, refused(401));
    expect(page.status).toBe(401);
    expect(page.headers.get("content-security-policy")).toMatch(
      /^default-src 'none'; script-src 'none'; style-src 'sha256-/,
    );
    expect(page.headers.get("cache-control")).toBe("no-store");
    const text = await page.text();
    expect(text).toContain("Open the address that the command printed");
    expect(text).not.toContain("<b>");
  });
});
