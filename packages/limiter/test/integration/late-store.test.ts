/** Limiters that are opened while their store cannot be reached, and calls until it answers. */

import { once } from "node:events";
import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import {
  InfrastructureError,
  InfrastructureNotFoundError,
  RateLimiterUnavailable,
  ValidationError,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { rateLimit } from "@zae-limiter/limiter/http/express.ts";
import { observe } from "@zae-limiter/limiter/otel/index.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { deleteTable } from "@zae-limiter/limiter/storage/dynamodb/create-table.ts";
import { openSqlite } from "@zae-limiter/limiter/storage/sqlite/connection.ts";
import { freePort } from "@zae-limiter/test-engines/engine-process.ts";
import { describeEngine } from "@zae-limiter/test-engines/engines.ts";
import { delayingProxy } from "@zae-limiter/test-support/delaying-proxy.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { newName } from "@zae-limiter/test-support/stores.ts";
import { temporaryFolder } from "@zae-limiter/test-support/temporary-folder.ts";
import express from "express";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";

const CREDENTIALS = { accessKeyId: "test", secretAccessKey: "test" };
const CALL = {
  entityId: "user-1",
  resource: "api",
  limits: ["calls:2/365day"],
  consume: { calls: 1 },
};
/** Long enough for a server on a busy machine. A port at which nothing listens fails at once. */
const QUICK = { timeoutMs: 2000 };

const folder = temporaryFolder();

/** A new file that another process has locked, and the address of its store. */
async function lockedFile() {
  const url = `sqlite:${folder}/${newName()}.db`;
  const { database } = await openSqlite({ path: url.slice("sqlite:".length) });
  database.prepare("BEGIN IMMEDIATE").run();
  let isLocked = true;
  const unlock = () => {
    if (isLocked) database.prepare("ROLLBACK").run();
    isLocked = false;
  };
  onTestFinished(() => {
    unlock();
    database.close();
  });
  return { url, unlock };
}

describe("a limiter that is opened while its file is locked", () => {
  it("a limiter with allow passes calls uncounted, and limits them once the file is free", async () => {
    const { url, unlock } = await lockedFile();
    const events: string[] = [];
    const limiter = await RateLimiter.open(url, {
      onUnavailable: "allow",
      timeoutMs: 50,
      events: ({ type }) => type !== "call" && events.push(type),
      onWarning: () => {},
    });
    for (let call = 0; call < 3; call += 1)
      expect((await limiter.acquire(CALL)).degraded).toBe(true);
    expect(events).toEqual(["degraded", "degraded", "degraded"]);
    unlock();
    const outcomes = [];
    for (let call = 0; call < 3; call += 1) outcomes.push((await limiter.tryAcquire(CALL)).granted);
    expect(outcomes).toEqual([true, true, false]);
    expect(events.slice(3)).toEqual(["acquired", "acquired", "rejected"]);
    await limiter.close();
  });

  it("a limiter with block refuses calls until the file is free", async () => {
    const { url, unlock } = await lockedFile();
    const limiter = await RateLimiter.open(url, {
      onUnavailable: "block",
      timeoutMs: 50,
      onWarning: () => {},
    });
    expect(await failureOf(limiter.acquire(CALL))).toMatchObject({
      code: "ZAEL_UNAVAILABLE",
      entityId: "user-1",
      resource: "api",
      nothingWritten: true,
    });
    expect((await limiter.acquire({ ...CALL, onUnavailable: "allow" })).degraded).toBe(true);
    unlock();
    expect((await limiter.acquire(CALL)).degraded).toBe(false);
    await limiter.close();
  });

  it("open throws as ever without the option", async () => {
    const { url } = await lockedFile();
    const opening = RateLimiter.open(url, { timeoutMs: 50 });
    await expect(opening).rejects.toBeInstanceOf(RateLimiterUnavailable);
  });

  it("what needs the store is answered with RateLimiterUnavailable until it was reached", async () => {
    const { url, unlock } = await lockedFile();
    const options = { onUnavailable: "allow", timeoutMs: 50, onWarning: () => {} } as const;
    const limiter = await RateLimiter.open(url, options);
    expect(() => limiter.repository).toThrow(RateLimiterUnavailable);
    const { entityId, resource, limits } = CALL;
    const status = limiter.status({ entityId, resource, limits });
    await expect(status).rejects.toBeInstanceOf(RateLimiterUnavailable);
    expect(await limiter.isAvailable({ timeoutMs: 200 })).toBe(false);
    unlock();
    expect(await limiter.isAvailable()).toBe(true);
    expect(limiter.repository.namespaceName).toBe("default");
    expect(await limiter.available({ entityId, resource, limits })).toEqual({ calls: 2 });
    await limiter.close();
  });

  it("bad requests and calls after close are refused as ever", async () => {
    const { url, unlock } = await lockedFile();
    const options = { onUnavailable: "allow", timeoutMs: 50, onWarning: () => {} } as const;
    const limiter = await RateLimiter.open(url, options);
    const bad = limiter.acquire({ ...CALL, consume: { calls: -1 } });
    await expect(bad).rejects.toBeInstanceOf(ValidationError);
    await limiter.close();
    unlock();
    await expect(limiter.acquire(CALL)).rejects.toBeInstanceOf(InfrastructureError);
    await expect(limiter.acquire(CALL)).rejects.not.toBeInstanceOf(RateLimiterUnavailable);
  });

  it("a warning comes once a minute, however many calls come", async () => {
    const { url } = await lockedFile();
    let nowMs = 0;
    const timer = { nowMs: () => nowMs, sleep: () => new Promise<void>(() => {}) };
    const kinds: string[] = [];
    const limiter = await RateLimiter.open(url, {
      onUnavailable: "allow",
      timeoutMs: 10,
      timer,
      onWarning: ({ kind }) => kinds.push(kind),
    });
    await limiter.acquire(CALL);
    await limiter.acquire(CALL);
    expect(kinds).toEqual(["store_unreached"]);
    nowMs = 60_000;
    await limiter.acquire(CALL);
    expect(kinds).toEqual(["store_unreached", "store_unreached"]);
    await limiter.close();
  });

  it("OpenTelemetry observes the limiter from when the store is reached", async () => {
    const { url, unlock } = await lockedFile();
    const options = { onUnavailable: "allow", timeoutMs: 50, onWarning: () => {} } as const;
    const limiter = await RateLimiter.open(url, options);
    const stop = observe(limiter);
    await limiter.acquire(CALL);
    unlock();
    expect((await limiter.acquire(CALL)).degraded).toBe(false);
    stop();
    await limiter.close();
  });
});

describe("a middleware whose limiter is opened while its file is locked", () => {
  const { entityId: _, ...options } = { ...CALL, entityId: undefined };

  /** Serves requests until the test ends; returns the status and the header of each. */
  async function served(more: Parameters<typeof rateLimit>[0]) {
    const app = express();
    app.use(rateLimit({ ...options, ...more }));
    app.get("/", (_request, response) => void response.send("ok"));
    const server = app.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    return async () => {
      const { status, headers } = await fetch(`http://127.0.0.1:${port}`);
      return [status, headers.get("x-ratelimit-degraded")];
    };
  }

  it.each(["with the option of the limiter", "with the option of the middleware"])(
    "requests pass and are limited later, %s",
    async (place) => {
      const { url, unlock } = await lockedFile();
      const onUnavailable = "allow" as const;
      const ofLimiter = place.endsWith("limiter");
      const limiter = RateLimiter.open(url, {
        timeoutMs: 50,
        onWarning: () => {},
        ...(ofLimiter && { onUnavailable }),
      });
      limiter.catch(() => {});
      const ask = await served({ limiter, ...(!ofLimiter && { onUnavailable }) });
      expect([await ask(), await ask(), await ask()]).toEqual(Array(3).fill([200, "1"]));
      unlock();
      expect([await ask(), await ask(), await ask()]).toEqual([
        [200, null],
        [200, null],
        [429, null],
      ]);
    },
  );

  it("requests get 503 without the option, and are served once the file is free", async () => {
    const { url, unlock } = await lockedFile();
    const limiter = RateLimiter.open(url, { timeoutMs: 50, onWarning: () => {} });
    const ask = await served({ limiter });
    expect([await ask(), await ask()]).toEqual(Array(2).fill([503, null]));
    unlock();
    expect([await ask(), await ask(), await ask()].map(([status]) => status)).toEqual([
      200, 200, 429,
    ]);
  });
});

describeEngine("dynoxide", "the start of a limiter", ({ endpoint }) => {
  const table = newName();
  const options = { endpoint, region: "us-east-1", credentials: CREDENTIALS, ...QUICK };
  const quiet = { onWarning: () => {} };
  beforeAll(async () => (await Repository.createTable(table, options)).close());
  afterAll(() => deleteTable({ table, ...options }));

  it("a limiter that opens before its server listens limits as soon as it does", async () => {
    const port = await freePort();
    const at = `http://127.0.0.1:${port}`;
    const more = { ...options, ...quiet, endpoint: at, onUnavailable: "allow" } as const;
    const limiter = await RateLimiter.open(`dynamodb://${table}`, more);
    expect((await limiter.acquire(CALL)).degraded).toBe(true);
    const proxy = await delayingProxy(endpoint, 0, port);
    const outcomes = [];
    for (let call = 0; call < 3; call += 1) outcomes.push((await limiter.tryAcquire(CALL)).granted);
    expect(outcomes).toEqual([true, true, false]);
    await limiter.close();
    await proxy.close();
  });

  it("a limiter whose host does not resolve passes calls, with a warning", async () => {
    const warnings: unknown[] = [];
    const limiter = await RateLimiter.open(`dynamodb://${table}`, {
      ...options,
      endpoint: "http://dynamodb.invalid:8000",
      onUnavailable: "allow",
      onWarning: (warning) => warnings.push(warning),
    });
    expect((await limiter.acquire(CALL)).degraded).toBe(true);
    expect(warnings).toMatchObject([{ kind: "store_unreached" }]);
    await limiter.close();
  });

  it("an address that cannot be read is an error at once, whatever the option", async () => {
    const opening = RateLimiter.open("dynamodb://a b", { ...options, onUnavailable: "allow" });
    await expect(opening).rejects.toBeInstanceOf(ValidationError);
  });

  it("a missing table is an error as soon as the server answers", async () => {
    const missing = `dynamodb://${newName()}`;
    const atOnce = RateLimiter.open(missing, { ...options, onUnavailable: "allow" });
    await expect(atOnce).rejects.toBeInstanceOf(InfrastructureNotFoundError);
    const port = await freePort();
    const at = `http://127.0.0.1:${port}`;
    const more = { ...options, ...quiet, endpoint: at, onUnavailable: "allow" } as const;
    const limiter = await RateLimiter.open(missing, more);
    expect((await limiter.acquire(CALL)).degraded).toBe(true);
    const proxy = await delayingProxy(endpoint, 0, port);
    await expect(limiter.acquire(CALL)).rejects.toBeInstanceOf(InfrastructureNotFoundError);
    await limiter.close();
    await proxy.close();
  });
});
