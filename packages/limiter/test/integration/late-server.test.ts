/**
 * Limiters that are opened before their server listens, with credentials that it does not accept or
 * without what they need there: an error as soon as it answers, since waiting would cure nothing.
 */

import { RateLimiter } from "@zae-limiter/limiter/acquire/rate-limiter.ts";
import {
  InfrastructureError,
  InfrastructureNotFoundError,
  RateLimiterUnavailable,
} from "@zae-limiter/limiter/domain/errors/errors.ts";
import { Repository } from "@zae-limiter/limiter/repository/repository.ts";
import { freePort } from "@zae-limiter/test-engines/engine-process.ts";
import { describePostgres, ownSchema } from "@zae-limiter/test-engines/postgres.ts";
import { describeRedis, ownPrefix } from "@zae-limiter/test-engines/redis.ts";
import { delayingProxy } from "@zae-limiter/test-support/delaying-proxy.ts";
import { failureOf } from "@zae-limiter/test-support/outcomes.ts";
import { expect, it, onTestFinished } from "vitest";

const CALL = {
  entityId: "user-1",
  resource: "api",
  limits: ["calls:2/365day"],
  consume: { calls: 1 },
};
const WRONG = "not-the-password";
/** Long enough for a server on a busy machine. A port at which nothing listens fails at once. */
const OPTIONS = { timeoutMs: 5000, onWarning: () => {} };
const MODES = ["allow", "block"] as const;

/** Opens a limiter on an address at which nothing listens yet. */
async function openedEarly(serverUrl: string, onUnavailable: "allow" | "block", password?: string) {
  const port = await freePort();
  const url = new URL(serverUrl);
  url.host = `127.0.0.1:${port}`;
  if (password !== undefined) url.password = password;
  const limiter = await RateLimiter.open(url.href, { ...OPTIONS, onUnavailable });
  onTestFinished(() => limiter.close());
  const listen = async () => {
    const proxy = await delayingProxy(serverUrl, 0, port);
    onTestFinished(() => proxy.close());
  };
  return { limiter, listen };
}

/** Checks what a call gets before the server listens. */
async function expectUnreached(limiter: RateLimiter, onUnavailable: "allow" | "block") {
  if (onUnavailable === "allow") expect((await limiter.acquire(CALL)).degraded).toBe(true);
  else expect(await failureOf(limiter.acquire(CALL))).toBeInstanceOf(RateLimiterUnavailable);
}

/** Checks that two calls pass and the third is refused. */
async function expectLimited(limiter: RateLimiter) {
  const outcomes = [];
  for (let call = 0; call < 3; call += 1) outcomes.push((await limiter.tryAcquire(CALL)).granted);
  expect(outcomes).toEqual([true, true, false]);
}

/** Declares what holds for every server that asks for a password. */
function limitersOn(serverUrl: () => string | Promise<string>) {
  it.each(MODES)("a limiter with %s limits as soon as its server listens", async (mode) => {
    const { limiter, listen } = await openedEarly(await serverUrl(), mode);
    await expectUnreached(limiter, mode);
    await listen();
    await expectLimited(limiter);
  });

  it.each(MODES)(
    "a wrong password is an error as soon as the server answers, with %s",
    async (mode) => {
      const { limiter, listen } = await openedEarly(await serverUrl(), mode, WRONG);
      await expectUnreached(limiter, mode);
      await listen();
      for (let call = 0; call < 2; call += 1) {
        const error = await failureOf(limiter.acquire(CALL));
        expect(error).toBeInstanceOf(InfrastructureError);
        expect(error).not.toBeInstanceOf(RateLimiterUnavailable);
        expect((error as Error).message).toContain("did not accept the user or password");
        expect((error as Error).message).not.toContain(WRONG);
      }
    },
  );

  it.each(MODES)(
    "a wrong password is an error at once where the server listens, with %s",
    async (mode) => {
      const url = new URL(await serverUrl());
      url.password = WRONG;
      const error = await failureOf(
        RateLimiter.open(url.href, { ...OPTIONS, onUnavailable: mode }),
      );
      expect(error).toBeInstanceOf(InfrastructureError);
      expect(error).not.toBeInstanceOf(RateLimiterUnavailable);
    },
  );
}

describePostgres("the start of a limiter", (server) => {
  limitersOn(async () => {
    const { url } = ownSchema(server);
    await Repository.migrate(url);
    return url;
  });

  it.each(MODES)(
    "a missing schema is an error as soon as the server answers, with %s",
    async (mode) => {
      const { limiter, listen } = await openedEarly(ownSchema(server).url, mode);
      await expectUnreached(limiter, mode);
      await listen();
      const error = await failureOf(limiter.acquire(CALL));
      expect(error).toBeInstanceOf(InfrastructureNotFoundError);
      expect((error as Error).message).toContain("zae-limiter db migrate");
    },
  );
});

describeRedis("the start of a limiter", (server) => limitersOn(() => ownPrefix(server).url));
