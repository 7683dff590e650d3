/** Tests of answers to clients: refusals, headers, outages, observed requests. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import { RateLimiterUnavailable } from "@zae-limiter/limiter/domain/errors/errors.ts";
import type { OnUnavailable } from "@zae-limiter/limiter/domain/errors/unavailability.ts";
import type { HttpEvent } from "@zae-limiter/limiter/http/events.ts";
import type { HeaderStyle } from "@zae-limiter/limiter/http/headers.ts";
import { openSqlite } from "@zae-limiter/limiter/storage/sqlite/connection.ts";
import { parseList } from "structured-headers";
import { describe, expect, test } from "vitest";
import { ADAPTERS, type TestOptions } from "./served.ts";
import { byKey, SLOW, Stage, statusOf } from "./suite.ts";

const NOW = 1_800_000_000_000;
const frozen = { clock: () => NOW };

/** A limiter on a file that another connection has locked. */
async function locked(): Promise<RateLimiter> {
  const directory = mkdtempSync(join(tmpdir(), "zae-limiter-http-"));
  const path = join(directory, "limits.db");
  const limiter = await RateLimiter.open(`sqlite:${path}`, { timeoutMs: 50 });
  const { database } = await openSqlite({ path });
  database.prepare("BEGIN IMMEDIATE").run();
  const close = limiter.close.bind(limiter);
  return Object.assign(limiter, {
    close: async () => {
      database.prepare("ROLLBACK").run();
      database.close();
      await close();
      rmSync(directory, { recursive: true });
    },
  });
}

describe.each(ADAPTERS)("answers of rateLimit on $name", (adapter) => {
  const stage = new Stage(adapter);

  describe("refusals", () => {
    test("a refusal is a 429 with problem details and Retry-After", async () => {
      const limiter = await stage.limiter(frozen);
      const { url } = await stage.serve({ limiter, limits: ["rpm:1", "tpm:10"] });
      await statusOf(url);
      const response = await fetch(url);
      expect(response.status).toBe(429);
      expect(response.headers.get("content-type")).toMatch(/^application\/problem\+json/);
      expect(response.headers.get("retry-after")).toMatch(/^6[01]$/);
      const body = (await response.json()) as { type: string };
      expect(body.type).toMatch(/#quota-exceeded$/);
      expect(body).toMatchObject({
        status: 429,
        error: "rate_limit_exceeded",
        "violated-policies": ["rpm"],
      });
    });

    test("a request that can never fit is a 413 without Retry-After", async () => {
      const { url } = await stage.serve({ limits: [`tpm:10${SLOW}`], consume: { tpm: 11 } });
      const response = await fetch(url);
      expect(response.status).toBe(413);
      expect(response.headers.get("retry-after")).toBeNull();
      expect(await response.json()).toMatchObject({ status: 413, retry_after_seconds: null });
    });

    test("nothing of ancestors is shown unless exposeParents asks for it", async () => {
      const limiter = await stage.limiter(frozen);
      const { entities, limits } = limiter.repository;
      await entities.create({ id: "secret-tenant" });
      await entities.create({ id: "key-1", parentId: "secret-tenant", cascade: true });
      await limits.setSystem(["rpm:10"]);
      await limits.setEntity("secret-tenant", ["rpm:1"]);
      const shown = async (exposeParents: boolean) => {
        const entityId = () => "key-1";
        const { url } = await stage.serve({ limiter, entityId, exposeParents });
        await statusOf(url);
        const response = await fetch(url);
        expect(response.status).toBe(429);
        return JSON.stringify([...response.headers]) + (await response.text());
      };
      expect(await shown(false)).not.toContain("secret-tenant");
      expect(await shown(true)).toContain("secret-tenant");
    });

    test("refused replaces status, headers and body", async () => {
      const { url } = await stage.serve({
        limits: [`rpm:1${SLOW}`],
        refused: async (refusal, request) => ({
          status: 420,
          headers: { "x-limit": refusal.violations[0]?.limitName ?? "" },
          body: { calm: "down", path: request.path },
        }),
      });
      await statusOf(url);
      const response = await fetch(`${url}/here`);
      expect(response.status).toBe(420);
      expect(response.headers.get("x-limit")).toBe("rpm");
      expect(response.headers.get("content-type")).toMatch(/^application\/json/);
      expect(response.headers.get("retry-after")).not.toBeNull();
      expect(await response.json()).toEqual({ calm: "down", path: "/here" });
    });

    test("refused may send text, and keeps what it does not name", async () => {
      const { url } = await stage.serve({
        limits: [`rpm:1${SLOW}`],
        refused: () => ({ body: "slow down" }),
      });
      await statusOf(url);
      const response = await fetch(url);
      expect([response.status, await response.text()]).toEqual([429, "slow down"]);
      expect(response.headers.get("content-type")).toMatch(/^text\/plain/);
    });

    test("a HEAD request is limited, and gets headers without a body", async () => {
      const { url } = await stage.serve({ limits: [`rpm:1${SLOW}`] });
      await fetch(url, { method: "HEAD" });
      const response = await fetch(url, { method: "HEAD" });
      expect([response.status, await response.text()]).toEqual([429, ""]);
      expect(response.headers.get("retry-after")).not.toBeNull();
    });
  });

  describe("headers", () => {
    const headersOf = async (headers: TestOptions["headers"], limits = ["rpm:100", "tpm:50"]) => {
      const limiter = await stage.limiter(frozen);
      const options = { limiter, limits, consume: { rpm: 1, tpm: 20 } };
      const { url } = await stage.serve(headers === undefined ? options : { ...options, headers });
      const all: Headers[] = [];
      for (let call = 0; call < 3; call += 1) {
        const response = await fetch(url);
        await response.arrayBuffer();
        all.push(response.headers);
      }
      return all;
    };

    test("the draft's fields are there by default, granted or refused", async () => {
      const [granted, , refused] = await headersOf(undefined);
      const fields = (name: string, headers: Headers | undefined) =>
        parseList(headers?.get(name) ?? "").map(([key, parameters]) => [
          key,
          Object.fromEntries(parameters),
        ]);
      expect(fields("ratelimit-policy", granted)).toEqual([
        ["rpm", { q: 100, w: 60 }],
        ["tpm", { q: 50, w: 60, "zae-unit": "tokens" }],
      ]);
      expect(fields("ratelimit", granted)).toEqual([
        ["rpm", { r: 99, t: 1 }],
        ["tpm", { r: 30, t: 2 }],
      ]);
      expect(fields("ratelimit", refused)).toEqual([
        ["rpm", { r: 98, t: 1 }],
        ["tpm", { r: 10, t: 13 }],
      ]);
    });

    test("draft-7 shows the limit with the smallest share left", async () => {
      const [granted] = await headersOf("draft-7");
      expect(granted?.get("ratelimit")).toBe("limit=50, remaining=30, reset=24");
      expect(granted?.get("ratelimit-policy")).toBe("50;w=60");
    });

    test("draft-6 has a field for each figure", async () => {
      const [granted] = await headersOf("draft-6");
      expect(granted?.get("ratelimit-limit")).toBe("50");
      expect(granted?.get("ratelimit-remaining")).toBe("30");
      expect(granted?.get("ratelimit-reset")).toBe("24");
      expect(granted?.get("ratelimit")).toBeNull();
    });

    test("legacy headers have the time at which the bucket is full", async () => {
      const [granted] = await headersOf("legacy");
      expect(granted?.get("x-ratelimit-limit")).toBe("50");
      expect(granted?.get("x-ratelimit-remaining")).toBe("30");
      expect(granted?.get("x-ratelimit-reset")).toBe(String(NOW / 1000 + 24));
    });

    test("openai headers show requests and tokens", async () => {
      const [granted] = await headersOf("openai", ["rpm:100", "tpm:50", "other:5"]);
      expect(granted?.get("x-ratelimit-limit-requests")).toBe("100");
      expect(granted?.get("x-ratelimit-remaining-requests")).toBe("99");
      expect(granted?.get("x-ratelimit-reset-requests")).toBe("600ms");
      expect(granted?.get("x-ratelimit-remaining-tokens")).toBe("30");
      expect(granted?.get("x-ratelimit-reset-tokens")).toBe("24s");
    });

    test("several styles of headers are sent at once, or none", async () => {
      const styles: HeaderStyle[] = ["draft", "legacy", "openai"];
      const [granted] = await headersOf(styles);
      expect(granted?.get("ratelimit")).not.toBeNull();
      expect(granted?.get("x-ratelimit-limit")).toBe("50");
      expect(granted?.get("x-ratelimit-limit-tokens")).toBe("50");
      const [silent, , refused] = await headersOf(false);
      const names = [...(silent?.keys() ?? []), ...(refused?.keys() ?? [])];
      expect(names.filter((name) => name.includes("ratelimit"))).toEqual([]);
      expect(refused?.get("retry-after")).not.toBeNull();
    });

    test("a debt shows as nothing left, never as a negative number", async () => {
      const limiter = await stage.limiter(frozen);
      const { url } = await stage.serve(
        { limiter, limits: ["tpm:50"], headers: ["draft", "legacy"] },
        async ({ lease }) => {
          lease?.adjust({ tpm: 100 });
          await lease?.flush();
          return { body: "ok" };
        },
      );
      await statusOf(url);
      const response = await fetch(url);
      expect(response.headers.get("ratelimit")).toMatch(/^"tpm";r=0;t=\d+$/);
      expect(response.headers.get("x-ratelimit-remaining")).toBe("0");
    });
  });

  describe("outages", () => {
    test("block answers 503 with Retry-After", async () => {
      const limiter = stage.keep(await locked());
      const events: HttpEvent[] = [];
      const { url } = await stage.serve({
        limiter,
        limits: ["rpm:1"],
        onUnavailable: "block",
        events: (event) => events.push(event),
      });
      const response = await fetch(url);
      expect(response.status).toBe(503);
      expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
      const body = (await response.json()) as { type: string };
      expect(body.type).toMatch(/#temporary-reduced-capacity$/);
      expect(events.map(({ type }) => type)).toEqual(["unavailable"]);
    });

    test("allow passes the request uncounted, with a header and an event", async () => {
      const limiter = stage.keep(await locked());
      const events: HttpEvent[] = [];
      const { url } = await stage.serve({
        limiter,
        limits: ["rpm:1"],
        onUnavailable: "allow",
        events: (event) => events.push(event),
      });
      const response = await fetch(url);
      expect(response.status).toBe(200);
      expect(response.headers.get("x-ratelimit-degraded")).toBe("1");
      expect(events.map(({ type }) => type)).toEqual(["degraded"]);
    });

    test("a limiter whose store cannot be reached at the start blocks or passes", async () => {
      const events: HttpEvent[] = [];
      const options = (onUnavailable: OnUnavailable): TestOptions => ({
        limiter: Promise.reject(new RateLimiterUnavailable("The table could not be reached")),
        limits: ["rpm:1"],
        onUnavailable,
        events: (event) => events.push(event),
      });
      const blocking = await stage.serve(options("block"));
      const blocked = await fetch(blocking.url);
      expect([blocked.status, blocked.headers.get("retry-after")]).toEqual([503, "1"]);
      const allowing = await stage.serve(options("allow"));
      const allowed = await fetch(allowing.url);
      expect([allowed.status, allowed.headers.get("x-ratelimit-degraded")]).toEqual([200, "1"]);
      expect(events.map(({ type }) => type)).toEqual(["unavailable", "degraded"]);
    });

    test("a limiter that cannot be opened is an error of each request", async () => {
      const limiter = Promise.reject(new Error("no table"));
      const { url } = await stage.serve({ limiter, limits: ["rpm:1"] });
      expect(await statusOf(url)).toBe(500);
      expect(await statusOf(url)).toBe(500);
    });
  });

  describe("observe", () => {
    test("nothing is refused, and what would have been is marked and reported", async () => {
      const limiter = await stage.limiter();
      const events: HttpEvent[] = [];
      const leases: boolean[] = [];
      const { url } = await stage.serve(
        {
          limiter,
          limits: [`rpm:1${SLOW}`],
          mode: "observe",
          events: (event) => events.push(event),
        },
        ({ lease }) => {
          leases.push(lease !== undefined);
          return { body: "ok" };
        },
      );
      const first = await fetch(url);
      const second = await fetch(url);
      expect([first.status, second.status]).toEqual([200, 200]);
      expect(first.headers.get("x-ratelimit-observed")).toBeNull();
      expect(second.headers.get("x-ratelimit-observed")).toBe("refused");
      expect(leases).toEqual([true, false]);
      expect(events.map(({ type }) => type)).toEqual(["granted", "observed"]);
      const [bucket] = await limiter.repository.buckets.list("127.0.0.1");
      expect(bucket?.tokens).toBe(0);
    });
  });

  test("observed requests do not wait for tokens", async () => {
    const { url } = await stage.serve({
      limits: [`rpm:1${SLOW}`],
      mode: "observe",
      maxWaitSeconds: 86_400,
    });
    expect([await statusOf(url), await statusOf(url)]).toEqual([200, 200]);
  });

  describe("skip and chains", () => {
    test("skip leaves a request alone", async () => {
      const limiter = await stage.limiter();
      const { url } = await stage.serve({
        limiter,
        limits: [`rpm:1${SLOW}`],
        skip: (request) => request.path === "/health",
      });
      for (let call = 0; call < 3; call += 1) expect(await statusOf(`${url}/health`)).toBe(200);
      expect(await limiter.repository.buckets.list("127.0.0.1")).toEqual([]);
    });

    test("a refusal of the second middleware refunds the first", async () => {
      const limiter = await stage.limiter();
      const { url } = await stage.serve([
        { limiter, limits: [`rpm:5${SLOW}`], entityId: () => "tenant" },
        { limiter, limits: [`rpm:1${SLOW}`], entityId: byKey },
      ]);
      expect(await statusOf(url, { "x-key": "a" })).toBe(200);
      expect(await statusOf(url, { "x-key": "a" })).toBe(429);
      expect(await statusOf(url)).toBe(401);
      const [bucket] = await limiter.repository.buckets.list("tenant");
      expect(bucket?.tokens).toBe(4);
    });

    test("headers of a chain show both policies", async () => {
      const { url } = await stage.serve([
        { limits: [`rpm:5${SLOW}`] },
        { limits: [`tpm:7${SLOW}`] },
      ]);
      const { headers } = await fetch(url);
      const names = parseList(headers.get("ratelimit") ?? "").map(([name]) => name);
      expect(names.toSorted()).toEqual(["rpm", "tpm"]);
    });

    test("leaseOf is the lease of the innermost middleware", async () => {
      const consumed: unknown[] = [];
      const { url } = await stage.serve(
        [{ limits: [`rpm:5${SLOW}`] }, { limits: [`tpm:7${SLOW}`] }],
        ({ lease }) => {
          consumed.push(lease?.consumed);
          return { body: "ok" };
        },
      );
      await statusOf(url);
      expect(consumed).toEqual([{ tpm: 1 }]);
    });

    test.each([
      ["at once", {}],
      ["with a wait", { maxWaitSeconds: 1 }],
    ])("a dozen middlewares that decide %s warn of no leak of listeners", async (_, more) => {
      const warnings: string[] = [];
      const onWarning = ({ message }: Error) => warnings.push(message);
      process.on("warning", onWarning);
      const limiter = await stage.limiter();
      const limits = [`rpm:5${SLOW}`];
      const resources = Array.from({ length: 12 }, (_, at) => `part-${at}`);
      const { url } = await stage.serve(
        resources.map((resource) => ({ limiter, limits, resource, ...more })),
        ({ lease }) => {
          lease?.settle({ rpm: 2 });
          return { body: "ok" };
        },
      );
      expect(await statusOf(url)).toBe(200);
      const last = { entityId: "127.0.0.1", resource: "part-11", limits };
      await expect.poll(() => limiter.available(last)).toEqual({ rpm: 3 });
      process.off("warning", onWarning);
      expect(warnings).toEqual([]);
    });
  });
});
